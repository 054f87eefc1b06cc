"""What a static library or an executable says of itself: which operators it registers, and what it was built for."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

_MAGIC = b"!<arch>\n"
_HEADER = 60
_REGISTRY = "registered_kernels_data"

# How a registration spells an operator: a string of its own, with the overload. A program spells them apart.
_OPERATOR = re.compile(rb"(?<![\w:.])([A-Za-z_]\w*::[A-Za-z_]\w*\.\w+)\0")


@dataclass(frozen=True, slots=True)
class Target:
    """What an object file was built for.

    Attributes:
        arm: for a 32-bit Arm core; the rest is meaningless otherwise.
        architecture: number of the architecture (Tag_CPU_arch of the Arm build attributes).
        floats_in_registers: whether functions take floats in the FPU's registers (the hard-float ABI).
    """

    arm: bool
    architecture: int = 0
    floats_in_registers: bool = False


def members(library: bytes) -> Iterator[bytes]:
    """The files in a static library, without its index and its table of names; nothing when it is not one."""
    if not library.startswith(_MAGIC):
        return
    position = len(_MAGIC)
    while position + _HEADER <= len(library):
        header = library[position : position + _HEADER]
        try:
            name, size = header[:16].rstrip(), int(header[48:58])
        except ValueError:
            return
        start = position + _HEADER
        if name not in (b"/", b"//", b"/SYM64/"):
            yield library[start : start + size]
        position = start + size + size % 2


def registered_operators(path: Path) -> frozenset[str]:
    """Full names of the operators that a static library registers when a program starts.

    They are the strings in what is loaded; debug information is left aside.
    """
    names: set[bytes] = set()
    for file in members(path.read_bytes()):
        if _OPERATOR.search(file):
            names.update(name for data in _loaded(file) for name in _OPERATOR.findall(b"\0" + data))
    return frozenset(name.decode("ascii") for name in names)


def left_out(executable: Path, operators: Iterable[str]) -> tuple[str, ...]:
    """Those of the operators, sorted, that an executable does not register.

    A linker script may put strings behind code, so where a name begins cannot be seen there: only where it ends.
    """
    loaded = tuple(_loaded(executable.read_bytes()))
    return tuple(sorted(name for name in set(operators) if not any(name.encode() + b"\0" in data for data in loaded)))


def _loaded(file: bytes) -> Iterator[bytes]:
    """The sections of an object file or an executable that a board holds; nothing when it is neither."""
    try:
        for section in ELFFile(io.BytesIO(file)).iter_sections():
            if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section["sh_type"] == "SHT_PROGBITS":
                yield section.data()
    except ELFError:
        return


def target_of(path: Path) -> Target | None:
    """What a static library was built for, by its first object file; None when there is none."""
    for file in members(path.read_bytes()):
        try:
            elf = ELFFile(io.BytesIO(file))
        except ELFError:
            continue
        if elf["e_machine"] != "EM_ARM":
            return Target(arm=False)
        return _arm_target(elf)
    return None


def _arm_target(elf: ELFFile) -> Target:
    section = elf.get_section_by_name(".ARM.attributes")
    attributes = {}
    if section is not None:
        attributes = {
            attribute.tag: attribute.value
            for part in section.iter_subsections()
            for group in part.iter_subsubsections()
            for attribute in group.iter_attributes()
        }
    return Target(True, int(attributes.get("TAG_CPU_ARCH", 0)), attributes.get("TAG_ABI_VFP_ARGS", 0) == 1)


def registry_bytes(path: Path) -> int | None:
    """Bytes that a runtime library sets aside for its table of kernels; None when it does not say."""
    for file in members(path.read_bytes()):
        if _REGISTRY.encode() not in file:
            continue
        try:
            elf = ELFFile(io.BytesIO(file))
        except ELFError:
            continue
        for table in elf.iter_sections():
            if isinstance(table, SymbolTableSection):
                for symbol in table.iter_symbols():
                    if _REGISTRY in symbol.name and symbol["st_size"]:
                        return int(symbol["st_size"])
    return None
