"""Boards from TOML files."""

import pytest

from toolkit.board import Isa, board_names, load_board
from toolkit.errors import UsageError

MINE = """
title = "mine"
port = "qemu-mps2"
cpu = "cortex-m4"
toolchain = "arm-none-eabi"
flags = ["-mcpu=cortex-m4"]
memory.flash = {origin = 0, size = 4096}
memory.ram = {origin = 0x20000000, size = 1024}
reserve = {flash = 100, ram = 10, stack = 256}
"""


@pytest.mark.parametrize("name", board_names())
def test_every_board_of_the_tree_is_complete(name):
    board = load_board(name)
    assert board.name == name
    assert board.title
    assert board.flash.size > board.reserved_flash
    assert board.ram.size > board.reserved_ram + board.stack


def test_the_first_boards_are_there():
    assert {"qemu-m33", "host"} <= set(board_names())


def test_an_unknown_board_names_the_known_ones():
    with pytest.raises(UsageError, match="no board named 'pico9'") as caught:
        load_board("pico9")
    assert "qemu-m33" in caught.value.hint


def test_a_board_file_of_the_users_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    board = load_board(str(path))
    assert (board.name, board.isa, board.ram.origin) == ("mine", Isa.DSP, 0x20000000)
    assert board.emulator is None


@pytest.mark.parametrize(
    ("line", "replacement", "complaint"),
    [
        ('cpu = "cortex-m4"', 'cpu = "z80"', "`cpu` is 'z80'"),
        ('cpu = "cortex-m4"', "", "`cpu` is missing"),
        ('cpu = "cortex-m4"', "cpu = 4", "`cpu` should be str, not int"),
        ("size = 1024", "size = -1", "`size` is negative"),
        ("size = 1024", "size = true", "`size` should be int, not bool"),
        ('port = "qemu-mps2"', 'port = "nowhere"', "`port` is 'nowhere'"),
        ('flags = ["-mcpu=cortex-m4"]', "flags = [4]", "`flags` should be a list of strings"),
        ('title = "mine"', "title = ", "not a TOML file"),
    ],
)
def test_a_mistake_in_a_board_file_is_named(tmp_path, line, replacement, complaint):
    path = tmp_path / "mine.toml"
    path.write_text(MINE.replace(line, replacement))
    with pytest.raises(UsageError) as caught:
        load_board(str(path))
    assert complaint in str(caught.value)
    assert "mine.toml" in str(caught.value)
