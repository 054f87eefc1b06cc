"""A linked runner, and what it takes of the board's memories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, Symbol, SymbolTableSection

from toolkit.board import Board
from toolkit.errors import BuildError
from toolkit.rendering.names import ARENA_SYMBOL, DATA_PREFIX, HEAP_SECTION, STACK_SECTION, STACK_SYMBOL

_SRAM = range(0x20000000, 0x40000000)
"""Addresses of RAM on every Cortex-M."""


@dataclass(frozen=True, slots=True)
class Flash:
    """Bytes in flash: the model's constants, and all else (machine code, tables, initial values)."""

    code: int
    constants: int

    @property
    def total(self) -> int:
        return self.code + self.constants


@dataclass(frozen=True, slots=True)
class Ram:
    """Bytes in RAM: the model's arena, all other static data, and what is set aside for the stack."""

    arena: int
    static: int
    stack: int


@dataclass(frozen=True, slots=True)
class Image:
    """A linked runner.

    Attributes:
        elf: the executable.
        project: folder of the project it was built from.
        board: name of the board it is for.
        flash, ram: sizes by part.
    """

    elf: Path
    project: Path
    board: str
    flash: Flash
    ram: Ram


def read_image(elf: Path, project: Path, board: Board) -> Image:
    """Sizes of a linked runner, from its sections and symbols.

    Raises:
        BuildError: the file is not an ELF executable of ours.
    """
    try:
        with elf.open("rb") as stream:
            flash, ram = _sizes(ELFFile(stream), board)
    except (OSError, ELFError) as error:
        raise BuildError(f"cannot read the executable: {error}", where=str(elf), hint="Build again.") from None
    return Image(elf, project, board.name, flash, ram)


def _sizes(elf: ELFFile, board: Board) -> tuple[Flash, Ram]:
    stored = static = stack = 0
    for section in elf.iter_sections():
        size = section["sh_size"]
        allocated = bool(section["sh_flags"] & SH_FLAGS.SHF_ALLOC)
        if section.name.startswith(STACK_SECTION):
            stack += size
        elif section.name == HEAP_SECTION:
            static += size
        elif allocated:
            stored += 0 if section["sh_type"] == "SHT_NOBITS" else size
            static += size if _in_ram(section, board) else 0
    symbols = [
        symbol
        for table in elf.iter_sections()
        if isinstance(table, SymbolTableSection)
        for symbol in table.iter_symbols()
    ]
    constants = sum(symbol["st_size"] for symbol in symbols if symbol.name.startswith(DATA_PREFIX))
    arena = _array_size(symbols, ARENA_SYMBOL)
    array = _array_size(symbols, STACK_SYMBOL)
    ram = Ram(arena=arena, static=static - arena - array, stack=stack + array)
    return Flash(code=stored - constants, constants=constants), ram


def _in_ram(section: Section, board: Board) -> bool:
    """By address on a board (what is copied to RAM may be read-only); by what the section says on this computer."""
    if board.toolchain == "host":
        return bool(section["sh_flags"] & SH_FLAGS.SHF_WRITE)
    if board.arduino is not None:  # where in RAM a sketch lies is for its core to say: what the architecture calls SRAM
        return bool(section["sh_addr"] in _SRAM)
    return bool(board.ram.origin <= section["sh_addr"] < board.ram.origin + board.ram.size)


def _array_size(symbols: list[Symbol], name: str) -> int:
    return sum(
        symbol["st_size"] for symbol in symbols if symbol["st_info"]["type"] == "STT_OBJECT" and name in symbol.name
    )
