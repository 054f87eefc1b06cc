"""The sketch of an Arduino board with the stock interpreter: the sketch everybody knows, with another inside."""

import json
import re
import subprocess

import pytest

from tests.arduino.conftest import CORE, HOSTILE, compile_all, sources_of
from tests.arduino.test_virtual import lines
from tests.conftest import golden_plan
from tests.interpreter.conftest import PROGRAMS
from tests.interpreter.trees import empty_installation
from toolkit import emulation
from toolkit.board import board_names, load_board
from toolkit.building.arduino import sketch_definitions
from toolkit.building.tools import ARM_GCC, CMAKE, NINJA, require
from toolkit.errors import ModelError, PlanError, ToolError, UsageError
from toolkit.interpreter import build_interpreter, is_interpreted, make_interpreter_plan, render_interpreter_sketch
from toolkit.rendering import MANIFEST
from toolkit.rendering.face import Numbers
from toolkit.rendering.sketch import render_sketch
from toolkit.resources import resource

NANO = load_board("nano33ble")
FAMILIES = {board.flags: board for board in map(load_board, board_names()) if board.arduino is not None}
"""One board for every set of compiler flags."""

ZEPHYR = ("-U__INT32_TYPE__", "-D__INT32_TYPE__=int", "-U__UINT32_TYPE__", "-D__UINT32_TYPE__=unsigned")
"""What the core of the Uno Q makes of these types, in every file; to the bare compiler they are long."""


def planned(name="dae", board=NANO):
    return make_interpreter_plan(PROGRAMS[name].read_bytes(), board, model=name, source=f"{name}.pte")


@pytest.fixture
def sketch(tmp_path):
    """Renders a program as a sketch."""

    def make(name="dae", board=NANO, folder="Sketch", **words):
        return render_interpreter_sketch(planned(name, board), tmp_path / folder, **words)

    return make


def snapshot(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_a_sketch_includes_is_that_of_the_default_engine(sketch, tmp_path):
    labels = [f"word {number}" for number in range(12)]
    default = snapshot(
        render_sketch(golden_plan("ds_cnn", "nano33ble"), tmp_path / "d" / "Sketch", labels=labels).folder
    )
    ours = snapshot(sketch("ds_cnn", labels=labels).folder)
    for name in ("Sketch.ino", "src/Sketch.h", "sketch.yaml", "src/internal/server.cpp"):
        assert ours[name] == default[name], name
    assert "model.label(best)" in ours["Sketch.ino"].decode()


def test_what_is_inside(sketch):
    files = snapshot(sketch().folder)
    inside = {name.removeprefix("src/internal/") for name in files if name.startswith("src/internal/")}
    assert inside == {
        *("model.cpp", "model.h", "program.c", "program.h", "interpreter.cpp", "interpreter.h", "face.cpp"),
        *("arduino_port.cpp", "arduino_port.h", "port.h", "frame.cpp", "frame.h", "server.cpp", "server.h"),
        *("stack.cpp", "stack.h"),
    }
    numbers = re.findall(r"0x([0-9a-f]{2}),", files["src/internal/program.c"].decode())
    assert bytes(int(number, 16) for number in numbers) == PROGRAMS["dae"].read_bytes()
    pools = planned().pools
    assert f"#define PROGRAM_METHOD_POOL {pools.method} " in files["src/internal/program.h"].decode()
    assert f"model_arena_planned_0[{pools.planned[0]}];" in files["src/internal/model.cpp"].decode()


def test_the_manifest_names_engine_and_operators(sketch):
    folder = sketch().folder
    about = json.loads((folder / MANIFEST).read_text())
    assert (about["engine"], about["board"]) == ("executorch", "nano33ble")
    assert "cortex_m::quantized_linear.out" in about["operators"]
    assert is_interpreted(folder)


def test_the_same_program_gives_the_same_bytes(sketch):
    first = snapshot(sketch(folder="A/Sketch").folder)
    assert snapshot(sketch(folder="B/Sketch").folder) == first
    assert snapshot(sketch(folder="A/Sketch").folder) == first


def test_an_edited_sketch_survives_a_change_of_engines(sketch, tmp_path):
    first = sketch()
    first.sketch.write_text(first.sketch.read_text() + "// mine\n")
    default = render_sketch(golden_plan("dae", "nano33ble"), tmp_path / "Sketch")
    assert default.kept
    assert not is_interpreted(first.folder)
    assert not (first.folder / "src" / "internal" / "interpreter.cpp").exists()
    again = sketch()
    assert again.kept
    assert again.sketch.read_text().endswith("// mine\n")
    assert not (first.folder / "src" / "internal" / "fully_connected.c").exists()


def test_numbers_that_the_program_does_not_take(sketch):
    """The interpreter runs the layer that quantises the input with all others."""
    assert not sketch(numbers=Numbers.FLOAT).kept
    with pytest.raises(ModelError, match="`input` cannot be int8_t: the program takes float"):
        sketch(numbers=Numbers.INT8)


def test_a_board_that_arduino_does_not_know(tmp_path):
    with pytest.raises(UsageError, match="qemu-m33 is not an Arduino board"):
        render_interpreter_sketch(planned("dae", load_board("qemu-m33")), tmp_path / "S")


def test_a_program_that_does_not_fit_is_refused_with_a_table():
    with pytest.raises(PlanError, match="does not fit the flash of uno-r4-minima") as caught:
        planned("dae", load_board("uno-r4-minima"))
    table = caught.value.hint
    assert re.search(r"flash  core \(estimate\) +49,152\n", table)
    assert re.search(r"flash  program +278,048\n", table)
    assert re.search(r"ram    heap, other stacks +8,192\n", table)


def test_a_program_for_another_core_is_refused():
    with pytest.raises(PlanError, match="its bias is only in a kernel sum"):
        planned("linears_m55")


def compile_interpreter(folder, flags, header_flags, into, *more):
    """Compile the file that includes ExecuTorch's headers, warnings being errors; what the compiler says."""
    words = [require(ARM_GCC), *flags, "-Os", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti"]
    words += [*header_flags, "-std=gnu++17", *more, "-I", CORE, "-c", folder / "src" / "internal" / "interpreter.cpp"]
    return subprocess.run([*map(str, words), "-o", str(into)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("board", FAMILIES.values(), ids=lambda board: board.name)
def test_it_compiles_for_every_arduino_board(board, sketch, header_flags, tmp_path):
    """The interpreter against the published headers; everything else behind the macros of the cores."""
    folder = sketch("extrema", board).folder  # small enough for all of them
    done = compile_interpreter(folder, board.flags, header_flags, tmp_path / "interpreter.o")
    assert (done.returncode, done.stderr) == (0, "")
    others = [path for path in sources_of(folder) if path.name != "interpreter.cpp"]
    assert {path.suffix for path in others} == {".c", ".cpp", ".ino"}
    compile_all(others, board.flags, tmp_path / "objects", standard="gnu++17")


def test_every_kind_of_core_is_among_them():
    assert {board.cpu for board in FAMILIES.values()} == {"cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m33"}
    assert len(FAMILIES) == 6


def included(source):
    return set(re.findall(r"#include [<\"]([^>\"]+)[>\"]", source.read_text()))


def test_where_executorch_is_included_arduino_is_not(sketch, header_flags, tmp_path):
    """Its headers do not survive the macros of the cores, which are in Arduino.h and nowhere else."""
    folder = sketch().folder
    by_file = {path.name: included(path) for path in sources_of(folder) + sorted(folder.rglob("*.h"))}
    assert [name for name, headers in by_file.items() if "Arduino.h" in headers] == ["arduino_port.cpp"]
    assert [name for name, headers in by_file.items() if any(h.startswith("executorch/") for h in headers)] == [
        "interpreter.cpp"
    ]
    done = compile_interpreter(folder, NANO.flags, header_flags, tmp_path / "depends", "-MD", "-MF", tmp_path / "d")
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "d").read_text()
    assert "portable_type/tensor.h" in seen
    assert "Arduino.h" not in seen
    assert "macros.h" not in seen
    (tmp_path / "hostile.h").write_text(HOSTILE)
    behind = ("-I", tmp_path, "-include", "hostile.h")
    assert compile_interpreter(folder, NANO.flags, header_flags, tmp_path / "o", *behind).returncode != 0


def test_it_links_whichever_type_is_32_bits_wide(sketch, header_flags, tmp_path):
    """A core may take int for int32_t, and the compiler that built ExecuTorch long: names that are asked for agree."""
    folder = sketch("ds_cnn").folder
    wanted = []
    for name, more in (("long", ()), ("int", ZEPHYR)):
        done = compile_interpreter(folder, load_board("uno-q").flags, header_flags, tmp_path / name, *more)
        assert done.returncode == 0, done.stderr
        tool = require(ARM_GCC).with_name("arm-none-eabi-nm")
        wanted.append(subprocess.run([tool, "-u", tmp_path / name], capture_output=True, text=True, check=True).stdout)
    assert "Method9set_input" in wanted[0]
    assert wanted[0] == wanted[1]


def test_the_beginners_sketch_runs_beside_the_protocol(sketch, for_board):
    """The stand-in for the runtime answers an input of zeros with the number of registered operators."""
    virtual = NANO.virtual()
    folder = sketch("ds_cnn", virtual).folder
    image = build_interpreter(folder, virtual, executorch=for_board(virtual))
    with emulation.start(image, virtual) as board:
        said = lines(board.port, 2)[1]
    assert re.fullmatch(r"9\.0000 (0\.0000 ){9}, took \d+ us", said)


def test_plain_cmake_finds_an_installation_by_its_usual_variable(sketch, for_board, tmp_path):
    virtual = NANO.virtual()
    folder = sketch("dae", virtual).folder
    command = [
        require(CMAKE),
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={require(NINJA)}",
        "-S",
        CORE,
        "-B",
        tmp_path / "b",
    ]
    command += [f"-DCMAKE_TOOLCHAIN_FILE={resource('cmake') / 'arm-none-eabi.cmake'}"]
    command += sketch_definitions(folder, virtual)
    environment = {"PATH": "/usr/bin:/bin"}

    def run(*words):
        words = [str(word) for word in words]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    without = run(*command)
    assert without.returncode != 0
    assert "There is no ExecuTorch for this board in ''" in without.stderr
    found = run(*command, f"-DCMAKE_PREFIX_PATH={for_board(virtual)}")
    assert found.returncode == 0, found.stderr
    built = run(require(CMAKE), "--build", tmp_path / "b")
    assert built.returncode == 0, built.stdout


def test_without_an_installation_it_is_said_how_to_get_one(sketch, monkeypatch):
    monkeypatch.delenv("EXECUTORCH_PATH", raising=False)
    with pytest.raises(ToolError, match="no ExecuTorch is named") as caught:
        build_interpreter(sketch().folder, NANO)
    (file,) = re.findall(r"-DCMAKE_TOOLCHAIN_FILE=(\S+)", caught.value.hint)
    assert (resource("cmake") / "arm-none-eabi.cmake").samefile(file)
    assert '-DCMAKE_C_FLAGS="-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=softfp"' in caught.value.hint


@pytest.mark.parametrize("board", [NANO, NANO.virtual()], ids=["real", "virtual"])
def test_a_missing_operator_is_found_before_anything_is_built(board, sketch, wheel, tmp_path):
    folder = sketch().folder
    operators = ["cortex_m::quantize_per_tensor.out", "cortex_m::dequantize_per_tensor.out"]
    tree = empty_installation(tmp_path / "tree", NANO, wheel, {"cortex_m_ops_lib": operators})
    with pytest.raises(PlanError, match=r"does not register the operator cortex_m::quantized_linear\.out"):
        build_interpreter(folder, board, executorch=tree)
    assert not (folder / "build").exists()
