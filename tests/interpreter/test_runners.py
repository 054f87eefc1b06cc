"""Runners that run: on this computer with the real runtime, on virtual boards with a stand-in for it.

An ExecuTorch for a microcontroller cannot be had here. On this computer the Python package brings the runtime; with
operators on this project's kernels it computes the golden models, bit for bit. On the virtual boards everything is real
but the runtime: start-up code, constructors that register operators, pools, statuses.
"""

import re
import shutil
import subprocess

import numpy as np
import pytest

from tests.conftest import golden_input
from tests.interpreter.conftest import GOLDEN, PROGRAMS, changed
from tests.interpreter.trees import CONFIG, GOLDEN_OPERATORS, host_installation
from tests.program.document import plan, value
from toolkit.board import load_board
from toolkit.building.pico_sdk import fetch_pico_sdk
from toolkit.building.tools import CMAKE, NINJA, require
from toolkit.device import Device, Transport
from toolkit.errors import BuildError, DeviceError, PlanError, ToolError
from toolkit.flashing import flash
from toolkit.interpreter import build_interpreter, make_interpreter_plan, render_interpreter, render_interpreter_sketch
from toolkit.program import read_program
from toolkit.verification.layout import from_memory, to_memory

HOST, M33 = load_board("host"), load_board("qemu-m33")
ARDUINO = [load_board(name).virtual() for name in ("nano33ble", "nano-rp2040", "giga-r1", "uno-q")]
"""Cortex-M4, M0+, M7 and M33."""
GOLDEN_FOLDER = next(iter(GOLDEN.values())).parent.parent


@pytest.fixture(scope="module")
def on_this_computer(tmp_path_factory, wheel):
    return host_installation(tmp_path_factory.mktemp("host") / "executorch", HOST, wheel)


@pytest.fixture(scope="module")
def on_the_board(for_board):
    return for_board(M33)


def runner(pte, board, installation, folder, **words):
    """A built runner of a program."""
    planned = make_interpreter_plan(pte, board, model="model", source="model.pte")
    (render_interpreter if board.arduino is None else render_interpreter_sketch)(planned, folder)
    return build_interpreter(folder, board, executorch=installation, **words)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_models_with_the_real_runtime(name, on_this_computer, tmp_path):
    """Under sanitizers, several times: inputs are handed over once, memory is reused."""
    image = runner(GOLDEN[name].read_bytes(), HOST, on_this_computer, tmp_path / "p", sanitize=True)
    program = read_program(GOLDEN[name].read_bytes())
    right = np.load(GOLDEN_FOLDER / name / "output.npy")
    source, result = program.tensors[program.inputs[0]], program.tensors[program.outputs[0]]
    with flash(image, HOST) as running, Transport(running.port) as transport:
        device = Device(transport, stopped=running.stopped)
        assert device.hello.kernels == "ExecuTorch 1.5"
        assert device.hello.sha256 == program.sha256
        assert device.hello.layers == 1
        for _ in range(3):
            device.write_inputs([to_memory(golden_input(name), source)])
            assert device.invoke() > 0
            assert from_memory(device.read_outputs()[0], result).tobytes() == right.tobytes()
        device.write_inputs([to_memory(golden_input(name), source)])
        device.invoke_layer(0)
        answer = device.read_layer(0, result.nbytes).view(np.float32).reshape(result.shape)
        assert answer.tobytes() == right.tobytes()
        assert 0 < device.stack_high_water() < 65536


def test_places_that_the_exporter_left_to_the_runner(on_this_computer, tmp_path):
    """The real runtime takes the runner's own buffers for an input and an output."""

    def change(document):
        for side in ("inputs", "outputs"):
            value(document, plan(document)[side][0])["allocation_info"] = None

    image = runner(changed("dae", change), HOST, on_this_computer, tmp_path / "p", sanitize=True)
    right = np.load(GOLDEN_FOLDER / "dae" / "output.npy")
    with flash(image, HOST) as running, Transport(running.port) as transport:
        device = Device(transport, stopped=running.stopped)
        for _ in range(2):
            device.write_inputs([golden_input("dae")])
            device.invoke()
            assert device.read_outputs()[0].tobytes() == right.tobytes()


@pytest.mark.parametrize("board", [M33, load_board("pico2"), *ARDUINO], ids=lambda board: board.name)
def test_statuses_of_the_board_are_sentences(board, for_board, tmp_path):
    if board.toolchain == "pico-sdk":
        fetch_pico_sdk()
    image = runner(GOLDEN["ds_cnn"].read_bytes(), board, for_board(board), tmp_path / "p")
    assert image.flash.constants == GOLDEN["ds_cnn"].stat().st_size
    pools = make_interpreter_plan(GOLDEN["ds_cnn"].read_bytes(), board, model="m", source="m").pools
    assert image.ram.arena == pools.total
    said = []
    with flash(image, board.virtual()) as running, Transport(running.port, log=said.append) as transport:
        device = Device(transport, stopped=running.stopped)
        assert device.hello.arena == pools.total

        def run(number):
            device.write_inputs([np.full(490, number, np.float32)])
            device.invoke()
            return device.read_outputs()[0].reshape(-1)[0]

        assert run(0) == len(GOLDEN_OPERATORS)  # all constructors ran, and what they registered was not left out
        assert run(257) == len(GOLDEN_OPERATORS)
        assert "standin.cpp: hello from the runtime" in said
        with pytest.raises(DeviceError, match=r"not registered in this image \(OperatorMissing, 0x14\)"):
            run(0x14)
        with pytest.raises(DeviceError, match="failed while running the model: a pool of memory is too small"):
            run(0x21)
        assert run(0) == len(GOLDEN_OPERATORS)
        with pytest.raises(DeviceError, match="one of its own checks failed"):
            run(256)
        with pytest.raises(DeviceError, match="one of its own checks failed"):
            run(0)  # the interpreter is not used any more
        assert 0 < device.stack_high_water() < board.stack


def test_libraries_whose_targets_link_themselves_whole_are_not_linked_twice(on_the_board, tmp_path):
    """As those of ExecuTorch do: the option is part of the target."""
    tree = tmp_path / "executorch"
    shutil.copytree(on_the_board, tree, symlinks=True)
    config = tree / CONFIG
    option = "SHELL:LINKER:--whole-archive $<TARGET_FILE:cortex_m_ops_lib> LINKER:--no-whole-archive"
    config.write_text(
        config.read_text() + f'set_property(TARGET cortex_m_ops_lib PROPERTY INTERFACE_LINK_OPTIONS "{option}")\n'
    )
    image = runner(GOLDEN["ds_cnn"].read_bytes(), M33, tree, tmp_path / "p")
    with flash(image, M33) as running, Transport(running.port) as transport:
        device = Device(transport, stopped=running.stopped)
        device.write_inputs([np.zeros(490, np.float32)])
        device.invoke()
        assert device.read_outputs()[0].reshape(-1)[0] == len(GOLDEN_OPERATORS)


def configure(project, *definitions):
    """Configure a project by plain CMake, without this toolkit."""
    command = [require(CMAKE), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={require(NINJA)}", "-S", ".", "-B", "build"]
    environment = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [*command, *definitions], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def test_plain_cmake_finds_an_installation_by_its_usual_variable(on_the_board, tmp_path):
    render_interpreter(
        make_interpreter_plan(PROGRAMS["dae"].read_bytes(), M33, model="dae", source="dae.pte"), tmp_path / "p"
    )
    without = configure(tmp_path / "p")
    assert without.returncode != 0
    assert "There is no ExecuTorch for this board in ''" in without.stderr
    found = configure(tmp_path / "p", f"-DCMAKE_PREFIX_PATH={on_the_board}")
    assert found.returncode == 0, found.stderr
    build = subprocess.run([require(CMAKE), "--build", "build"], cwd=tmp_path / "p", check=False)
    assert build.returncode == 0
    assert (tmp_path / "p" / "build" / "runner.elf").is_file()


def test_an_operator_that_the_linker_left_out_is_noticed(on_the_board, tmp_path):
    folder = tmp_path / "p"
    render_interpreter(make_interpreter_plan(GOLDEN["dae"].read_bytes(), M33, model="dae", source="dae.pte"), folder)
    module = folder / "engine" / "executorch.cmake"
    module.write_text(re.sub(r"-Wl,--(no-)?whole-archive", "", module.read_text()))
    with pytest.raises(BuildError, match=r"the linker left out what registers cortex_m::dequantize_per_tensor\.out"):
        build_interpreter(folder, M33, executorch=on_the_board)


def test_refusals_come_before_anything_is_built(on_the_board, tmp_path):
    with pytest.raises(PlanError, match="its bias is only in a kernel sum"):
        make_interpreter_plan(PROGRAMS["linears_m55"].read_bytes(), M33, model="m", source="m.pte")
    render_interpreter(
        make_interpreter_plan(PROGRAMS["pools_legacy"].read_bytes(), M33, model="m", source="m.pte"), tmp_path / "p"
    )
    with pytest.raises(PlanError, match=r"the operator cortex_m::quantized_max_pool2d\.out"):
        build_interpreter(tmp_path / "p", M33, executorch=on_the_board)
    assert not (tmp_path / "p" / "build").exists()
    with pytest.raises(ToolError, match="there is no ExecuTorch here"):
        build_interpreter(tmp_path / "p", M33, executorch=tmp_path)
