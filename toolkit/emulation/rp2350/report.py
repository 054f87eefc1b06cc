"""What a board that stopped has to say: registers, and by which functions it got there."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.engine import LR, PC, SP
from toolkit.emulation.rp2350.machine import Machine

_STACK_WORDS = 1024  # how far up the stack return addresses are looked for
_MAX_FRAMES = 16
_ROW = 4
_EXCEPTION_RETURN = 0xFFFF_FF00


@dataclass(frozen=True, slots=True)
class Symbols:
    """Functions by address: start addresses in order, and for each its end and name."""

    starts: tuple[int, ...] = ()
    functions: tuple[tuple[int, str], ...] = ()

    def name(self, address: int) -> str:
        """`function+0x12`, or nothing where no function is known."""
        position = bisect_right(self.starts, address) - 1
        if position < 0 or address >= self.functions[position][0]:
            return ""
        return f"{self.functions[position][1]}+{address - self.starts[position]:#x}"


def read_symbols(elf: Path | None) -> Symbols:
    """The functions of an executable; none where there is no such file."""
    if elf is None:
        return Symbols()
    found: dict[int, tuple[int, str]] = {}
    try:
        with elf.open("rb") as stream:
            for table in ELFFile(stream).iter_sections():
                if not isinstance(table, SymbolTableSection):
                    continue
                for symbol in table.iter_symbols():
                    if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF":
                        start = symbol["st_value"] & ~1
                        found[start] = (start + max(2, symbol["st_size"]), symbol.name)
    except (OSError, ELFError):
        return Symbols()
    starts = tuple(sorted(found))
    return Symbols(starts, tuple(found[start] for start in starts))


def describe(machine: Machine, symbols: Symbols) -> str:
    """The report of a machine that halted."""
    fault, engine = machine.fault, machine.engine
    values = [engine.read(number) for number in range(16)]
    pc = values[PC]
    code = engine.memory(pc, 4) if _is_code(pc) else None
    lines = [f"The firmware was stopped: {fault.what if fault else 'for no known reason'}."]
    if fault is not None and fault.address is not None:
        lines.append(f"Accessed: {chip.describe(fault.address)}")
    shown = " ".join(f"{code[i + 1]:02x}{code[i]:02x}" for i in (0, 2)) if code else "not readable"
    lines.append(f"At {_place(pc, symbols)}, after {machine.instructions:,} instructions; code there: {shown}")
    names = [*(f"r{number}" for number in range(13)), "sp", "lr", "pc"]
    cells = [f"{name:>4} {value:08x}" for name, value in zip(names, values, strict=True)]
    lines += ["  ".join(cells[row : row + _ROW]) for row in range(0, 16, _ROW)]
    xpsr = engine.xpsr
    masks = engine.masks()
    lines.append(
        f"xpsr {xpsr:08x} (exception {xpsr & 0x1FF})  control {engine.control:x}  primask {masks.primask:x}  "
        f"basepri {masks.basepri:02x}"
    )
    lines.append("Return addresses, from the innermost call; those from the stack may be stale:")
    lines += [f"  {_place(address, symbols)}" for address in _trace(machine, values)]
    return "\n".join(lines)


def _place(address: int, symbols: Symbols) -> str:
    name = symbols.name(address)
    return f"{address:#010x} {name}".rstrip()


def _is_code(address: int) -> bool:
    in_flash = chip.XIP_BASE <= address < chip.XIP_BASE + chip.FLASH_BYTES
    return in_flash or chip.SRAM_BASE <= address < chip.SRAM_BASE + chip.SRAM_BYTES


def _trace(machine: Machine, values: list[int]) -> list[int]:
    """The link register, then every word on the stack that follows a call instruction."""
    frames: list[int] = []
    engine = machine.engine
    if values[LR] < _EXCEPTION_RETURN and _follows_call(machine, values[LR]):
        frames.append(values[LR] & ~1)
    top = values[SP]
    end = min(chip.SRAM_BASE + chip.SRAM_BYTES, top + 4 * _STACK_WORDS)
    if not chip.SRAM_BASE <= top < end:
        return frames
    stack = engine.memory(top, end - top) or b""
    for position in range(0, len(stack) - 3, 4):
        word = int.from_bytes(stack[position : position + 4], "little")
        if len(frames) < _MAX_FRAMES and _follows_call(machine, word) and word & ~1 not in frames[-1:]:
            frames.append(word & ~1)
    return frames


def _follows_call(machine: Machine, address: int) -> bool:
    """Whether a word looks like a return address: odd, and behind a BL or BLX."""
    place = address & ~1
    if not address & 1 or not _is_code(place):
        return False
    code = machine.engine.memory(place - 4, 4)
    if code is None:
        return False
    first, second = int.from_bytes(code[:2], "little"), int.from_bytes(code[2:], "little")
    return (first & 0xF800 == 0xF000 and second & 0xD000 == 0xD000) or second & 0xFF87 == 0x4780
