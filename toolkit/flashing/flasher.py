"""From an image to a running board, whichever kind it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from toolkit import emulation
from toolkit.board import Board
from toolkit.building import Image
from toolkit.errors import FlashError


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
def flash(image: Image, board: Board) -> Iterator[RunningBoard]:
    """Bring an image onto a board and run it; a virtual board runs until the block ends.

    Raises:
        FlashError: it did not get there.
    """
    if board.emulator is None:
        raise FlashError(f"{board.name} has no way to be flashed", hint="Use a virtual board: deploy boards.")
    with emulation.start(image, board) as virtual:
        yield RunningBoard(virtual.port, virtual.stopped)
