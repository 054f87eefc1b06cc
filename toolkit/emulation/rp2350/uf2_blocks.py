"""UF2 as the boot ROM reads it: one 512-byte block at a time (datasheet, section 5.5.2)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

BLOCK_BYTES = 512
RP2350_ARM_SECURE = 0xE48B_FF59  # the family of images for the Arm cores, Secure
_HEADER = struct.Struct("<8I")
_DATA_BYTES = 476
_MAGIC = (0x0A32_4655, 0x9E5D_5157)
_MAGIC_END = 0x0AB1_6F30
_FLAG_NOT_FLASH = 0x0000_0001
_FLAG_FAMILY = 0x0000_2000
_FLAG_EXTENSIONS = 0x0000_8000
_EXTENSION_IGNORE = 0x9957_E304


@dataclass(frozen=True, slots=True)
class Block:
    """One block.

    Attributes:
        address: where its payload goes.
        payload: usually 256 bytes.
        number, total: its place among the blocks of its file.
        family: which chips it is for; 0 where it does not say.
        for_flash: False for blocks that are marked as comments.
        ignorable: whether it only works around erratum RP2350-E10 (appendix E).
    """

    address: int
    payload: bytes
    number: int
    total: int
    family: int
    for_flash: bool
    ignorable: bool


def parse_block(data: bytes) -> Block | None:
    """A block from its 512 bytes; None where they are not one."""
    first, second, flags, address, size, number, total, family = _HEADER.unpack_from(data)
    (end,) = struct.unpack_from("<I", data, BLOCK_BYTES - 4)
    if (first, second) != _MAGIC or end != _MAGIC_END or size > _DATA_BYTES:
        return None
    begin = _HEADER.size
    extension = struct.unpack_from("<I", data, begin + size)[0] if size <= _DATA_BYTES - 4 else 0
    return Block(
        address,
        data[begin : begin + size],
        number,
        total,
        family if flags & _FLAG_FAMILY else 0,
        not flags & _FLAG_NOT_FLASH,
        bool(flags & _FLAG_EXTENSIONS) and extension == _EXTENSION_IGNORE,
    )
