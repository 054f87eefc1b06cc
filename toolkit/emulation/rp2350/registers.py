"""What all blocks of registers have in common: the atomic aliases, narrow accesses, storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum

from toolkit.emulation.rp2350.hook import How, Registers

_U32 = 0xFFFF_FFFF


class Alias(IntEnum):
    """The four views of a register block (datasheet, section 2.1.3)."""

    PLAIN = 0
    XOR = 1
    SET = 2
    CLEAR = 3


class FirmwareError(Exception):
    """The firmware did what silicon answers with a fault, or what the virtual board does not have.

    Args:
        what: one sentence for the report.
        address: what was accessed, where that matters.
    """

    def __init__(self, what: str, address: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.address = address


def combined(old: int, value: int, alias: Alias) -> int:
    """A register's new value after a write through one of the aliases."""
    if alias is Alias.PLAIN:
        return value
    if alias is Alias.XOR:
        return old ^ value
    return old | value if alias is Alias.SET else old & ~value & _U32


class Block:
    """A block of registers.

    Reads and writes reach `read` and `write` with word-aligned offsets. Peripherals on the APB and AHB buses see a
    narrow write replicated over the word (section 2.1.4); blocks where bytes count override `store`.
    """

    def __init__(self) -> None:
        self.registers = Registers(self.load, self.store)

    def load(self, offset: int, size: int) -> int:
        """A read as the bus makes it: any offset, 1, 2 or 4 bytes."""
        value = self.read(offset & 0xFFC) >> 8 * (offset & 3)
        return value & (1 << 8 * size) - 1

    def store(self, offset: int, size: int, value: int) -> None:
        """A write as the bus makes it."""
        if size == 1:
            value = (value & 0xFF) * 0x0101_0101
        elif size == 2:
            value = (value & 0xFFFF) * 0x0001_0001
        self.write(offset & 0xFFC, value & _U32, Alias(offset >> 12 & 3))

    def read(self, offset: int) -> int:
        """The register at an offset; what was written where a block has nothing better to say."""
        return int(self.registers.values[offset >> 2])

    def write(self, offset: int, value: int, alias: Alias) -> None:
        """Write the register at an offset through an alias."""
        self.keep(offset, value, alias)

    def keep(self, offset: int, value: int, alias: Alias = Alias.PLAIN) -> int:
        """Store what a write makes of a register; gives its new value."""
        new = combined(int(self.registers.values[offset >> 2]), value, alias)
        self.registers.values[offset >> 2] = new
        return new

    def value(self, offset: int) -> int:
        """The stored value."""
        return int(self.registers.values[offset >> 2])

    def set(self, offset: int, value: int) -> None:
        """Change the stored value."""
        self.registers.values[offset >> 2] = value & _U32

    def stored(self, offsets: Iterable[int], how: How = How.VALUE) -> None:
        """Let the hook answer reads of these registers from the stored value."""
        for offset in offsets:
            self.registers.how[offset >> 2] = how

    def reset(self) -> None:
        """Back to the state after power-on."""
        for word in range(1024):
            self.registers.values[word] = 0


class StoredBlock(Block):
    """A block that reads back what was written.

    Args:
        initial: values after reset by offset.
        forced: bits that read as one whatever was written, by offset.
    """

    def __init__(self, initial: dict[int, int] | None = None, forced: dict[int, int] | None = None) -> None:
        super().__init__()
        self._initial = initial or {}
        self._forced = forced or {}
        self.reset()
        self.stored(offset for offset in range(0, 0x1000, 4) if offset not in self._forced)

    def read(self, offset: int) -> int:
        return self.value(offset) | self._forced.get(offset, 0)

    def reset(self) -> None:
        super().reset()
        for offset, value in self._initial.items():
            self.set(offset, value)


Level = Callable[[bool], None]
"""Sets an interrupt line."""
