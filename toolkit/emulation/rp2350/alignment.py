"""Which accesses of a basic block must be aligned, and from what their addresses are made.

Armv8-M (Architecture Reference Manual, B7.2) takes unaligned LDR, STR, LDRH and STRH of normal memory, but faults
unaligned LDRD, STRD, LDM, STM, VLDR, VSTR, VLDM, VSTM, load-acquire and exclusives, and every unaligned access to
device memory. The emulated CPU does not, so each block is read once, before it runs for the first time. An address that
follows from the registers at the block's entry becomes a check there; an address that does not (it was loaded inside
the block, or the instruction is conditional) becomes a check at the instruction itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace

ALWAYS = 14
NO_BASE = 255
_SP = 13
_PC = 15
_U32 = 0xFFFF_FFFF
_DEVICE_REGIONS = frozenset((0x4, 0x5, 0xD, 0xE, 0xF))  # address bits 31..28 of what the RP2350 maps as device memory


@dataclass(frozen=True, slots=True)
class Check:
    """A sum of registers whose low bits must be zero.

    Attributes:
        weights: two bits for each of r0..r14, how often the register counts, modulo 4.
        offset: constant to add.
        mask: bits of the sum that must be zero.
        device: whether this matters only where `base + offset` is device memory.
        base: number of the register that gives the address but for `offset`; NO_BASE where none does.
        condition: condition code of the instruction, ALWAYS where it has none.
    """

    weights: int
    offset: int
    mask: int
    device: bool = False
    base: int = NO_BASE
    condition: int = ALWAYS

    def fails(self, registers: Callable[[int], int], flags: Callable[[], int]) -> bool:
        """Whether the address is not aligned (and the instruction would execute).

        Args:
            registers: value of r0..r14 by number.
            flags: NZCV in bits 31..28.
        """
        total = self.offset
        for number in range(15):
            weight = self.weights >> 2 * number & 3
            if weight:
                total += weight * registers(number)
        if not total & self.mask:
            return False
        if self.device:
            base = registers(self.base) if self.base != NO_BASE else 0
            if (base + self.offset & _U32) >> 28 not in _DEVICE_REGIONS:
                return False
        return self.condition == ALWAYS or condition_holds(self.condition, flags())


@dataclass(frozen=True, slots=True)
class Decoded:
    """A basic block.

    Attributes:
        count: instructions in it; one skipped by an IT block counts too.
        checks: to make when it begins; with each the address of the instruction it belongs to.
        sites: to make when an instruction is reached: its address, and the check.
    """

    count: int
    checks: tuple[tuple[int, Check], ...] = ()
    sites: tuple[tuple[int, Check], ...] = ()


def condition_holds(condition: int, flags: int) -> bool:
    """Whether a condition code (Armv8-M, C1.3.1) is true for NZCV in bits 31..28."""
    n, z, c, v = flags >> 31 & 1, flags >> 30 & 1, flags >> 29 & 1, flags >> 28 & 1
    truth = (z, c, n, v, c and not z, n == v, not z and n == v, True)[condition >> 1]
    return bool(truth) != bool(condition & 1) or condition >= ALWAYS


def instruction_count(code: bytes) -> int:
    """Instructions in a run of Thumb code."""
    count = position = 0
    while position < len(code):
        position += 4 if code[position + 1] >= 0xE8 else 2
        count += 1
    return count


def decode(code: bytes, address: int, *, device: bool, constant: Callable[[int], int | None]) -> Decoded:
    """Read a basic block.

    Args:
        code: its bytes.
        address: of its first instruction.
        device: whether to check single loads and stores too, because the block is known to access devices.
        constant: the word at an address that cannot change, None for others.
    """
    if not device and not _may_need_checks(code):
        return Decoded(instruction_count(code))
    reader = _Reader(device, constant)
    position = 0
    while position < len(code):
        first = int.from_bytes(code[position : position + 2], "little")
        if first >= 0xE800:
            second = int.from_bytes(code[position + 2 : position + 4], "little")
            reader.wide(address + position, first, second)
            position += 4
        else:
            reader.narrow(address + position, first)
            position += 2
    return Decoded(reader.count, tuple(reader.checks), tuple(reader.sites))


def _may_need_checks(code: bytes) -> bool:
    halves = struct.unpack(f"<{len(code) // 2}H", code)
    return any(half >> 12 == 0xC or 0xE800 <= half < 0xEA00 or 0xEC00 <= half < 0xEE00 for half in halves)


@dataclass(frozen=True, slots=True)
class _Linear:
    """A register's value as a sum of the registers at the block's entry, right modulo 4.

    Attributes:
        weights: as in Check.
        offset: constant to add.
        base: register whose entry value plus `offset` is the value in all 32 bits; NO_BASE where there is none.
        constant: whether `offset` alone is the value in all 32 bits.
    """

    weights: int = 0
    offset: int = 0
    base: int = NO_BASE
    constant: bool = False

    def plus(self, offset: int) -> _Linear:
        return replace(self, offset=self.offset + offset & _U32)

    def add(self, other: _Linear, times: int = 1) -> _Linear:
        if other.constant:
            return self.plus(times * other.offset)
        if self.constant and times == 1:
            return other.plus(self.offset)
        weights = 0
        for shift in range(0, 30, 2):
            weights |= ((self.weights >> shift & 3) + times * (other.weights >> shift & 3) & 3) << shift
        return _Linear(weights, self.offset + times * other.offset & 3)


_MULTIPLE_OF_4 = _Linear()


def _constant(value: int) -> _Linear:
    return _Linear(0, value & _U32, NO_BASE, True)


def _entry_values() -> list[_Linear | None]:
    values: list[_Linear | None] = [_Linear(1 << 2 * number, 0, number) for number in range(15)]
    values[_SP] = _Linear(0, 0, _SP)  # bits 1..0 of SP are always zero
    values.append(None)
    return values


@dataclass(slots=True)
class _Reader:
    """Walks a block and keeps what each register holds, in terms of the registers at its entry."""

    device: bool
    constant: Callable[[int], int | None]
    count: int = 0
    checks: list[tuple[int, Check]] = field(default_factory=list)
    sites: list[tuple[int, Check]] = field(default_factory=list)
    values: list[_Linear | None] = field(default_factory=_entry_values)
    _conditions: list[int] = field(default_factory=list)

    def _set(self, number: int, value: _Linear | None) -> None:
        self.values[number] = None if self._condition != ALWAYS else value

    @property
    def _condition(self) -> int:
        return self._conditions[0] if self._conditions else ALWAYS

    def _step(self) -> None:
        self.count += 1
        if self._conditions:
            self._conditions.pop(0)

    def _access(self, at: int, rn: int, offset: int, mask: int, *, index: int = -1, shift: int = 0) -> None:
        """An access that must be aligned: at `rn + offset (+ index << shift)`."""
        if mask:
            self._need(at, rn, offset, mask, index, shift, device=False)

    def _plain(self, at: int, rn: int, offset: int, mask: int, *, index: int = -1, shift: int = 0) -> None:
        """A single load or store: must be aligned where it reaches a device."""
        if self.device and mask:
            self._need(at, rn, offset, mask, index, shift, device=True)

    def _need(self, at: int, rn: int, offset: int, mask: int, index: int, shift: int, *, device: bool) -> None:
        start = _constant(at + 4 & ~3) if rn == _PC else self.values[rn]
        value = start = start.plus(offset) if start is not None else None
        if value is not None and index >= 0:
            other = self._shifted(index, shift)
            value = None if other is None else value.add(other)
        # Which memory it is shows in the base alone: an index does not leave a block of registers.
        located = start is not None and (start.base != NO_BASE or start.constant)
        if start is not None and value is not None and (located or not device) and self._condition == ALWAYS:
            if device and start.constant and start.offset >> 28 not in _DEVICE_REGIONS:
                return
            if value.weights or value.offset & mask:
                base = start.base if value.offset == start.offset else NO_BASE
                self.checks.append((at, Check(value.weights, value.offset, mask, device and base != NO_BASE, base)))
            return
        weights = 1 << 2 * rn if rn != _SP else 0
        if index >= 0:
            weights = _Linear(weights).add(_Linear(1 << 2 * index), 1 << shift).weights
        self.sites.append((at, Check(weights, offset & _U32, mask, device, rn, self._condition)))

    # --- 16-bit instructions (Armv8-M, C2.2.1) -----------------------------------------------------------------------

    def narrow(self, at: int, op: int) -> None:
        if op >> 8 == 0xBF and op & 0xF:
            self._begin_it(op)
            self.count += 1
            return
        top = op >> 12
        if top < 4:
            self._narrow_arithmetic(op)
        elif top == 4:
            self._narrow_data(at, op)
        elif top in (5, 6, 7, 8, 9):
            self._narrow_transfer(at, op)
        elif top == 0xA:
            base = _constant(at + 4 & ~3) if not op & 0x800 else self.values[_SP]
            self._set(op >> 8 & 7, base.plus(4 * (op & 0xFF)) if base else None)
        elif top == 0xB:
            self._narrow_miscellany(op)
        elif top == 0xC:
            self._narrow_multiple(at, op)
        self._step()

    def _begin_it(self, op: int) -> None:
        first, mask = op >> 4 & 0xF, op & 0xF
        length = 4 - (mask & -mask).bit_length() + 1
        self._conditions = [first]
        for position in range(1, length):
            self._conditions.append(first & ~1 | mask >> 4 - position & 1)

    def _narrow_arithmetic(self, op: int) -> None:
        kind = op >> 11
        rd, rn = op & 7, op >> 3 & 7
        if kind == 0:  # LSL; MOV where the shift is 0
            self._set(rd, self._shifted(rn, op >> 6 & 31))
        elif kind in (1, 2):
            self._set(rd, None)
        elif kind == 3:
            self._set(rd, self._sum(rn, op >> 6 & 7, immediate=bool(op & 0x400), subtract=bool(op & 0x200)))
        elif kind == 4:
            self._set(op >> 8 & 7, _constant(op & 0xFF))
        elif kind in (6, 7):
            rd = op >> 8 & 7
            self._set(rd, self._sum(rd, op & 0xFF, immediate=True, subtract=kind == 7))

    def _narrow_data(self, at: int, op: int) -> None:
        if op >> 11 == 9:  # LDR (literal)
            word = self.constant((at + 4 & ~3) + 4 * (op & 0xFF))
            self._set(op >> 8 & 7, None if word is None else _constant(word))
        elif op >> 10 == 0x10:
            if op >> 6 & 0xF not in (8, 10, 11):  # not TST, CMP, CMN
                self._set(op & 7, None)
        else:
            rd, rm = op & 7 | op >> 4 & 8, op >> 3 & 0xF
            if rd == _PC or rm == _PC:
                self._set(rd, None)
            elif op >> 8 == 0x44:
                self._set(rd, self._sum(rd, rm, immediate=False, subtract=False))
            elif op >> 8 == 0x46:
                self._set(rd, self.values[rm])

    def _narrow_transfer(self, at: int, op: int) -> None:
        rt, rn = op & 7, op >> 3 & 7
        top = op >> 12
        if top == 5:
            kind = op >> 9 & 7
            mask = (3, 1, 0, 0, 3, 1, 0, 1)[kind]
            self._plain(at, rn, 0, mask, index=op >> 6 & 7)
            load = kind >= 3
        else:
            load = bool(op & 0x800)
            if top == 9:
                rt = op >> 8 & 7
            else:
                mask = {6: 3, 7: 0, 8: 1}[top]
                self._plain(at, rn, (op >> 6 & 31) * {6: 4, 7: 1, 8: 2}[top], mask)
        if load:
            self._set(rt, None)

    def _narrow_miscellany(self, op: int) -> None:
        if op >> 8 == 0xB0:
            offset = 4 * (op & 0x7F)
            value = self.values[_SP]
            self._set(_SP, value.plus(-offset if op & 0x80 else offset) if value else None)
        elif op >> 8 in (0xB2, 0xBA):
            self._set(op & 7, None)
        elif op >> 9 in (0x5A, 0x5E):  # PUSH, POP
            size = 4 * (op & 0x1FF).bit_count()
            value = self.values[_SP]
            self._set(_SP, value.plus(size if op >> 9 == 0x5E else -size) if value else None)
            if op >> 9 == 0x5E:
                self._clobber(op & 0xFF)

    def _narrow_multiple(self, at: int, op: int) -> None:
        rn, registers = op >> 8 & 7, op & 0xFF
        self._access(at, rn, 0, 3)
        value = self.values[rn]
        if op & 0x800:
            self._clobber(registers)
        if not (op & 0x800 and registers >> rn & 1):
            self._set(rn, value.plus(4 * registers.bit_count()) if value else None)

    # --- 32-bit instructions (Armv8-M, C2.2.3) -----------------------------------------------------------------------

    def wide(self, at: int, first: int, second: int) -> None:
        if first & 0xFE40 == 0xE800:
            self._wide_multiple(at, first, second)
        elif first & 0xFE40 == 0xE840:
            self._wide_dual(at, first, second)
        elif first & 0xFE00 == 0xEA00:
            self._wide_shifted(first, second)
        elif first & 0xFE00 == 0xEC00:
            self._wide_coprocessor(at, first, second)
        elif first & 0xF800 == 0xF000 and not second & 0x8000:
            self._wide_immediate(first, second)
        elif first & 0xFE00 == 0xF800:
            self._wide_single(at, first, second)
        else:
            self._set(second >> 12 & 0xF, None)
            self._set(second >> 8 & 0xF, None)
        self._step()

    def _wide_multiple(self, at: int, first: int, second: int) -> None:
        rn, size = first & 0xF, 4 * second.bit_count()
        down = first & 0x180 == 0x100
        self._access(at, rn, -size if down else 0, 3)
        value = self.values[rn]
        if first & 0x10:
            self._clobber(second)
        if first & 0x20 and not (first & 0x10 and second >> rn & 1):
            self._set(rn, value.plus(-size if down else size) if value else None)

    def _wide_dual(self, at: int, first: int, second: int) -> None:
        rn, rt, rt2 = first & 0xF, second >> 12 & 0xF, second >> 8 & 0xF
        load = bool(first & 0x10)
        if first & 0x120:  # LDRD, STRD
            offset = 4 * (second & 0xFF) * (1 if first & 0x80 else -1)
            self._indexed(at, rn, offset, bool(first & 0x100), bool(first & 0x20), (rt, rt2) if load else ())
        elif not first & 0x80:  # LDREX, STREX
            self._access(at, rn, 4 * (second & 0xFF), 3)
            self._set(rt if load else rt2, None)
        elif second & 0xE0:  # load-acquire, store-release, exclusives of bytes and halfwords; else a table branch
            self._access(at, rn, 0, (0, 1, 3, 0)[second >> 4 & 3])
            for number in (rt, second & 0xF):
                self._set(number, None)

    def _indexed(self, at: int, rn: int, offset: int, before: bool, back: bool, loaded: tuple[int, ...]) -> None:
        """An access at `rn` with pre- or post-indexing that must be aligned."""
        self._access(at, rn, offset if before else 0, 3)
        value = self.values[rn] if rn != _PC else None
        for number in loaded:
            self._set(number, None)
        if back and rn not in loaded:
            self._set(rn, value.plus(offset) if value else None)

    def _wide_shifted(self, first: int, second: int) -> None:
        rn, rd, rm = first & 0xF, second >> 8 & 0xF, second & 0xF
        shift = (second >> 12 & 7) << 2 | second >> 6 & 3
        left = not second & 0x30
        kind = first >> 5 & 0xF
        if kind == 2 and rn == _PC and left:
            self._set(rd, self._shifted(rm, shift))
        elif kind in (8, 13) and rd != _PC and left and rn != _PC:
            value, other = self.values[rn], self._shifted(rm, shift)
            self._set(rd, None if value is None or other is None else value.add(other, 1 if kind == 8 else -1))
        else:
            self._set(rd, None)

    def _wide_coprocessor(self, at: int, first: int, second: int) -> None:
        rn = first & 0xF
        if second & 0x0E00 != 0x0A00 or first & 0xFFE0 == 0xEC40:  # not a load or store of the FPU
            for number in (second >> 12 & 0xF, rn):
                self._set(number, None)
            return
        up, back, before = bool(first & 0x80), bool(first & 0x20), bool(first & 0x100)
        size = 4 * (second & 0xFF)
        if before and not back:  # VLDR, VSTR
            self._access(at, rn, size if up else -size, 3)
        else:
            self._indexed(at, rn, size if up else -size, before and not up, back, ())

    def _wide_immediate(self, first: int, second: int) -> None:
        rn, rd = first & 0xF, second >> 8 & 0xF
        field12 = (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF
        if first & 0x200:  # plain binary immediate
            kind = first >> 4 & 0x1F
            value = self.values[rn] if rn != _PC else None
            if kind in (0, 10):
                self._set(rd, value.plus(field12 if kind == 0 else -field12) if value else None)
            elif kind == 4:
                self._set(rd, _constant(rn << 12 | field12))
            elif kind == 12 and (low := self.values[rd]) is not None and low.constant:
                self._set(rd, _constant((rn << 12 | field12) << 16 | low.offset & 0xFFFF))
            else:
                self._set(rd, None)
            return
        kind, immediate = first >> 5 & 0xF, _expanded(field12)
        value = self.values[rn] if rn != _PC else None
        if kind == 2 and rn == _PC:
            self._set(rd, _constant(immediate))
        elif kind in (8, 13) and rd != _PC:
            self._set(rd, value.plus(immediate if kind == 8 else -immediate) if value else None)
        elif rd != _PC:
            self._set(rd, None)

    def _wide_single(self, at: int, first: int, second: int) -> None:
        rn, rt = first & 0xF, second >> 12 & 0xF
        mask = (0, 1, 3, 0)[first >> 5 & 3]
        if first & 0x80 or rn == _PC:
            offset = second & 0xFFF if first & 0x80 else -(second & 0xFFF)
            self._plain(at, rn, offset, mask)
            word = self.constant((at + 4 & ~3) + offset) if rn == _PC and mask == 3 else None
            self._load(first, rt, None if word is None else _constant(word))
        elif second & 0x800:
            offset = (second & 0xFF) * (1 if second & 0x200 else -1)
            self._plain(at, rn, offset if second & 0x400 else 0, mask)
            value = self.values[rn]
            self._load(first, rt, None)
            if second & 0x100 and not (first & 0x10 and rt == rn):
                self._set(rn, value.plus(offset) if value else None)
        else:
            self._plain(at, rn, 0, mask, index=second & 0xF, shift=second >> 4 & 3)
            self._load(first, rt, None)

    def _load(self, first: int, rt: int, value: _Linear | None) -> None:
        if first & 0x10 and rt != _PC:
            self._set(rt, value)

    # --- values ------------------------------------------------------------------------------------------------------

    def _clobber(self, registers: int) -> None:
        for number in range(15):
            if registers >> number & 1:
                self._set(number, None)

    def _shifted(self, number: int, shift: int) -> _Linear | None:
        value = self.values[number]
        if shift == 0 or number == _PC:
            return value
        if value is not None and value.constant:
            return _constant(value.offset << shift)
        if shift >= 2:
            return _MULTIPLE_OF_4
        return None if value is None else _MULTIPLE_OF_4.add(value, 2)

    def _sum(self, rn: int, operand: int, *, immediate: bool, subtract: bool) -> _Linear | None:
        value = self.values[rn]
        sign = -1 if subtract else 1
        if value is None:
            return None
        if immediate:
            return value.plus(sign * operand)
        other = self.values[operand & 0xF]
        return None if other is None else value.add(other, sign)


def _expanded(field12: int) -> int:
    """ThumbExpandImm (Armv8-M, E1.3.5)."""
    byte = field12 & 0xFF
    if field12 < 0x400:
        return (byte, byte * 0x10001, byte * 0x1000100, byte * 0x1010101)[field12 >> 8]
    value, rotation = byte | 0x80, field12 >> 7
    return (value >> rotation | value << 32 - rotation) & _U32
