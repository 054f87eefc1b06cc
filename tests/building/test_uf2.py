"""UF2 images: block by block what the format and the RP2350's bootloader ask for."""

import struct
import subprocess

import pytest

from toolkit.building.tools import ARM_GCC, require
from toolkit.building.uf2 import write_uf2
from toolkit.errors import BuildError

SCRIPT = """
MEMORY { FLASH : ORIGIN = 0x10000000, LENGTH = 4M  RAM : ORIGIN = 0x20000000, LENGTH = 512K }
SECTIONS {
    .text : { *(.text) } > FLASH
    .data : { *(.data) } > RAM AT > FLASH
    .bss (NOLOAD) : { *(.bss) } > RAM
    .far 0x10003f10 : { *(.far) } > FLASH
}
"""
SOURCE = """
.syntax unified
.thumb
.text
.rept 300
.word 0x12345678
.endr
.data
.word 0xcafe0001, 0xcafe0002
.section .far, "a"
.ascii "far away"
.bss
.space 1000
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """(ELF, its bytes by address as objcopy sees them, UF2 blocks)"""
    folder = tmp_path_factory.mktemp("uf2")
    (folder / "a.ld").write_text(SCRIPT)
    (folder / "a.s").write_text(SOURCE)
    tools = require(ARM_GCC).parent
    for command in (
        ["as", "-mcpu=cortex-m33", "-o", folder / "a.o", folder / "a.s"],
        ["ld", "-T", folder / "a.ld", "-o", folder / "a.elf", folder / "a.o"],
        ["objcopy", "-O", "binary", "--gap-fill", "0xa5", folder / "a.elf", folder / "a.bin"],
    ):
        subprocess.run([tools / f"arm-none-eabi-{command[0]}", *command[1:]], check=True)
    write_uf2(folder / "a.elf", folder / "a.uf2")
    data = (folder / "a.uf2").read_bytes()
    assert len(data) % 512 == 0
    return folder / "a.bin", [data[start : start + 512] for start in range(0, len(data), 512)]


def test_every_block_is_framed(image):
    for block in image[1]:
        assert struct.unpack_from("<2I", block) == (0x0A324655, 0x9E5D5157)
        assert struct.unpack_from("<I", block, 16) == (256,)
        assert struct.unpack_from("<I", block, 508) == (0x0AB16F30,)


def test_the_first_block_works_around_erratum_e10(image):
    """RP2350 datasheet, appendix E: an absolute block at the end of the flash window, which the bootloader skips."""
    first = image[1][0]
    assert struct.unpack_from("<6I", first, 8) == (0xA000, 0x10FFFF00, 256, 0, 2, 0xE48BFF57)
    assert first[32 : 32 + 256] == b"\xef" * 256
    assert first[0x120:0x124] == bytes((0x04, 0xE3, 0x57, 0x99))
    assert first[0x124:508] == bytes(508 - 0x124)


def test_the_pages_hold_the_program_and_zeros(image):
    binary, blocks = image
    expected = bytearray(binary.read_bytes().ljust(0x4000, b"\xa5"))
    headers = [struct.unpack_from("<8I", block) for block in blocks[1:]]
    assert [header[3] for header in headers] == [0x10000000 + 256 * page for page in (0, 1, 2, 3, 4, 0x3F)]
    assert [header[5] for header in headers] == list(range(6))
    assert {(header[2], header[6], header[7]) for header in headers} == {(0x2000, 6, 0xE48BFF59)}
    loaded = 300 * 4 + 8
    for header, block in zip(headers, blocks[1:], strict=True):
        offset = header[3] - 0x10000000
        page = bytes(expected[offset : offset + 256])
        if offset == 0x400:
            page = page[: loaded - 0x400].ljust(256, b"\0")
        if offset == 0x3F00:
            page = bytes(0x10) + page[0x10:0x18] + bytes(256 - 0x18)
        assert block[32:288] == page, hex(offset)
        assert block[288:508] == bytes(220)


def test_what_is_no_executable_is_refused(tmp_path):
    (tmp_path / "a.elf").write_text("not an ELF")
    with pytest.raises(BuildError, match="cannot read the executable"):
        write_uf2(tmp_path / "a.elf", tmp_path / "a.uf2")
    assert not (tmp_path / "a.uf2").exists()
