"""UF2: the file format that an RP2350's bootloader takes (github.com/microsoft/uf2), made from an ELF executable."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from toolkit.errors import BuildError

RP2350_ARM_SECURE = 0xE48BFF59
"""Family id of images for the RP2350's Arm cores, secure."""

_ABSOLUTE = 0xE48BFF57
_PAGE = 256
_MAGIC = (0x0A324655, 0x9E5D5157, 0x0AB16F30)
_FAMILY_PRESENT = 0x2000
_EXTENSIONS_PRESENT = 0x8000
_IGNORE_BLOCK = 0x9957E304  # extension tag of the block below


def write_uf2(elf: Path, uf2: Path) -> None:
    """Convert an executable for an RP2350's Arm cores; byte-identical to what picotool makes of it.

    The first block works around erratum RP2350-E10: it goes to the end of the flash window and is ignored.

    Args:
        elf: executable; its loadable segments are placed by their physical addresses, in pages of 256 bytes.
        uf2: file to write, whole or not at all.

    Raises:
        BuildError: the file is not an ELF executable.
    """
    try:
        with elf.open("rb") as stream:
            pages = _pages(ELFFile(stream))
    except (OSError, ELFError) as error:
        raise BuildError(f"cannot read the executable: {error}", where=str(elf), hint="Build again.") from None
    blocks = [_e10_block()]
    blocks += [
        _block(_FAMILY_PRESENT, address, number, len(pages), RP2350_ARM_SECURE, data)
        for number, (address, data) in enumerate(pages)
    ]
    part = uf2.with_name(f".{uf2.name}.part")
    part.write_bytes(b"".join(blocks))
    part.replace(uf2)


def _pages(elf: ELFFile) -> list[tuple[int, bytes]]:
    """Address and bytes of every page that a loadable segment touches, in ascending order."""
    pages: dict[int, bytearray] = {}
    for address, data in _segments(elf):
        for start in range(address - address % _PAGE, address + len(data), _PAGE):
            page = pages.setdefault(start, bytearray(_PAGE))
            low, high = max(start, address), min(start + _PAGE, address + len(data))
            page[low - start : high - start] = data[low - address : high - address]
    return [(address, bytes(pages[address])) for address in sorted(pages)]


def _segments(elf: ELFFile) -> Iterable[tuple[int, bytes]]:
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
            yield segment["p_paddr"], segment.data()


def _e10_block() -> bytes:
    payload = b"\xef" * _PAGE + struct.pack("<I", _IGNORE_BLOCK)
    return _block(_FAMILY_PRESENT | _EXTENSIONS_PRESENT, 0x10FFFF00, 0, 2, _ABSOLUTE, payload)


def _block(flags: int, address: int, number: int, count: int, family: int, payload: bytes) -> bytes:
    header = struct.pack("<8I", _MAGIC[0], _MAGIC[1], flags, address, _PAGE, number, count, family)
    return header + payload.ljust(476, b"\0") + struct.pack("<I", _MAGIC[2])
