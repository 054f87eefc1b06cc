"""The command line: words in, calls of the other rooms, tables and errors out."""

from __future__ import annotations

import signal
import sys
from types import FrameType


def main() -> None:
    """Entry point of the `deploy` command."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        from toolkit.cli.app import run
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run(sys.argv[1:]))


def _terminate(signum: int, _: FrameType | None) -> None:
    """End as Ctrl-C does, by an exception: what was started is stopped, what was begun is tidied up."""
    sys.exit(128 + signum)
