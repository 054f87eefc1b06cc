"""Processes that this one has started, as Linux lists them."""

import os
from pathlib import Path


def children() -> set[int]:
    """Those that still run, whichever thread has started them."""
    found: set[int] = set()
    for listed in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        try:
            found |= {int(word) for word in listed.read_text(encoding="utf-8").split()}
        except OSError:
            continue  # the thread has ended meanwhile
    return found


def named(name: str) -> list[int]:
    """Those of a name."""
    found = []
    for process in children():
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(Path(word.decode(errors="replace")).name == name for word in words[:5]):
            found.append(process)
    return found


def open_lines() -> int:
    """How many ends of pseudo-terminals this process has open."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            found += str(link.readlink()).startswith(("/dev/pts/", "/dev/ptmx"))
        except OSError:
            continue  # the listing's own, closed by now
    return found
