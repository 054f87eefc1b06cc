"""TIMER0 and TIMER1: a 64-bit microsecond counter with four alarms (datasheet, section 12.8)."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.hook import How
from toolkit.emulation.rp2350.registers import Alias, Block, combined
from toolkit.emulation.rp2350.timeline import Timeline

_TIMEHR = 0x08
_TIMELR = 0x0C
_ALARM0 = 0x10
_ARMED = 0x20
_TIMERAWH = 0x24
_TIMERAWL = 0x28
_INTR = 0x3C
_INTE = 0x40
_INTF = 0x44
_INTS = 0x48

_ALARMS = 4
_U32 = 0xFFFF_FFFF


class Timer(Block):
    """One timer.

    Args:
        name: for its events.
        timeline: virtual time.
        lines: the interrupt lines of the four alarms.
    """

    def __init__(self, name: str, timeline: Timeline, lines: list[Callable[[bool], None]]) -> None:
        super().__init__()
        self._name = name
        self._timeline = timeline
        self._lines = lines
        self._latched_high = 0
        self._armed = 0
        self._raw = 0
        self.stored((_TIMERAWL,), How.TIME_LOW)
        self.stored((_TIMERAWH,), How.TIME_HIGH)
        self.stored(range(_ALARM0, _ALARM0 + 4 * _ALARMS, 4))

    def reset(self) -> None:
        super().reset()
        for alarm in range(_ALARMS):
            self._disarm(alarm)
        self._raw = 0
        self._raise()

    def read(self, offset: int) -> int:
        if offset == _TIMELR:
            now = self._timeline.now_us
            self._latched_high = now >> 32
            return now & _U32
        if offset == _TIMEHR:
            return self._latched_high
        if offset == _ARMED:
            return self._armed
        if offset == _INTR:
            return self._raw
        if offset == _INTS:
            return self._status()
        return self.value(offset)

    def write(self, offset: int, value: int, alias: Alias) -> None:
        if offset == _ARMED:
            for alarm in range(_ALARMS):
                if value >> alarm & 1:
                    self._disarm(alarm)
        elif offset == _INTR:
            self._raw &= ~value
            self._raise()
        else:
            new = self.keep(offset, combined(self.value(offset), value, alias))
            if _ALARM0 <= offset < _ALARM0 + 4 * _ALARMS:
                self._arm((offset - _ALARM0) // 4, new)
            elif offset in (_INTE, _INTF):
                self._raise()

    def _arm(self, alarm: int, low_word: int) -> None:
        """An alarm fires when the counter's low word equals it."""
        now = self._timeline.now_us
        when = now & ~_U32 | low_word
        if when < now:
            when += 1 << 32
        self._armed |= 1 << alarm
        self._timeline.at(f"{self._name} alarm {alarm}", when * chip.CYCLES_PER_US, lambda: self._fire(alarm))

    def _disarm(self, alarm: int) -> None:
        self._armed &= ~(1 << alarm)
        self._timeline.cancel(f"{self._name} alarm {alarm}")

    def _fire(self, alarm: int) -> None:
        self._armed &= ~(1 << alarm)
        self._raw |= 1 << alarm
        self._raise()

    def _status(self) -> int:
        return (self._raw | self.value(_INTF)) & self.value(_INTE)

    def _raise(self) -> None:
        status = self._status()
        for alarm, line in enumerate(self._lines):
            line(bool(status >> alarm & 1))
