"""Resets, clocks and power: enough for the SDK to find every clock running and every block out of reset.

Datasheet sections 7.4 (PSM), 7.5 (RESETS), 8.1 (CLOCKS), 8.2 (XOSC), 8.3 (ROSC), 8.5 (TICKS), 8.6 (PLL).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolkit.emulation.rp2350.registers import Alias, Block, FirmwareError, StoredBlock

_ALL_BLOCKS = 0x1FFF_FFFF
_RESET = 0x0
_RESET_DONE = 0x8

# Bit numbers in RESETS_RESET of the blocks that care.
RESET_IO_BANK0 = 6
RESET_PADS_BANK0 = 9
RESET_TIMER0 = 23
RESET_TIMER1 = 24
RESET_UART0 = 26
RESET_UART1 = 27
RESET_USBCTRL = 28


class Resets(Block):
    """RESETS.

    Args:
        blocks: what to call when a block is put into reset, by bit number.
    """

    def __init__(self, blocks: Mapping[int, Callable[[], None]]) -> None:
        super().__init__()
        self._blocks = blocks
        self.set(_RESET, _ALL_BLOCKS)

    def read(self, offset: int) -> int:
        if offset == _RESET_DONE:
            return ~self.value(_RESET) & _ALL_BLOCKS
        return self.value(offset)

    def write(self, offset: int, value: int, alias: Alias) -> None:
        if offset == _RESET_DONE:
            return
        before = self.value(offset)
        after = self.keep(offset, value, alias)
        if offset == _RESET:
            for bit, reset in self._blocks.items():
                if after & ~before & 1 << bit:
                    reset()


_CLK_REF_CTRL = 0x30
_CLK_SYS_CTRL = 0x3C
_FIRST_AFTER_CLOCKS = 0x78
_FC0_STATUS = 0xA4
_FC0_RESULT = 0xA8
_FC0_SRC = 0xA0
_FC0_DONE = 1 << 4


class Clocks(Block):
    """CLOCKS: a generator's SELECTED follows its CTRL at once."""

    def __init__(self) -> None:
        super().__init__()
        for divider in range(0x4, _FIRST_AFTER_CLOCKS, 12):
            self.set(divider, 0x1_0000)

    def read(self, offset: int) -> int:
        if offset < _FIRST_AFTER_CLOCKS and offset % 12 == 8:
            if offset == _CLK_REF_CTRL + 8:
                return 1 << (self.value(_CLK_REF_CTRL) & 3)
            if offset == _CLK_SYS_CTRL + 8:
                return 1 << (self.value(_CLK_SYS_CTRL) & 1)
            return 1
        if offset == _FC0_STATUS:
            return _FC0_DONE
        if offset == _FC0_RESULT:
            return _COUNTED_KHZ.get(self.value(_FC0_SRC) & 0xFF, 0) << 5
        return self.value(offset)


# What the frequency counter says of its sources (FC0_SRC), in kHz.
_COUNTED_KHZ = {1: 150_000, 2: 48_000, 3: 11_000, 5: 12_000, 8: 12_000, 9: 150_000, 10: 150_000, 11: 48_000, 12: 48_000}

_STABLE = 1 << 31
_ENABLED = 1 << 12
_LOCK = 1 << 31


def crystal() -> Block:
    """XOSC: STATUS says enabled and stable."""
    return StoredBlock(forced={0x4: _STABLE | _ENABLED})


def pll() -> Block:
    """PLL_SYS, PLL_USB: CS says locked."""
    return StoredBlock(initial={0x0: 1, 0x4: 0x2D, 0xC: 0x77000}, forced={0x0: _LOCK})


def power_states() -> Block:
    """PSM: DONE says that everything is powered."""
    return StoredBlock(forced={0xC: 0x1FF_FFFF})


_RANDOMBIT = 0x14


class RingOscillator(Block):
    """ROSC: stable; RANDOMBIT gives a sequence that is the same in every run."""

    def __init__(self) -> None:
        super().__init__()
        self._state = 0xACE1

    def read(self, offset: int) -> int:
        if offset == 0x10:
            return _STABLE | _ENABLED
        if offset == _RANDOMBIT:
            feedback = self._state ^ self._state >> 2 ^ self._state >> 3 ^ self._state >> 5
            self._state = self._state >> 1 | (feedback & 1) << 15
            return self._state & 1
        return self.value(offset)


_TICK_ENABLE = 1
_TICK_RUNNING = 2


class Ticks(Block):
    """TICKS: an enabled generator runs."""

    def read(self, offset: int) -> int:
        value = self.value(offset)
        return value | _TICK_RUNNING if offset % 12 == 0 and value & _TICK_ENABLE else value


class DirectMode(Block):
    """QMI: registers only. Direct mode (DIRECT_CSR.EN) is how firmware talks to the flash chip itself."""

    _CSR_IDLE = 1 << 11 | 1 << 16  # TXEMPTY, RXEMPTY

    def read(self, offset: int) -> int:
        return self.value(offset) | (self._CSR_IDLE if offset == 0 else 0)

    def write(self, offset: int, value: int, alias: Alias) -> None:
        if self.keep(offset, value, alias) & 1 and offset == 0:
            raise FirmwareError("the firmware uses QMI's direct mode, which is not modelled")
