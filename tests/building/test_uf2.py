"""UF2 images: block by block, and byte for byte what picotool makes."""

import shutil
import struct
import subprocess

import pytest

from toolkit.building.uf2 import RP2350_ARM_SECURE, write_uf2
from toolkit.errors import BuildError

# Code that ends in the middle of a page, and initial values of data that follow it there.
SOURCE = """
    .section .text, "ax"
    .global start
start:
    .rept {words}
    .word 0x12345678
    .endr
    .section .data, "aw"
    .ascii "{data}"
"""
SCRIPT = """
ENTRY(start)
MEMORY {{ FLASH : ORIGIN = {origin:#x}, LENGTH = 4M  RAM : ORIGIN = 0x20000000, LENGTH = 512K }}
SECTIONS {{
    .text : {{ *(.text) }} > FLASH
    .data : {{ *(.data) }} > RAM AT > FLASH
}}
"""


@pytest.fixture
def link(tmp_path):
    """Makes an executable of so many words of code and these characters of data."""

    def make(words, data, origin=0x10000000):
        (tmp_path / "x.s").write_text(SOURCE.format(words=words, data=data))
        (tmp_path / "x.ld").write_text(SCRIPT.format(origin=origin))
        command = ["arm-none-eabi-gcc", "-nostdlib", "-T", "x.ld", "-mcpu=cortex-m33", "x.s", "-o", "x.elf"]
        subprocess.run(command, cwd=tmp_path, check=True)
        return tmp_path / "x.elf"

    return make


def blocks(path):
    data = path.read_bytes()
    assert len(data) % 512 == 0
    for start in range(0, len(data), 512):
        block = data[start : start + 512]
        first, second, flags, address, size, number, count, family = struct.unpack_from("<8I", block)
        assert (first, second, struct.unpack_from("<I", block, 508)[0]) == (0x0A324655, 0x9E5D5157, 0x0AB16F30)
        yield flags, address, size, number, count, family, block[32:508]


def test_every_byte_is_where_the_executable_wants_it(link, tmp_path):
    write_uf2(link(100, "hello"), tmp_path / "x.uf2")
    e10, *pages = blocks(tmp_path / "x.uf2")
    assert e10[:6] == (0xA000, 0x10FFFF00, 256, 0, 2, 0xE48BFF57)
    assert e10[6][:260] == b"\xef" * 256 + bytes.fromhex("04e35799")
    assert [page[:6] for page in pages] == [
        (0x2000, 0x10000000, 256, 0, 2, RP2350_ARM_SECURE),
        (0x2000, 0x10000100, 256, 1, 2, RP2350_ARM_SECURE),
    ]
    content = b"".join(page[6][:256] for page in pages)
    assert content == (bytes.fromhex("78563412") * 100 + b"hello").ljust(512, b"\0")


@pytest.mark.skipif(shutil.which("picotool") is None, reason="picotool is not installed")
@pytest.mark.parametrize(
    ("words", "data", "origin"),
    [(1, "", 0x10000000), (64, "", 0x10000000), (100, "hello", 0x10000000), (3000, "x" * 77, 0x10000000),
     (65, "abc", 0x10001040)],
)  # fmt: skip
def test_it_is_what_picotool_makes(link, tmp_path, words, data, origin):
    elf = link(words, data, origin)
    write_uf2(elf, tmp_path / "ours.uf2")
    convert = ["picotool", "uf2", "convert", elf, tmp_path / "theirs.uf2", "--family", "rp2350-arm-s", "--abs-block"]
    subprocess.run(convert, check=True, capture_output=True)
    assert (tmp_path / "ours.uf2").read_bytes() == (tmp_path / "theirs.uf2").read_bytes()


def test_something_else_than_an_executable(tmp_path):
    (tmp_path / "x.elf").write_bytes(b"MZ" + bytes(100))
    with pytest.raises(BuildError, match="cannot read the executable"):
        write_uf2(tmp_path / "x.elf", tmp_path / "x.uf2")
    assert not (tmp_path / "x.uf2").exists()
