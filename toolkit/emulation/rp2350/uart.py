"""UART0 and UART1: Arm's PL011 (datasheet, section 12.1), at the speed of the line.

Received bytes arrive one after another at the programmed baud rate, whatever the firmware does: what does not fit into
the FIFO is lost, as on a real line. Sent bytes leave at the same rate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from toolkit.emulation.rp2350.hook import How
from toolkit.emulation.rp2350.registers import Alias, Block
from toolkit.emulation.rp2350.timeline import Timeline

_DR = 0x00
_RSR = 0x04
_FR = 0x18
_IBRD = 0x24
_FBRD = 0x28
_LCR_H = 0x2C
_CR = 0x30
_IFLS = 0x34
_IMSC = 0x38
_RIS = 0x3C
_MIS = 0x40
_ICR = 0x44

_FR_BUSY = 1 << 3
_FR_RXFE = 1 << 4
_FR_TXFF = 1 << 5
_FR_RXFF = 1 << 6
_FR_TXFE = 1 << 7
_INT_RX = 1 << 4
_INT_TX = 1 << 5
_INT_TIMEOUT = 1 << 6
_INT_OVERRUN = 1 << 10
_DR_OVERRUN = 1 << 11
_LCR_PARITY = 1 << 1
_LCR_STOP2 = 1 << 3
_LCR_FIFO = 1 << 4
_CR_RECEIVE = 1 << 0 | 1 << 9  # UARTEN, RXE

_FIFO = 32
_LEVELS = (4, 8, 16, 24, 28)  # bytes at which IFLS 0..4 interrupts
_PERIPHERAL_IDS = {
    0xFE0: 0x11,
    0xFE4: 0x10,
    0xFE8: 0x34,
    0xFEC: 0x00,
    0xFF0: 0x0D,
    0xFF4: 0xF0,
    0xFF8: 0x05,
    0xFFC: 0xB1,
}


class Uart(Block):
    """One UART.

    Args:
        name: for its events.
        timeline: virtual time.
        line: its interrupt line.
        transmit: takes each byte that is sent.
    """

    def __init__(
        self,
        name: str,
        timeline: Timeline,
        line: Callable[[bool], None],
        transmit: Callable[[int], None],
    ) -> None:
        super().__init__()
        self._name = name
        self._timeline = timeline
        self._interrupt = line
        self._transmit = transmit
        self._incoming: deque[int] = deque()
        self._fifo: deque[int] = deque()
        self._character = 1  # cycles one character takes on the line
        self._free_at = 0  # cycle at which the transmitter will have sent everything
        self._latched = 0  # interrupts that stay until cleared
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.set(_CR, 0x300)
        self.set(_IFLS, 0x12)
        for offset, value in _PERIPHERAL_IDS.items():
            self.set(offset, value)
        self._fifo.clear()
        self._free_at = 0
        self._latched = 0
        self.stored((_FR,), How.ASK)
        self._time_character()
        self._raise()

    # --- the line ----------------------------------------------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """Bytes that are still on their way to the FIFO."""
        return len(self._incoming)

    def receive(self, data: bytes) -> None:
        """Bytes that begin to arrive now, or after those on their way."""
        self._incoming.extend(data)
        if self._incoming and not self._timeline.planned(f"{self._name} byte"):
            self._timeline.at(f"{self._name} byte", self._timeline.now + self._character, self._arrive)

    def _time_character(self) -> None:
        """How long a character takes; clk_peri is clk_sys."""
        control = self.value(_LCR_H)
        bits = 2 + 5 + (control >> 5 & 3) + bool(control & _LCR_PARITY) + bool(control & _LCR_STOP2)
        divisor = 64 * (self.value(_IBRD) & 0xFFFF) + (self.value(_FBRD) & 0x3F)
        self._character = max(1, bits * divisor // 4)

    def _depth(self) -> int:
        return _FIFO if self.value(_LCR_H) & _LCR_FIFO else 1

    def _arrive(self) -> None:
        byte = self._incoming.popleft()
        if self.value(_CR) & _CR_RECEIVE == _CR_RECEIVE:
            if len(self._fifo) < self._depth():
                self._fifo.append(byte)
                self.stored((_FR,), How.ASK)
            else:
                self._latched |= _INT_OVERRUN
                self.set(_RSR, self.value(_RSR) | 8)
        character = self._character
        if self._incoming:
            self._timeline.at(f"{self._name} byte", self._timeline.now + character, self._arrive)
        # The receive timeout comes 32 bit times after the last byte.
        self._latched &= ~_INT_TIMEOUT
        self._timeline.at(f"{self._name} timeout", self._timeline.now + 4 * character, self._time_out)
        self._raise()

    def _time_out(self) -> None:
        if self._fifo:
            self._latched |= _INT_TIMEOUT
            self._raise()

    # --- registers ---------------------------------------------------------------------------------------------------

    def read(self, offset: int) -> int:
        if offset == _DR:
            return self._take()
        if offset == _FR:
            return self._flags()
        if offset == _RIS:
            return self._raw()
        if offset == _MIS:
            return self._raw() & self.value(_IMSC)
        return self.value(offset)

    def _take(self) -> int:
        if not self._fifo:
            return 0
        value = self._fifo.popleft()
        if self.value(_RSR) & 8 and not self._fifo:
            value |= _DR_OVERRUN
        if not self._fifo:
            self._latched &= ~_INT_TIMEOUT
        self._raise()
        return value

    def _waiting(self) -> int:
        """Bytes in the transmit FIFO, the one being sent included."""
        left = self._free_at - self._timeline.now
        return 0 if left <= 0 else -(-left // self._character)

    def _flags(self) -> int:
        waiting = self._waiting()
        if waiting:
            # Firmware that asks while it sends waits for the line: let the time of one character pass.
            now = self._timeline.now
            self._timeline.skip_to(now + (self._free_at - now - 1) % self._character + 1)
            waiting -= 1
        flags = _FR_TXFE if waiting <= 1 else 0
        flags |= _FR_BUSY if waiting else 0
        flags |= _FR_TXFF if waiting > self._depth() else 0
        if not self._fifo:
            flags |= _FR_RXFE
        elif len(self._fifo) >= self._depth():
            flags |= _FR_RXFF
        if flags == _FR_TXFE | _FR_RXFE:  # until a byte comes or goes
            self.set(_FR, flags)
            self.stored((_FR,), How.POLL)
        return flags

    def write(self, offset: int, value: int, alias: Alias) -> None:
        if offset == _DR:
            self._send(value & 0xFF)
        elif offset == _RSR:
            self.set(_RSR, 0)
        elif offset == _ICR:
            self._latched &= ~value
            self._raise()
        elif offset not in (_FR, _RIS, _MIS) and offset < 0xFE0:
            self.keep(offset, value, alias)
            if offset == _LCR_H and not self.value(_LCR_H) & _LCR_FIFO:
                while len(self._fifo) > 1:
                    self._fifo.pop()
            if offset in (_IBRD, _FBRD, _LCR_H):
                self._time_character()
            if offset in (_IMSC, _CR, _IFLS, _LCR_H):
                self._raise()
                self._plan_drain()

    def _send(self, byte: int) -> None:
        self._transmit(byte)
        self.stored((_FR,), How.ASK)
        self._free_at = max(self._free_at, self._timeline.now) + self._character
        if self._waiting() > self._transmit_level():
            self._latched &= ~_INT_TX
        self._raise()
        self._plan_drain()

    def _transmit_level(self) -> int:
        return _FIFO - _LEVELS[min(self.value(_IFLS) & 7, 4)] if self.value(_LCR_H) & _LCR_FIFO else 0

    def _plan_drain(self) -> None:
        """The transmit interrupt comes when the FIFO has drained to its level."""
        if self.value(_IMSC) & _INT_TX and self._waiting() > self._transmit_level():
            when = self._free_at - self._transmit_level() * self._character
            self._timeline.at(f"{self._name} drained", when, self._drained)

    def _drained(self) -> None:
        self._latched |= _INT_TX
        self._raise()

    def _raw(self) -> int:
        level = _LEVELS[min(self.value(_IFLS) >> 3 & 7, 4)] if self.value(_LCR_H) & _LCR_FIFO else 1
        return self._latched | (_INT_RX if len(self._fifo) >= level else 0)

    def _raise(self) -> None:
        self._interrupt(bool(self._raw() & self.value(_IMSC)))
