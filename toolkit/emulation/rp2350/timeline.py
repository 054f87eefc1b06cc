"""Virtual time: executed instructions plus what the CPU slept, and what is to happen when."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.hook import NEVER, Hook


class Timeline:
    """Events by name, at cycles of the 150 MHz clock. One executed instruction is one cycle."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._events: dict[str, tuple[int, Callable[[], None]]] = {}

    @property
    def now(self) -> int:
        """Cycles since the board booted."""
        return self._hook.count + self._hook.skipped

    @property
    def now_us(self) -> int:
        """Microseconds since the board booted."""
        return self.now // chip.CYCLES_PER_US

    def at(self, name: str, when: int, action: Callable[[], None]) -> None:
        """Do something at a cycle; an event of the same name is replaced."""
        self._events[name] = (when, action)
        deadline = max(0, when - self._hook.skipped)
        if deadline < self._hook.deadline:
            self._hook.deadline = deadline

    def after_us(self, name: str, microseconds: float, action: Callable[[], None]) -> None:
        """Do something after a time."""
        self.at(name, self.now + int(microseconds * chip.CYCLES_PER_US), action)

    def cancel(self, name: str) -> None:
        self._events.pop(name, None)

    def planned(self, name: str) -> bool:
        return name in self._events

    def next(self) -> int | None:
        """Cycle of the next event."""
        return min((when for when, _ in self._events.values()), default=None)

    def run_due(self) -> None:
        """Do what is due, earliest first."""
        while True:
            now = self.now
            due = [(when, name) for name, (when, _) in self._events.items() if when <= now]
            if not due:
                return
            _, name = min(due)
            _, action = self._events.pop(name)
            action()

    def limit(self, slice_end: int) -> None:
        """Set the hook's deadline: the next event, or a count of instructions, whichever is first."""
        when = self.next()
        deadline = NEVER if when is None else max(0, when - self._hook.skipped)
        self._hook.deadline = min(deadline, slice_end)

    def skip_to(self, cycle: int) -> None:
        """Let time pass without executing."""
        if cycle > self.now:
            self._hook.skipped += cycle - self.now
            when = self.next()
            if when is not None:
                self._hook.deadline = min(self._hook.deadline, max(0, when - self._hook.skipped))
