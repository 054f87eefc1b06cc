"""How much a sketch may take of a board is what its core's `boards.txt` says."""

import json
import subprocess
from dataclasses import replace

import pytest

from tests.arduino.cores import Cli, details
from tests.conftest import GOLDEN, golden_plan
from toolkit.board import board_names, load_board
from toolkit.building import read_image, with_core_limits
from toolkit.cli.app import run
from toolkit.errors import PlanError, ToolError
from toolkit.planning import parts
from toolkit.planning.fit import check_fit
from toolkit.resources import resource

NANO33BLE = "arduino:mbed_nano:nano33ble"

PUBLISHED = {
    "nano33ble": (983040, 262144),
    "nano-rp2040": (16777216, 270336),
    "giga-r1": (1966080, 523624),
    "nicla-vision": (1966080, 523624),
    "portenta-h7": (786432, 523624),
    "uno-r4-minima": (262144, 32768),
    "uno-r4-wifi": (262144, 32768),
    "uno-q": (786432, 262144),
    "pico2-arduino": (4190208, 524288),
}
"""`upload.maximum_size` and `upload.maximum_data_size` of the cores' own boards.txt."""


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """An arduino-cli that ARDUINO_CLI names, without any core."""
    double = Cli(tmp_path / "bin")
    monkeypatch.setenv("ARDUINO_CLI", str(double.path))
    return double


@pytest.fixture
def no_cli(tmp_path, monkeypatch):
    monkeypatch.delenv("ARDUINO_CLI", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def sizes(board):
    return board.flash.size, board.ram.size


def test_the_core_decides(cli):
    cli.answer({NANO33BLE: details(NANO33BLE, "4.2.1", size=700_000, data=200_000)})
    board = load_board("nano33ble")
    limited = with_core_limits(board)
    assert sizes(limited) == (700_000, 200_000)
    assert limited.sizes_from == "boards.txt of arduino:mbed_nano 4.2.1"
    assert limited == replace(board, flash=limited.flash, ram=limited.ram, sizes_from=limited.sizes_from)
    assert cli.calls == [["board", "details", "--fqbn", NANO33BLE]]


@pytest.mark.parametrize("name", [name for name in board_names() if load_board(name).arduino is not None])
def test_the_boards_own_files_say_what_the_published_cores_say(cli, name):
    """So a virtual board, which asks nobody, is planned for as the real one is."""
    board = load_board(name)
    size, data = PUBLISHED[name]
    cli.answer({board.arduino.fqbn: details(board.arduino.fqbn, size=size, data=data)})
    limited = with_core_limits(board)
    assert sizes(limited) == sizes(board) == sizes(board.virtual())
    assert "boards.txt" in limited.sizes_from


def test_options_of_the_board_count(cli):
    """The board is asked for with the options it is built with."""
    board = load_board("portenta-h7")
    board = replace(board, arduino=replace(board.arduino, fqbn=f"{board.arduino.fqbn}:split=75_25"))
    cli.answer({"arduino:mbed_portenta:envie_m7:split=75_25": details(board.arduino.fqbn, size=1441792, data=523624)})
    assert sizes(with_core_limits(board)) == (1441792, 523624)
    uno_q = load_board("uno-q")
    cli.answer({"arduino:zephyr:unoq:link_mode=static": details(uno_q.arduino.fqbn, size=500_000, data=131072)})
    assert sizes(with_core_limits(uno_q)) == (500_000, 131072)


def test_a_linker_script_that_has_less_than_boards_txt_says(cli):
    board = load_board("uno-r4-minima")
    cli.answer({board.arduino.fqbn: details(board.arduino.fqbn, size=262144, data=32768)})
    assert with_core_limits(board).flash.size == 262144 - 16384  # the bootloader's
    cli.answer({board.arduino.fqbn: details(board.arduino.fqbn, size=131072, data=32768)})
    assert with_core_limits(board).flash.size == 131072


def test_one_limit_without_the_other(cli):
    cli.answer({NANO33BLE: details(NANO33BLE, data=200_000)})
    board = load_board("nano33ble")
    assert sizes(with_core_limits(board)) == (board.flash.size, 200_000)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Unknown FQBN: platform arduino:mbed_nano is not installed", "core arduino:mbed_nano is not installed"),
        ("Unknown FQBN: unknown package arduino", "core arduino:mbed_nano is not installed"),
        ("Unknown FQBN: unknown platform arduino:mbed_nano", "core arduino:mbed_nano is not installed"),
        ("Unknown FQBN: board arduino:mbed_nano:nano33ble not found", "arduino-cli does not know the board"),
        (details(NANO33BLE), "arduino-cli tells no limits"),
        (details(NANO33BLE, build_properties=None), "arduino-cli tells no limits"),
        (details(NANO33BLE, build_properties="upload.maximum_size=1"), "arduino-cli tells no limits"),
        (details(NANO33BLE, build_properties=[17, None, "upload.maximum_size"]), "arduino-cli tells no limits"),
        (details(NANO33BLE, size="", data="{upload.ram}"), "arduino-cli tells no limits"),
        (details(NANO33BLE, size=0, data=-5), "arduino-cli tells no limits"),
        (["upload.maximum_size=1"], "arduino-cli does not know the board"),
    ],
)
def test_without_an_answer_the_boards_file_is_taken_and_named(cli, answer, said):
    cli.answer({NANO33BLE: answer})
    board = load_board("nano33ble")
    limited = with_core_limits(board)
    assert limited == replace(board, sizes_from=f"nano33ble.toml ({said})")


def test_something_that_is_not_json(cli):
    cli.path.write_text("#!/bin/sh\necho 'Error: unknown command \"details\"' >&2\nexit 1\n")
    board = load_board("nano33ble")
    assert with_core_limits(board) == replace(board, sizes_from="nano33ble.toml (arduino-cli gave no JSON)")


def test_without_arduino_cli(no_cli):
    board = load_board("nano33ble")
    assert with_core_limits(board) == replace(board, sizes_from="nano33ble.toml (no arduino-cli to ask)")


def test_a_wrong_variable_is_named(monkeypatch):
    monkeypatch.setenv("ARDUINO_CLI", "/nonexistent/cli")
    with pytest.raises(ToolError, match="ARDUINO_CLI names no program"):
        with_core_limits(load_board("nano33ble"))


def test_virtual_and_other_boards_ask_nobody(cli):
    cli.answer({NANO33BLE: details(NANO33BLE, size=1, data=1)})
    for board in (load_board("nano33ble").virtual(), load_board("qemu-m33"), load_board("pico2")):
        assert with_core_limits(board) is board
    assert load_board("nano33ble").virtual().sizes_from == "nano33ble.toml"
    assert load_board("pico2").sizes_from == ""
    assert cli.calls == []


def test_heap_and_stacks_are_not_the_models():
    """`upload.maximum_data_size` is all RAM: what the core takes of it while it runs is subtracted, and shown."""
    plan = golden_plan("mbv1", "nano33ble")
    assert plan.arena == 110_592
    ram = {part.name: part.nbytes for part in parts(plan) if part.memory == "ram"}
    assert ram == {"arena": 110_592, "static (estimate)": 14_336, "heap, other stacks": 39_424, "stack": 4_096}
    needed = 110_592 + 14_336 + 39_424 + 4_096
    board = replace(plan.board, ram=replace(plan.board.ram, size=needed))
    check_fit(replace(plan, board=board))
    board = replace(plan.board, ram=replace(plan.board.ram, size=needed - 1))
    with pytest.raises(PlanError, match="does not fit the ram of nano33ble"):
        check_fit(replace(plan, board=board))


MBV1 = str(GOLDEN / "mbv1" / "mbv1.pte")


@pytest.fixture
def compiling(tmp_path, monkeypatch, built):
    """An arduino-cli that also compiles, in an empty folder."""
    double = Cli(tmp_path / "bin", elf=built("dae", "qemu-m33")[1].elf)
    monkeypatch.setenv("ARDUINO_CLI", str(double.path))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    return double


@pytest.mark.parametrize("command", [["build"], ["render"], ["sketch"], ["deploy"]])
def test_what_the_core_has_no_room_for_is_refused_before_anything_is_written(compiling, tmp_path, capsys, command):
    compiling.answer({NANO33BLE: details(NANO33BLE, size=300_000, data=262144)})
    words = ["--input", str(GOLDEN / "mbv1" / "input.npy")] if command == ["deploy"] else []
    assert run([*command, MBV1, "--board", "nano33ble", *words]) == 1
    said = capsys.readouterr().err
    assert "the model does not fit the flash of nano33ble" in said
    assert "flash  constants             227,672\n" in said
    assert "flash  in all                350,552 of 300,000 bytes: 50,552 too many\n" in said
    assert "The sizes of flash and RAM are those of boards.txt of arduino:mbed_nano 4.2.1." in said
    assert list((tmp_path / "empty").iterdir()) == []
    assert [words[0] for words in compiling.calls] == ["board"]


def test_what_the_core_has_room_for_is_compiled_whatever_the_boards_file_says(compiling, tmp_path, capsys):
    text = (resource("boards") / "nano33ble.toml").read_text()
    assert text.count("size = 262144\n") == 1
    (tmp_path / "empty" / "mine.toml").write_text(text.replace("size = 262144\n", "size = 65536\n"))
    compiling.answer({})
    assert run(["build", MBV1, "--board", "mine.toml"]) == 1
    said = capsys.readouterr().err
    assert "the model does not fit the ram of mine" in said
    assert "those of mine.toml (core arduino:mbed_nano is not installed)." in said
    compiling.answer({NANO33BLE: details(NANO33BLE, size=983040, data=262144)})
    assert run(["build", MBV1, "--board", "mine.toml"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "sizes of boards.txt of arduino:mbed_nano 4.2.1" in said
    assert compiling.calls[-1][0] == "compile"


def test_inspect_shows_the_sizes_and_whose_they_are(cli, capsys):
    cli.answer({NANO33BLE: details(NANO33BLE, size=700_000, data=200_000)})
    assert run(["inspect", MBV1, "--board", "nano33ble"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "flash size 700,000 ram size 200,000" in out
    assert "boards.txt of arduino:mbed_nano 4.2.1" in out


def test_the_double_speaks_as_the_real_one(cli):
    """A failure is on standard error, as an object; a result has its properties as lines, sorted."""
    words = [cli.path, "board", "details", "--fqbn", NANO33BLE, "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(done.stderr)["error"].startswith("Error getting board details: Unknown FQBN: ")
    properties = details(NANO33BLE, size=1, data=2)["build_properties"]
    assert properties == sorted(properties)


def test_ram_is_told_apart_wherever_the_core_puts_the_sketch(built):
    """The sizes of a board say how much there is and not where: a loader gives a sketch some part of its RAM."""
    _, image = built("dae", "qemu-m33")  # RAM from 0x38000000 on, which no Arduino board has
    for board in (load_board("uno-q"), load_board("nano33ble")):
        again = read_image(image.elf, image.project, board)
        assert (again.flash, again.ram) == (image.flash, image.ram)
