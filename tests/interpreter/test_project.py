"""The rendered project: readable, safe, and compiled for every kind of core against the published headers."""

import json
import re
import subprocess
from dataclasses import replace

import pytest

from tests.conftest import golden_plan
from tests.interpreter.conftest import GOLDEN, PROGRAMS, changed
from tests.program.document import plan, value
from toolkit.board import Memory, board_names, load_board
from toolkit.building.tools import ARM_GCC, require
from toolkit.errors import PlanError
from toolkit.interpreter import make_interpreter_plan, render_interpreter
from toolkit.rendering import MANIFEST, render

FAMILIES = {
    board.flags: board for board in map(load_board, board_names()) if board.toolchain in ("arm-none-eabi", "pico-sdk")
}
"""One board for every set of compiler flags of these ports; `test_sketch.py` has the Arduino boards."""


def planned(name, board, model=None):
    path = PROGRAMS[name]
    return make_interpreter_plan(path.read_bytes(), load_board(board), model=model or name, source=path.name)


@pytest.fixture
def rendered(tmp_path):
    """Renders a program for a board; the folder."""

    def get(name, board, **words):
        render_interpreter(planned(name, board, **words), tmp_path / f"{name}-{board}")
        return tmp_path / f"{name}-{board}"

    return get


def compile_for_arm(project, flags, header_flags, folder):
    """Compile the engine's own sources to object files, warnings being errors; the object files by source."""
    common = ["-Os", "-ffunction-sections", "-fdata-sections", "-Wall", "-Wextra", "-Werror"]
    cpp = [*header_flags, "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
    objects = {}
    for source in ("model.cpp", "program.c", "engine/interpreter.cpp", "engine/bare.cpp"):
        if not (project / source).is_file():
            continue
        compiler = require(ARM_GCC) if source.endswith(".cpp") else require(ARM_GCC).with_name("arm-none-eabi-gcc")
        objects[source] = folder / f"{source.replace('/', '-')}.o"
        language = cpp if source.endswith(".cpp") else ["-std=c11"]
        command = [str(compiler), *flags, *common, *language, f"-I{project}"]
        command += [f"-I{project / folder}" for folder in ("engine", "runtime")]
        command += ["-c", str(project / source), "-o", str(objects[source])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    return objects


@pytest.mark.parametrize("board", FAMILIES.values(), ids=lambda board: board.name)
def test_it_compiles_for_every_kind_of_core(board, rendered, header_flags, tmp_path):
    objects = compile_for_arm(rendered("dae", board.name), board.flags, header_flags, tmp_path)
    assert len(objects) == (3 if board.toolchain == "pico-sdk" else 4)


def test_both_float_abis_are_among_them():
    assert {"-mfloat-abi=hard", "-mfloat-abi=softfp"} <= {flag for flags in FAMILIES for flag in flags}


def test_nothing_runs_before_main_and_memory_is_what_was_planned(rendered, header_flags, tmp_path):
    board = load_board("qemu-m33")
    objects = compile_for_arm(rendered("ds_cnn", "qemu-m33"), board.flags, header_flags, tmp_path)
    tool = require(ARM_GCC).with_name("arm-none-eabi-nm")
    for source in ("model.cpp", "engine/interpreter.cpp"):
        sections = subprocess.run(
            [tool.with_name("arm-none-eabi-objdump"), "-h", objects[source]], capture_output=True, text=True, check=True
        )
        assert "init_array" not in sections.stdout, source
    symbols = subprocess.run([tool, "-S", objects["model.cpp"]], capture_output=True, text=True, check=True).stdout
    sizes = {
        name: int(size, 16)
        for size, name in re.findall(r"^\w+ (\w+) [bB] (?:_ZL\d+)?(model_arena_\w+)$", symbols, re.M)
    }
    pools = planned("ds_cnn", "qemu-m33").pools
    assert sizes == {
        "model_arena_planned_0": 16000,
        "model_arena_method": pools.method,
        "model_arena_temporary": pools.temporary,
    }


def test_another_release_of_executorch_does_not_compile(rendered, header_flags, tmp_path):
    project = rendered("dae", "qemu-m33")
    header = project / "program.h"
    header.write_text(header.read_text().replace("#define PROGRAM_EVALUE_BYTES 16", "#define PROGRAM_EVALUE_BYTES 24"))
    with pytest.raises(AssertionError, match="another release of ExecuTorch"):
        compile_for_arm(project, load_board("qemu-m33").flags, header_flags, tmp_path)


def declarations(header):
    """A header without its comments, and without what differs from model to model and engine to engine."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    return re.sub(r"(#define MODEL_(?:KERNELS|ARENA_BYTES|LAYERS)) .*", r"\1", text)


def test_the_face_is_that_of_the_default_engine(rendered, tmp_path):
    render(golden_plan("ds_cnn", "qemu-m33"), tmp_path / "default")
    assert declarations(rendered("ds_cnn", "qemu-m33") / "model.h") == declarations(tmp_path / "default" / "model.h")


def test_the_program_is_in_it_byte_for_byte(rendered):
    text = (rendered("dae", "host") / "program.c").read_text()
    data = bytes(int(number, 16) for number in re.findall(r"0x([0-9a-f]{2}),", text))
    assert data == PROGRAMS["dae"].read_bytes()


def test_the_code_says_what_it_calls_and_where_things_lie(rendered):
    code = (rendered("ds_cnn", "qemu-m33") / "model.cpp").read_text()
    assert "//     cortex_m::quantized_depthwise_conv2d.out\n" in code
    assert "//     dim_order_ops::_clone_dim_order.out\n" in code
    assert "static const uint32_t dims_input_0[] = {1, 49, 1, 10};\n" in code
    assert "    {model_arena_planned_0, 1960, 1},\n" in code


@pytest.mark.parametrize("name", GOLDEN)
def test_no_line_is_too_long(name, rendered):
    project = rendered(name, "pico2")
    for file in ("model.cpp", "model.h", "program.c", "program.h", "CMakeLists.txt"):
        assert [line for line in (project / file).read_text().splitlines() if len(line) > 120] == [], file


def test_names_from_a_model_never_reach_c_unsanitised(rendered):
    project = rendered("dae", "host", model='x*/ int main(){}/*\n#error "no"\\\n??/ "); system("rm") // \u202e')
    for file in ("model.cpp", "model.h", "program.c", "program.h"):
        text = (project / file).read_text()
        assert text.isascii()
        assert not any(fragment in text for fragment in ("*/ int", "#error", "??/", "system(")), file


def test_operators_of_a_program_never_reach_c_unsanitised(tmp_path):
    pte = changed("extrema", lambda document: plan(document)["operators"][0].update(name="a\nint x;::b", overload="*/"))
    board = load_board("host")
    render_interpreter(make_interpreter_plan(pte, board, model="m", source="m.pte"), tmp_path / "p")
    assert "//     a_int_x_::b._\n" in (tmp_path / "p" / "model.cpp").read_text()


def test_places_that_the_exporter_left_to_the_runner_are_set_aside(tmp_path):
    def change(document):
        for side in ("inputs", "outputs"):
            value(document, plan(document)[side][0])["allocation_info"] = None

    pte = changed("extrema", change)
    interpreted = make_interpreter_plan(pte, load_board("host"), model="m", source="m.pte")
    render_interpreter(interpreted, tmp_path / "p")
    code = (tmp_path / "p" / "model.cpp").read_text()
    nbytes = interpreted.contents.inputs[0].nbytes
    assert f"alignas(16) static uint8_t model_arena_input_0[{nbytes}];\n" in code
    assert f"    {{model_arena_input_0, {nbytes}, 0}},\n" in code
    arena = interpreted.pools.total + nbytes + interpreted.contents.outputs[0].nbytes
    assert f"#define MODEL_ARENA_BYTES {arena}\n" in (tmp_path / "p" / "model.h").read_text()


def test_the_manifest_names_engine_and_operators(rendered):
    about = json.loads((rendered("dae", "qemu-m33") / MANIFEST).read_text())
    assert about["engine"] == "executorch"
    assert about["board"] == "qemu-m33"
    assert about["operators"] == [
        "cortex_m::dequantize_per_tensor.out",
        "cortex_m::quantize_per_tensor.out",
        "cortex_m::quantized_linear.out",
    ]


def test_the_usual_libraries_are_named_when_no_installation_is_known(rendered):
    text = (rendered("ds_cnn", "pico2") / "CMakeLists.txt").read_text()
    assert 'set(EXECUTORCH_OPERATOR_LIBRARIES "cortex_m_ops_lib;portable_ops_lib" CACHE' in text
    assert "set(CMAKE_CXX_STANDARD 17)" in text


def test_a_model_that_does_not_fit_is_refused_with_a_table():
    board = load_board("qemu-m33")
    small = replace(board, flash=Memory(0, 300_000), ram=Memory(0, 100_000))
    pte = PROGRAMS["mbv1"].read_bytes()
    with pytest.raises(PlanError, match="does not fit the flash and the ram of qemu-m33") as caught:
        make_interpreter_plan(pte, small, model="mbv1", source="mbv1.pte")
    assert re.search(r"flash  program +299,976\n", caught.value.hint)
    assert re.search(r"ram    planned memory +138,240\n", caught.value.hint)
    assert "leave out --engine executorch" in caught.value.hint
