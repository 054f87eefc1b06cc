"""The sketch folder: complete, compiled by any core, the user's own once it is edited."""

import re
import subprocess

import pytest

from tests.arduino.conftest import CORE, HOSTILE, WARNINGS, compile_all, sources_of
from tests.conftest import GOLDEN, golden_plan
from toolkit.board import board_names, load_board
from toolkit.cli.app import run
from toolkit.errors import DeployError, ModelError, PlanError, UsageError
from toolkit.planning import make_plan
from toolkit.rendering.sketch import Numbers, render_sketch

ARDUINO = [name for name in board_names() if load_board(name).arduino is not None]


def test_the_boards_are_there():
    assert set(ARDUINO) >= {
        *("nano33ble", "uno-q", "giga-r1", "portenta-h7", "nicla-vision", "uno-r4-minima", "uno-r4-wifi"),
        *("nano-rp2040", "pico2-arduino"),
    }


@pytest.mark.parametrize("name", ARDUINO)
def test_every_board_says_how_it_is_found_and_flashed(name):
    board = load_board(name)
    assert re.fullmatch(r"[a-z0-9_]+:[a-z0-9_]+:[a-z0-9_]+(:[a-z_]+=[a-z0-9_]+)?", board.arduino.fqbn)
    assert board.usb is not None
    assert board.toolchain == board.port == "arduino"
    assert board.virtual().emulator.machine in ("mps2-an386", "mps2-an500", "mps2-an505")
    assert board.virtual().flash.size == board.flash.size
    assert board.arduino.address == (board.flash.origin if board.cpu == "cortex-m7" else 0)


@pytest.mark.parametrize("board", ["nano33ble", "uno-q", "giga-r1", "nano-rp2040"])
@pytest.mark.parametrize("numbers", [Numbers.FLOAT, Numbers.INT8])
def test_it_compiles_behind_the_macros_of_the_cores(sketch, tmp_path, board, numbers):
    """Cortex-M4, M33, M7 and M0+, as gnu++14 and gnu11, with warnings as errors."""
    rendered = sketch("dae", board, numbers=numbers, labels=["what?", 'a "b"', "é"])
    sources = sources_of(rendered.folder)
    assert {path.suffix for path in sources} == {".c", ".cpp", ".S", ".ino"}
    compile_all(sources, load_board(board).flags, tmp_path / "objects")


def test_the_macros_are_hostile(tmp_path):
    """The header really changes what the compiler sees: a function named like one of them does not compile."""
    (tmp_path / "hostile.h").write_text(HOSTILE)
    names = ("abs", "min", "max", "round", "B0", "B11111111", "F", "DEFAULT", "EXTERNAL")
    code = "#include <hostile.h>\n" + "".join(f"#ifndef {name}\n#error {name}\n#endif\n" for name in names)
    (tmp_path / "code.c").write_text(code)
    subprocess.run(
        ["arm-none-eabi-gcc", "-I", tmp_path, "-I", CORE, *WARNINGS, "-c", "code.c", "-o", "code.o"],
        check=True,
        cwd=tmp_path,
    )


@pytest.mark.parametrize(
    ("macros", "line", "other"), [(["-DARDUINO_ROUTER_SERIAL=Serial2"], "Serial1", "Serial"), ([], "Serial", "Serial1")]
)
def test_frames_take_the_line_that_carries_bytes(sketch, tmp_path, macros, line, other):
    """The Uno Q's core defines this macro where `Serial` is the monitor of its Linux side, which carries text."""
    (tmp_path / "line.h").write_text("#include <Arduino.h>\nextern HardwareSerial Serial1;\n")
    source = sketch(board="uno-q").folder / "src" / "internal" / "arduino_port.cpp"
    words = [*load_board("uno-q").flags, *macros, "-include", tmp_path / "line.h", "-I", CORE, *WARNINGS]
    subprocess.run(["arm-none-eabi-g++", *words, "-c", source, "-o", tmp_path / "port.o"], check=True)
    listed = subprocess.run(["arm-none-eabi-nm", "-u", tmp_path / "port.o"], capture_output=True, text=True, check=True)
    assert line in listed.stdout.split()
    assert other not in listed.stdout.split()


def test_the_board_options_are_pinned(sketch):
    assert "default_fqbn: arduino:mbed_nano:nano33ble\n" in (sketch().folder / "sketch.yaml").read_text()
    uno_q = sketch(board="uno-q", name="Q").folder / "sketch.yaml"
    assert "default_fqbn: arduino:zephyr:unoq:link_mode=static\n" in uno_q.read_text()


def test_what_a_beginner_reads(sketch):
    code = sketch("resnet8", labels=[f"thing {number}" for number in range(10)]).sketch.read_text()
    for line in ('#include "src/Sketch.h"', "model.begin();", "model.run()", "Serial.print(model.label(best));"):
        assert line in code


def test_class_names_that_do_not_fit_the_output_are_left_out(sketch):
    assert "label" not in sketch("resnet8", labels=["a", "b"]).sketch.read_text()


def test_quantised_numbers_come_with_scale_and_zero_point(sketch):
    header = (sketch(numbers=Numbers.INT8).folder / "src" / "Sketch.h").read_text()
    assert "int8_t& operator[]" in header
    assert "return 0.025693371891975403f;" in header  # of the golden program's first operator
    assert "zero_point() { return -15; }" in header


def test_numbers_that_the_model_does_not_have_are_refused(sketch, tmp_path):
    plan = golden_plan("dae", "nano33ble")
    from dataclasses import replace

    inner = replace(plan, inputs=(plan.steps[0].operator.output,), steps=plan.steps[1:])
    with pytest.raises(ModelError, match="`input` cannot be float: the program takes int8_t"):
        render_sketch(inner, tmp_path / "p", numbers=Numbers.FLOAT)


def test_an_edited_sketch_is_never_overwritten(sketch):
    first = sketch("dae")
    assert not first.kept
    mine = first.sketch.read_text() + "// mine\n"
    first.sketch.write_text(mine)
    again = sketch("resnet8")
    assert again.kept
    assert first.sketch.read_text() == mine
    assert "resnet8" in (first.folder / "src" / "Sketch.h").read_text()
    assert sketch("dae").kept
    assert first.sketch.read_text() == mine


def test_a_sketch_that_nobody_edited_follows_the_model(sketch):
    first = sketch("dae")
    again = sketch("resnet8")
    assert not again.kept
    assert "// resnet8:" in first.sketch.read_text()


def test_an_unknown_past_counts_as_edited(sketch):
    first = sketch("dae")
    before = first.sketch.read_text()
    (first.folder / "rendered.json").write_text("{")
    assert sketch("resnet8").kept
    assert first.sketch.read_text() == before


def test_a_renamed_sketch_folder_keeps_its_sketch(sketch, tmp_path):
    first = sketch("dae")
    first.sketch.write_text("// mine\n")
    first.folder.rename(tmp_path / "Renamed")
    again = sketch("dae", name="Renamed")
    assert again.kept
    assert [path.read_text() for path in (tmp_path / "Renamed").glob("*.ino")] == ["// mine\n"]


def snapshot(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_model_gives_the_same_bytes(sketch):
    first, second = sketch(name="A/Sketch"), sketch(name="B/Sketch")
    assert snapshot(first.folder) == snapshot(second.folder)
    before = snapshot(first.folder)
    sketch(name="A/Sketch")
    assert snapshot(first.folder) == before


@pytest.mark.parametrize("name", ["my sketch", "-x", "a" * 64, "ä"])
def test_names_that_arduino_does_not_take(sketch, name):
    with pytest.raises(UsageError, match="not a name that Arduino takes"):
        sketch(name=name)


def test_a_folder_of_something_else_is_refused(sketch, tmp_path):
    (tmp_path / "Sketch").mkdir()
    (tmp_path / "Sketch" / "thesis.txt").write_text("precious")
    with pytest.raises(DeployError, match="not empty"):
        sketch()


@pytest.mark.parametrize("board", ["uno-r4-minima", "uno-r4-wifi"])
def test_a_small_board_refuses_a_large_model_with_a_table(board):
    with pytest.raises(PlanError, match=f"does not fit the .* of {board}") as caught:
        golden_plan("resnet8", board)
    assert re.search(r"ram +arena +[\d,]+\n", caught.value.hint)
    assert "of 32,768 bytes" in caught.value.hint


def test_names_from_a_model_never_reach_c_unsanitised(sketch, tmp_path):
    hostile = 'x*/ int main(){}/*\n#error "no"\\\n??/ "); // '
    plan = golden_plan("resnet8", "nano33ble")
    plan = make_plan(plan.program, plan.board, model=hostile, layer_names=[hostile] * 60)
    rendered = render_sketch(plan, tmp_path / "S", labels=[hostile] * 10)
    compile_all(sources_of(rendered.folder), plan.board.flags, tmp_path / "objects")


@pytest.mark.parametrize("words", [["render"], ["build"], ["--virtual"]])
def test_kernels_in_ram_are_refused_with_the_reason_before_anything_is_planned(capsys, tmp_path, monkeypatch, words):
    """On a board where they would not fit, too: that it is a sketch is the reason that counts."""
    monkeypatch.chdir(tmp_path)
    model = str(GOLDEN / "resnet8" / "resnet8.pte")
    assert run([*words, model, "--board", "uno-r4-minima", "--place", "ram"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "in a sketch, kernels and weights stay in flash" in said
    assert "Leave out --place ram." in said
    assert list(tmp_path.iterdir()) == []
