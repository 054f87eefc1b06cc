"""Random sequences of faults while programs are uploaded to simulated Arduino boards, each followed by a run without.

    python -m tests.arduino.sequences --count 200 [--seed N]

Every upload ends as success, with the right flash, or in a FlashError or ToolError that says what to do next; the
upload after it, on the same board as it was left, with a person who does what is asked, ends well; no process, no line
and no temporary folder stays. `bossac` is the real one where it is installed. Prints how the uploads ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tests import sequences
from tests.arduino.bootloader import ALWAYS, BridgeBoard, SimulatedBoard
from tests.arduino.dfu import DfuBoard, install_double
from tests.arduino.uploading import samd
from tests.sequences import Trial
from toolkit.board import Board, load_board
from toolkit.errors import DeployError
from toolkit.flashing.arduino import ArduinoFlasher, Patience
from toolkit.flashing.desk import SerialPort

PATIENCE = Patience(bootloader=2, person=1.5, upload=6, port=2.5, access=1, afresh=1)
# Each of three attempts: a bootloader, a person, an upload; and a person for the board before each; and the port.
LONGEST_S = 3 * (2 * 2 + 2 * 1.5 + 6 + 1) + 1 + 2.5 + 10

_EVERYWHERE = ("no-touch", "late", "quiet", "gone", "killed", "lost")
_FAULTS = {
    "nano33ble": (*_EVERYWHERE, "fail", "stall", "flip", "unplugged"),
    "uno-r4-wifi": ("no-touch", "late", "fail", "stall", "killed", "lost"),
    "giga-r1": (*_EVERYWHERE, "stall", "unplugged", "broken", "goodbye", "crash", "late-crash", "denied"),
    "uno-r4-minima": (*_EVERYWHERE, "stall", "unplugged", "broken", "goodbye", "crash", "late-crash", "denied"),
}


@dataclass(frozen=True)
class Misfortune:
    """What goes wrong in one sequence.

    Attributes:
        board: name of the board.
        faults: how often each fault happens.
        willing: whether a person does what is asked.
        busy_s: how long another program holds the port at the beginning.
        waits: whether the board waits in its bootloader at the beginning.
        number: serial number of the bootloader, None for the program's.
        tool: whether the uploader is installed.
    """

    board: str
    faults: dict[str, int]
    willing: bool
    busy_s: float
    waits: bool
    number: str | None
    tool: bool


def random_misfortune(source: random.Random) -> Misfortune:
    """One to three faults, and their circumstances."""
    boards = [name for name in _FAULTS if shutil.which("bossac") or load_upload(name) == "dfu-util"]
    board = source.choice(boards)
    names = source.sample(_FAULTS[board], source.randint(1, 3))
    return Misfortune(
        board=board,
        faults={name: source.choice([1, 1, 2, 4, ALWAYS]) for name in names},
        willing=source.random() < 0.6,
        busy_s=source.choice([0, 0, 0, 0.5, 3]),
        waits=source.random() < 0.2,
        number=None if board == "uno-r4-wifi" else source.choice([None, "", "0000F00D", "BOOT"]),
        tool=source.random() > 0.03,
    )


def load_upload(name: str) -> str:
    arduino = load_board(name).arduino
    assert arduino is not None
    return arduino.upload


class Upload:
    """A simulated board on which a program is uploaded twice."""

    def __init__(self, misfortune: Misfortune, board: Board, simulated: SimulatedBoard, binary: Path) -> None:
        self.misfortune = misfortune
        self.board = board
        self.simulated = simulated
        self.binary = binary
        self.hint = ""

    def run(self) -> str:
        with self._busy(), self._tool():
            return sequences.ending_of(lambda: self._upload(self.misfortune.willing), "success")

    def repair(self) -> str:
        self.simulated.heal()
        if "reset button twice" in self.hint:  # which a person does before running it again
            self.simulated.reset_twice()
        self.binary.write_bytes(os.urandom(4_000))
        try:
            self._upload(True)
        except DeployError as error:
            return f"{error} {self.simulated.ports()}"
        return ""

    def _upload(self, willing: bool) -> None:
        waiting: list[threading.Timer] = []

        def person(text: str) -> None:
            asked = "reset button twice" in text
            act = self.simulated.plug_in if "plug it in" in text else self.simulated.double_tap
            if asked and willing:
                waiting.append(threading.Timer(0.2, act))
                waiting[-1].start()

        try:
            port = ArduinoFlasher(self.board, self.simulated, person, PATIENCE).flash(self.binary)
        except DeployError as error:
            self.hint = error.hint
            raise
        finally:
            for timer in waiting:
                timer.cancel()
                timer.join()
        assert self.simulated.holds(self.binary.read_bytes()), self.misfortune
        assert port == self.simulated.port.device, self.misfortune

    @contextlib.contextmanager
    def _busy(self) -> Iterator[None]:
        """Another program has the port for a while."""
        if not self.misfortune.busy_s or not self.simulated.ports():
            yield
            return
        line = os.open(self.simulated.ports()[-1].device, os.O_RDWR | os.O_NOCTTY)
        fcntl.flock(line, fcntl.LOCK_EX | fcntl.LOCK_NB)
        timer = threading.Timer(self.misfortune.busy_s, os.close, [line])
        timer.start()
        yield
        timer.join()

    def _tool(self) -> contextlib.AbstractContextManager[object]:
        missing = {} if self.misfortune.tool else {"BOSSAC": "/nonexistent/bossac", "DFU_UTIL": "/nonexistent/dfu-util"}
        return mock.patch.dict(os.environ, missing)


@contextlib.contextmanager
def bed(misfortune: Misfortune, folder: Path) -> Iterator[Upload]:
    """A simulated board with its faults, and another of its kind beside it."""
    binary = folder / "Sketch.ino.bin"
    binary.write_bytes(os.urandom(4_000))
    board = load_board(misfortune.board)
    usb = board.usb
    assert usb is not None
    neighbour = SerialPort("/dev/null", 0x2341, usb.pid + 0x1000, "BEEF", "another kind")
    words = {"faults": dict(misfortune.faults), "boot_number": misfortune.number, "bystanders": [neighbour]}
    environment = {"ARDUINO_DIRECTORIES_DATA": str(folder / "none")}
    if load_upload(misfortune.board) == "dfu-util":
        environment["DFU_UTIL"] = str(install_double(folder))
        simulated: SimulatedBoard = DfuBoard(folder, pid=usb.pid, boot_pid=usb.bootloader_pid, **words)
    else:
        board = samd(misfortune.board)
        simulated = BridgeBoard(**words) if misfortune.board == "uno-r4-wifi" else SimulatedBoard(**words)
    with mock.patch.dict(os.environ, environment), simulated:
        if misfortune.waits:
            simulated.double_tap()
            time.sleep(0.4)
        yield Upload(misfortune, board, simulated, binary)


def run_sequences(count: int, seed: int) -> Counter[str]:
    """How `count` uploads with faults ended."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as temporary:
        trial = Trial(
            draw=random_misfortune,
            bed=lambda misfortune: bed(misfortune, Path(folder)),
            endings=("success", "FlashError", "ToolError"),
            longest_s=LONGEST_S,
        )
        with mock.patch.object(tempfile, "tempdir", temporary):
            endings = sequences.run_sequences(trial, count, seed)
        assert not list(Path(temporary).iterdir())
    return endings


if __name__ == "__main__":
    sequences.main(__doc__, run_sequences)
