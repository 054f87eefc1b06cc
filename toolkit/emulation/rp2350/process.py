"""The virtual board as a process of its own: how it is started, asked and stopped."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.emulation.rp2350.desk import STATUS_FILE, Port, read_ports
from toolkit.emulation.rp2350.engine import require_unicorn
from toolkit.emulation.rp2350.misbehaviour import Fault, text_of
from toolkit.errors import FlashError

_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 3.0
_LOG = "board.log"


@dataclass(frozen=True, slots=True)
class Status:
    """How a board is.

    Attributes:
        state: `bootsel`, `running` or `halted`.
        instructions: executed since the last boot, at most 0.2 s ago.
        fault: why it halted; None while it did not.
    """

    state: str
    instructions: int
    fault: str | None


@dataclass(frozen=True, slots=True)
class VirtualPico2:
    """A virtual board on a desk.

    Attributes:
        desk: the folder it presents itself in.
        process: what runs it.
    """

    desk: Path
    process: subprocess.Popen[bytes]

    def status(self) -> Status:
        """How it is."""
        entry = json.loads((self.desk / STATUS_FILE).read_text(encoding="utf-8"))
        return Status(entry["state"], entry["instructions"], entry["fault"])

    def ports(self) -> tuple[Port, ...]:
        """Its serial ports at this moment."""
        return read_ports(self.desk)

    @property
    def log(self) -> str:
        """What it has said on standard error."""
        return (self.desk / _LOG).read_text(encoding="utf-8", errors="replace")

    def stopped(self) -> str | None:
        """None while it runs or waits for an image; afterwards its fault report, or how the process ended."""
        code = self.process.poll()
        if code is None:
            return self.status().fault
        said = self.log.strip()
        ended = f"signal {-code}" if code < 0 else f"status {code}"
        return f"ended with {ended}" + (f":\n{said}" if said else "")


@contextlib.contextmanager
def start(
    desk: Path,
    *,
    uf2: Path | None = None,
    elf: Path | None = None,
    faults: Sequence[Fault] = (),
    keep_flash: bool = False,
    hook: str = "auto",
    bootsel: bool = False,
) -> Iterator[VirtualPico2]:
    """Put a virtual Pico 2 on a desk; it goes with the block, and with this program however that ends.

    Args:
        desk: folder; made where it is not there.
        uf2: image that is in flash already; without one the board waits in BOOTSEL, unless its flash was kept.
        elf: executable with the symbols of what will run, for fault reports.
        faults: what is to go wrong.
        keep_flash: keep flash in the desk's `flash.bin`.
        hook: `auto`, `c` (needs a C compiler) or `python`: what counts instructions.
        bootsel: the BOOTSEL button is held while the board is switched on.

    Raises:
        ToolError: unicorn is not installed.
        FlashError: the board does not start.
    """
    require_unicorn()
    desk = desk.resolve()
    desk.mkdir(parents=True, exist_ok=True)
    (desk / STATUS_FILE).unlink(missing_ok=True)
    command = [sys.executable, "-m", "toolkit.emulation.rp2350", str(desk), "--hook", hook]
    command += ["--parent", str(os.getpid())]
    command += ["--uf2", str(uf2.resolve())] if uf2 else []
    command += ["--elf", str(elf.resolve())] if elf else []
    command += ["--keep-flash"] if keep_flash else []
    command += ["--bootsel"] if bootsel else []
    for fault in faults:
        command += ["--misbehave", text_of(fault)]
    with (desk / _LOG).open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=Path(__file__).parents[3],  # where `toolkit` is found, installed or not
            start_new_session=True,  # Ctrl-C is the caller's to handle
        )
    board = VirtualPico2(desk, process)
    try:
        _wait_until_up(board)
        yield board
    finally:
        _stop(process)


def _wait_until_up(board: VirtualPico2) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not (board.desk / STATUS_FILE).is_file():
        if board.process.poll() is not None:
            raise FlashError("the virtual Pico 2 does not start", where=str(board.desk), hint=board.log.strip())
        if time.monotonic() > deadline:
            raise FlashError("the virtual Pico 2 does not present itself", where=str(board.desk))
        time.sleep(0.005)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
