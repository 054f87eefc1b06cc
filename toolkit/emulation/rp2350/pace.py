"""How virtual time keeps step with the clock on the wall while the firmware waits.

Executing takes the time it takes. Sleeping takes as long as it would on a desk, so that a timeout of the firmware's is
as long for the computer at the other end of the cable; small delays of the emulation are caught up, long ones
forgotten.
"""

from __future__ import annotations

import time

from toolkit.emulation.rp2350 import chip

_CATCH_UP_S = 0.005
_NEGLIGIBLE_S = 0.0005
_QUIET_SLICES = 3
_MAX_BACKOFF = 16
_REST_S = 0.004
_SLICE = 500_000
_SHORT_SLICE = 10_000
_POLLS_PER_INSTRUCTION = 1 / 400


class Pace:
    """Since one boot."""

    def __init__(self) -> None:
        self._lead = time.monotonic()  # the wall's time when virtual time was zero, delays left out
        self._quiet = 0
        self._count = 0
        self._idle = False
        self._backoff = 1
        self._next_probe = 1

    @property
    def slice(self) -> int:
        """Instructions to execute before the next look at the desk."""
        return _SHORT_SLICE if self._idle or self._quiet >= _QUIET_SLICES else _SLICE

    def wait_for(self, now: int, target: int) -> float:
        """Seconds to wait on the desk before virtual time may be `target` (cycles; it is `now`)."""
        wall = time.monotonic()
        behind = wall - (self._lead + now / chip.CPU_HZ)
        if behind > _CATCH_UP_S:
            self._lead += behind - _CATCH_UP_S
            behind = _CATCH_UP_S
        seconds = (target - now) / chip.CPU_HZ - behind
        return seconds if seconds > _NEGLIGIBLE_S else 0.0

    def rest_until(self, now: int, count: int, polls: int, moved: bool) -> int:
        """Until when (cycles) nothing need be executed, because the firmware does nothing but ask for input.

        Args:
            now: cycle.
            count: instructions executed so far.
            polls: reads of registers that show waiting, in the last slice.
            moved: whether bytes moved meanwhile.
        """
        executed, self._count = count - self._count, count
        if polls <= executed * _POLLS_PER_INSTRUCTION:
            self._quiet = 0
            return 0
        self._quiet = 0 if moved else self._quiet + 1
        return now + int(_REST_S * chip.CPU_HZ) if self._quiet >= _QUIET_SLICES else now

    def may_probe(self, moved: bool) -> bool:
        """Whether it is worth a look if the firmware does nothing at all: rarely while it computes."""
        if moved:
            self._idle = False
            return False
        self._next_probe -= 1
        return self._next_probe <= 0

    def probed(self, idle: bool) -> bool:
        """Take note of what a look gave, and give it back."""
        self._idle = idle
        self._backoff = 1 if idle else min(2 * self._backoff, _MAX_BACKOFF)
        self._next_probe = self._backoff
        return idle
