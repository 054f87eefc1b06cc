"""What the boot ROM looks for in flash: a vector table and an image definition (datasheet, section 5.9)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from mmap import mmap

from toolkit.emulation.rp2350 import chip

_BLOCK_BEGIN = 0xFFFF_DED3
_BLOCK_END = 0xAB12_3579
_SEARCHED = 4096  # bytes at the start of flash in which the first block must begin
_MAX_ITEMS = 64

_IMAGE_TYPE = 0x42
_VECTOR_TABLE = 0x03
_ENTRY_POINT = 0x44
_LAST = 0xFF
_TYPE_EXECUTABLE = 1
_CPU_ARM = 0
_CHIP_RP2350 = 1


@dataclass(frozen=True, slots=True)
class BootImage:
    """Where the boot ROM starts an image: initial stack pointer, first instruction, vector table."""

    stack: int
    entry: int
    vectors: int


def find_image(flash: bytes | mmap) -> BootImage | str:
    """The image in flash, or in a few words why it does not boot.

    Images with a partition table, a signature or a hash are not looked at more closely.
    """
    head = bytes(flash[:_SEARCHED])
    position = head.find(struct.pack("<I", _BLOCK_BEGIN))
    while position >= 0:
        items = _items(head, position + 4) if position % 4 == 0 else None
        if items is not None and _IMAGE_TYPE in items:
            return _image(flash, items)
        position = head.find(struct.pack("<I", _BLOCK_BEGIN), position + 1)
    return "flash holds no image definition"


def _items(head: bytes, position: int) -> dict[int, tuple[int, bytes]] | None:
    """Items of a block: by type, the first word's upper half and the words that follow. None where it is broken."""
    items: dict[int, tuple[int, bytes]] = {}
    words = 0
    for _ in range(_MAX_ITEMS):
        if position + 4 > len(head):
            return None
        word = int.from_bytes(head[position : position + 4], "little")
        kind = word & 0xFF
        size = word >> 8 & (0xFFFF if kind & 0x80 else 0xFF)
        if kind == _LAST:
            end = head[position + 8 : position + 12]
            return items if size == words and end == struct.pack("<I", _BLOCK_END) else None
        if size == 0:
            return None
        items[kind] = (word >> 16, head[position + 4 : position + 4 * size])
        position += 4 * size
        words += size
    return None


def _image(flash: bytes | mmap, items: dict[int, tuple[int, bytes]]) -> BootImage | str:
    kind, _ = items[_IMAGE_TYPE]
    if kind & 0xF != _TYPE_EXECUTABLE:
        return "the image in flash is not executable"
    if kind >> 8 & 7 != _CPU_ARM or kind >> 12 & 7 != _CHIP_RP2350:
        return "the image in flash is not for the RP2350's Arm cores"
    vectors = chip.XIP_BASE
    if _VECTOR_TABLE in items:
        vectors = int.from_bytes(items[_VECTOR_TABLE][1][:4], "little")
    if _ENTRY_POINT in items:
        words = items[_ENTRY_POINT][1]
        entry, stack = struct.unpack_from("<II", words)
    else:
        offset = vectors - chip.XIP_BASE
        if not 0 <= offset <= chip.FLASH_BYTES - 8:
            return "the image's vector table is not in flash"
        stack, entry = struct.unpack_from("<II", flash, offset)
    if not chip.XIP_BASE <= entry < chip.XIP_BASE + chip.FLASH_BYTES:
        return f"the image's entry point is not in flash: {entry:#010x}"
    return BootImage(stack, entry, vectors)
