"""From an image to a running board, whichever kind it is."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit import emulation
from toolkit.board import Board
from toolkit.building import Image
from toolkit.errors import FlashError
from toolkit.flashing.arduino import ArduinoFlasher
from toolkit.flashing.choice import Wanted
from toolkit.flashing.desk import Desk, FolderDesk, SystemDesk
from toolkit.flashing.uf2_drive import Patience, Uf2Flasher


@dataclass(frozen=True, slots=True)
class RunningBoard:
    """A board that runs an image.

    Attributes:
        port: its serial port, for pyserial.
        stopped: None while it runs, otherwise how it ended (known of virtual boards only).
    """

    port: str
    stopped: Callable[[], str | None]


@contextlib.contextmanager
def flash(
    image: Image,
    board: Board,
    *,
    wanted: Wanted = Wanted(),  # noqa: B008 - immutable
    misbehave: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[RunningBoard]:
    """Bring an image onto a board and run it; a virtual board runs until the block ends.

    Args:
        image: what `build` made for this board.
        board: a real board, or a virtual one (`Board.virtual`).
        wanted: which of several real boards is meant. A port given as a URL (`socket://`, `rfc2217://`) belongs to a
            board that another computer has flashed: it is used as it is.
        misbehave: faults of a virtual board, as `toolkit.emulation` spells them.
        say: told what happens, and what a person should do.

    Raises:
        FlashError: it did not get there.
    """
    emulator = board.emulator
    if emulator is not None and emulator.kind != "rp2350":
        with emulation.start(image, board) as virtual:
            yield RunningBoard(virtual.port, virtual.stopped)
    elif emulator is not None:
        with _virtual_desk(image, misbehave) as (desk, stopped):
            yield RunningBoard(_write(image, board, desk, Wanted(), say), stopped)
    elif wanted.port is not None and "://" in wanted.port:
        yield RunningBoard(wanted.port, lambda: None)
    elif board.arduino is not None:
        binary = image.elf.with_suffix(".bin")
        yield RunningBoard(ArduinoFlasher(board, SystemDesk(), say).flash(binary, wanted), lambda: None)
    elif board.usb is not None:
        yield RunningBoard(_write(image, board, SystemDesk(), wanted, say), lambda: None)
    else:
        raise FlashError(
            f"{board.name} has no way to be flashed", where=board.name, hint="`deploy boards` lists others."
        )


def _write(image: Image, board: Board, desk: Desk, wanted: Wanted, say: Callable[[str], None]) -> str:
    return Uf2Flasher(board, desk, say, Patience()).flash(image.elf.with_suffix(".uf2"), wanted)


@contextlib.contextmanager
def _virtual_desk(image: Image, misbehave: Sequence[str]) -> Iterator[tuple[Desk, Callable[[], str | None]]]:
    """A desk in a folder with a virtual board that waits for an image."""
    from toolkit.emulation import rp2350  # needs an extra package: only who wants this board pays for it

    with tempfile.TemporaryDirectory(prefix="deploy-desk-") as folder:
        faults = [rp2350.parse_fault(text) for text in misbehave]
        with rp2350.start(Path(folder), elf=image.elf, faults=faults) as board:
            yield FolderDesk(Path(folder)), board.stopped
