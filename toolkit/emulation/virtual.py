"""Virtual boards: an image runs in a process of this computer, behind a pseudo-terminal that is its serial port."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import termios
import tty
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.board import Board, Emulator
from toolkit.errors import FlashError

if TYPE_CHECKING:
    from toolkit.building import Image

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class VirtualBoard:
    """A running virtual board.

    Attributes:
        port: path of its serial port, for pyserial.
        process: what runs it.
        log: what the process writes to standard error.
    """

    port: str
    process: subprocess.Popen[bytes]
    log: Path

    def stopped(self) -> str | None:
        """None while it runs; afterwards how it ended and what it said."""
        status = self.process.poll()
        if status is None:
            return None
        said = self.log.read_text(encoding="utf-8", errors="replace").strip()
        ended = f"signal {-status}" if status < 0 else f"status {status}"
        return f"ended with {ended}" + (f":\n{said}" if said else "")


@contextlib.contextmanager
def start(image: Image, board: Board) -> Iterator[VirtualBoard]:
    """Run an image on the virtual board it was built for; the process ends with the block, or with this program.

    Raises:
        FlashError: the board is not a virtual one, or the process does not start.
        ToolError: the emulator is missing.
    """
    if board.emulator is None:
        raise FlashError(f"{board.name} is not a virtual board")
    command = _command(image, board.emulator)
    board_side, port_side = os.openpty()
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, port_side)  # kept open, or the board would see its line hang up
        try:
            _make_transparent(port_side)
            port = os.ttyname(port_side)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="deploy-")))
            log = folder / "stderr"
            process = _spawn(command, board_side, log)
        finally:
            os.close(board_side)
        stack.callback(_stop, process)
        yield VirtualBoard(port, process, log)


def _make_transparent(line: int) -> None:
    """Let every byte pass as it is: what QEMU switches on of its own accord must have nothing to do."""
    tty.setraw(line)
    attributes = termios.tcgetattr(line)
    attributes[1] = 0  # output flags
    termios.tcsetattr(line, termios.TCSANOW, attributes)


def _command(image: Image, emulator: Emulator) -> list[str]:
    if emulator.kind == "process":
        return [str(image.elf)]
    from toolkit.building.tools import QEMU, require  # with the whole room, which a virtual Pico 2 starts without

    return [
        str(require(QEMU)),
        *("-machine", emulator.machine),
        *("-display", "none", "-monitor", "none", "-nodefaults"),
        *("-serial", "stdio"),
        *("-icount", "shift=7"),  # see `instructions_per_s` of the board
        *("-kernel", str(image.elf)),
    ]


def _spawn(command: Sequence[str], line: int, log: Path) -> subprocess.Popen[bytes]:
    """Start a process with the serial line as its standard input and output."""
    try:
        with log.open("wb") as stderr:
            return subprocess.Popen(
                command,
                stdin=line,
                stdout=line,
                stderr=stderr,
                start_new_session=True,  # Ctrl-C is ours to handle
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
    except OSError as error:
        raise FlashError(f"the virtual board does not start: {error}", where=command[0]) from None


def _die_with_parent() -> None:
    """Ask Linux to end this process when the one that started it ends, however that ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
