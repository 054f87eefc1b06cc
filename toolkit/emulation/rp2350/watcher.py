"""Wakes the chip when a client does something, so that the desk need not be looked at all the time."""

from __future__ import annotations

import contextlib
import select
import threading

from toolkit.emulation.rp2350.desk import SerialLine
from toolkit.emulation.rp2350.hook import Hook


class Watcher:
    """A thread that sleeps until bytes come, or a client closes a port."""

    def __init__(self) -> None:
        self._events = select.epoll()
        self._hook: Hook | None = None
        threading.Thread(target=self._watch, daemon=True).start()

    def watch(self, hook: Hook) -> None:
        """Wake this chip from now on."""
        self._hook = hook

    def add(self, line: SerialLine) -> None:
        """Watch a line until it is closed. Edges only: each change is told once."""
        self._events.register(line, select.EPOLLIN | select.EPOLLET)

    def _watch(self) -> None:
        while True:
            with contextlib.suppress(InterruptedError):
                self._events.poll()
            if self._hook is not None:
                self._hook.wake = 1
