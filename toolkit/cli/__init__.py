"""The command line: words in, calls of the other rooms, tables and errors out."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `deploy` command."""
    from toolkit.cli.app import run

    sys.exit(run(sys.argv[1:]))
