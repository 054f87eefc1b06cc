"""The watchdog, with the scratch registers that outlive a reset (datasheet, section 12.9)."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.registers import Alias, Block
from toolkit.emulation.rp2350.timeline import Timeline

_CTRL = 0x00
_LOAD = 0x04
_REASON = 0x08
_SCRATCH0 = 0x0C
SCRATCHES = 8

_CTRL_TRIGGER = 1 << 31
_CTRL_ENABLE = 1 << 30
_CTRL_TIME = 0xFF_FFFF
_CTRL_AFTER_RESET = 0x0700_0000  # the three PAUSE bits

REASON_TIMER = 1
REASON_FORCE = 2
_EVENT = "watchdog"


class Watchdog(Block):
    """WATCHDOG.

    Args:
        timeline: virtual time.
        scratch: the eight scratch registers, as the last boot left them.
        reason: REASON after this boot.
        bite: called with REASON when the chip is to be reset.
    """

    def __init__(self, timeline: Timeline, scratch: list[int], reason: int, bite: Callable[[int], None]) -> None:
        super().__init__()
        self._timeline = timeline
        self._bite = bite
        self._until = 0
        self.set(_CTRL, _CTRL_AFTER_RESET)
        self.set(_REASON, reason)
        for number, value in enumerate(scratch):
            self.set(_SCRATCH0 + 4 * number, value)
        self.stored(range(_REASON, _SCRATCH0 + 4 * SCRATCHES, 4))

    @property
    def scratch(self) -> list[int]:
        return [self.value(_SCRATCH0 + 4 * number) for number in range(SCRATCHES)]

    def read(self, offset: int) -> int:
        if offset == _CTRL:
            left = max(0, self._until - self._timeline.now) // chip.CYCLES_PER_US
            return self.value(_CTRL) & ~_CTRL_TIME | left & _CTRL_TIME
        return self.value(offset)

    def write(self, offset: int, value: int, alias: Alias) -> None:
        if offset == _REASON:
            return
        new = self.keep(offset, value, alias)
        if offset == _CTRL and new & _CTRL_TRIGGER:
            self._bite(REASON_FORCE)
        elif offset == _CTRL and not new & _CTRL_ENABLE:
            self._timeline.cancel(_EVENT)
        elif offset == _LOAD or (offset == _CTRL and not self._timeline.planned(_EVENT)):
            self._until = self._timeline.now + (self.value(_LOAD) & _CTRL_TIME) * chip.CYCLES_PER_US
            if self.value(_CTRL) & _CTRL_ENABLE:
                self._timeline.at(_EVENT, self._until, lambda: self._bite(REASON_TIMER))
