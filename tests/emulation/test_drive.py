"""The BOOTSEL folder: which blocks are taken, in which order, and what is said of the others."""

import random
import struct

import pytest

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.drive import Download, Drive

FAMILY = 0xE48BFF59
RP2040 = 0xE48BFF56


def block(number, total, *, family=FAMILY, address=None, fill=None, flags=0x2000):
    address = chip.XIP_BASE + 256 * number if address is None else address
    payload = bytes([fill if fill is not None else number & 0xFF]) * 256
    header = struct.pack("<8I", 0x0A324655, 0x9E5D5157, flags, address, 256, number, total, family)
    return header + payload + bytes(476 - 256) + struct.pack("<I", 0x0AB16F30)


E10 = (
    struct.pack("<8I", 0x0A324655, 0x9E5D5157, 0xA000, 0x10FFFF00, 256, 0, 2, 0xE48BFF57)
    + b"\xef" * 256
    + struct.pack("<I", 0x9957E304).ljust(220, b"\0")
    + struct.pack("<I", 0x0AB16F30)
)


class Session:
    def __init__(self, desk):
        self.flash = bytearray(b"\xff" * chip.FLASH_BYTES)
        self.erased = []
        self.said = []
        self.drive = Drive(desk, self.erase, self.program, self.said.append)

    def erase(self, offset, size):
        self.erased.append(offset)
        self.flash[offset : offset + size] = b"\xff" * size

    def program(self, offset, data):
        self.flash[offset : offset + len(data)] = data

    def write(self, data, name="image.uf2"):
        (self.drive.folder / name).write_bytes(data)
        return self.drive.poll()


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path)


def test_blocks_in_any_order(session):
    blocks = [block(number, 40) for number in range(40)]
    random.Random(4).shuffle(blocks)
    assert session.write(E10 + b"".join(blocks)) is Download.COMPLETE
    assert session.flash[: 40 * 256] == b"".join(bytes([number]) * 256 for number in range(40))
    assert session.flash[40 * 256 : 0x4000] == b"\xff" * (0x4000 - 40 * 256)
    assert sorted(session.erased) == [0, 0x1000, 0x2000]
    assert session.said == []


def test_a_file_that_grows(session):
    data = E10 + b"".join(block(number, 6) for number in range(6))
    for end in (100, 512, 1500, 2048, len(data) - 1):
        assert session.write(data[:end]) is not Download.COMPLETE
    assert session.write(data) is Download.COMPLETE
    assert session.erased == [0]


def test_other_families_are_ignored_and_said(session):
    assert session.write(b"".join(block(number, 3, family=RP2040) for number in range(3))) is Download.NOTHING
    assert session.said == ["blocks of family 0xe48bff56 are ignored: they are not for this board"]
    assert session.flash == b"\xff" * chip.FLASH_BYTES


@pytest.mark.parametrize("address", [0x20000000, 0x10400000, 0x10000080])
def test_what_is_no_page_of_flash_is_ignored_and_said(session, address):
    assert session.write(block(0, 1, address=address)) is Download.NOTHING
    assert session.said == [f"a block for {address:#010x} is ignored: it is not a page of flash"]


def test_what_is_no_uf2_is_ignored(session):
    assert session.write(b"hello" * 1000, "notes.txt") is Download.NOTHING
    assert session.said == []


def test_the_same_block_twice_counts_once(session):
    assert session.write(block(0, 2) + block(0, 2)) is Download.BEGUN
    assert session.write(block(1, 2), "rest.uf2") is Download.COMPLETE
