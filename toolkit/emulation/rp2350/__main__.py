"""The process of a virtual Pico 2: python -m toolkit.emulation.rp2350 DESK [--uf2 FILE] [--misbehave SPEC]..."""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from toolkit.errors import DeployError, UsageError

_PR_SET_PDEATHSIG = 1


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m toolkit.emulation.rp2350", description=__doc__)
    parser.add_argument("desk", type=Path, help="folder in which the board presents itself")
    parser.add_argument("--uf2", type=Path, help="image that is in flash already")
    parser.add_argument("--elf", type=Path, help="executable with symbols, for fault reports")
    parser.add_argument("--misbehave", action="append", default=[], metavar="SPEC", help="what is to go wrong")
    parser.add_argument("--keep-flash", action="store_true", help="keep flash in DESK/flash.bin")
    parser.add_argument("--bootsel", action="store_true", help="the button is held while the board is switched on")
    parser.add_argument("--hook", choices=("auto", "c", "python"), default="auto", help="what counts instructions")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process without which the board ends")
    given = parser.parse_args(arguments)
    _die_with_parent()
    # Only noted: an exception raised while Unicorn calls back would be taken for a fault of the firmware.
    switched_off = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: switched_off.set())
    try:
        # Imported here so that a missing extra is said in a sentence.
        from toolkit.emulation.rp2350.board import Board, Options
        from toolkit.emulation.rp2350.engine import require_unicorn
        from toolkit.emulation.rp2350.misbehaviour import parse

        require_unicorn()
        for path in (given.uf2, given.elf):
            if path is not None and not path.is_file():
                raise UsageError("there is no such file", where=str(path))
        faults = tuple(parse(text) for text in given.misbehave)
        given.desk.mkdir(parents=True, exist_ok=True)
        options = Options(
            given.desk.resolve(), given.uf2, given.elf, faults, given.keep_flash, given.hook, given.bootsel
        )
        Board(options, lambda: not switched_off.is_set() and os.getppid() == given.parent).run()
    except DeployError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _die_with_parent() -> None:
    """Ask Linux to end this process when the one that started it ends, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
