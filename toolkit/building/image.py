"""A linked runner, and what it takes of the board's memories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from toolkit.errors import BuildError
from toolkit.rendering.names import ARENA_SYMBOL, DATA_PREFIX, STACK_SECTION, STACK_SYMBOL


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


def read_image(elf: Path, project: Path, board: str) -> Image:
    """Sizes of a linked runner, from its sections and symbols.

    Raises:
        BuildError: the file is not an ELF executable of ours.
    """
    try:
        with elf.open("rb") as stream:
            flash, ram = _sizes(ELFFile(stream))
    except (OSError, ELFError) as error:
        raise BuildError(f"cannot read the executable: {error}", where=str(elf), hint="Build again.") from None
    return Image(elf, project, board, flash, ram)


def _sizes(elf: ELFFile) -> tuple[Flash, Ram]:
    stored = 0
    static = 0
    stack = 0
    for section in elf.iter_sections():
        flags = section["sh_flags"]
        if not flags & SH_FLAGS.SHF_ALLOC:
            continue
        size = section["sh_size"]
        if section.name == STACK_SECTION:
            stack += size
            continue
        if section["sh_type"] != "SHT_NOBITS":
            stored += size
        if flags & SH_FLAGS.SHF_WRITE:
            static += size
    constants = 0
    arena = 0
    array = 0
    for table in elf.iter_sections():
        if not isinstance(table, SymbolTableSection):
            continue
        for symbol in table.iter_symbols():
            if symbol.name.startswith(DATA_PREFIX):
                constants += symbol["st_size"]
            elif symbol["st_info"]["type"] == "STT_OBJECT" and ARENA_SYMBOL in symbol.name:
                arena += symbol["st_size"]
            elif symbol["st_info"]["type"] == "STT_OBJECT" and STACK_SYMBOL in symbol.name:
                array += symbol["st_size"]
    ram = Ram(arena=arena, static=static - arena - array, stack=stack + array)
    return Flash(code=stored - constants, constants=constants), ram
