"""Models on Arm's CMSIS-NN in its three forms, with a stand-in of the published API (tests/cmsis_nn) in Arm's place."""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.cmsis_nn import tree
from tests.conftest import golden_input, golden_plan
from toolkit import flashing
from toolkit.board import Isa, load_board
from toolkit.building import build, find_cmsis_nn
from toolkit.building.pico_sdk import find_pico_sdk
from toolkit.building.tools import ARM_GCC, find
from toolkit.device import Device, Transport
from toolkit.planning import KernelLibrary, make_plan
from toolkit.program.types import (
    AvgPool2d,
    Conv2d,
    DType,
    Maximum,
    Program,
    Softmax,
    Tensor,
    TransposeConv2d,
)
from toolkit.reference import Reference
from toolkit.rendering import render
from toolkit.verification import fetch_layers, first_wrong_layer, verify

from .conftest import GOLDEN, MODELS
from .test_golden_models import assert_golden

TITLES = {
    "checkout": "Arm CMSIS-NN (header V.18.0.0)",
    "pack": "Arm CMSIS-NN 7.0.0",
    "installed": "Arm CMSIS-NN (header V.18.0.0)",
}
LAYERS = {"ds_cnn": 13, "resnet8": 16, "mbv1": 31, "dae": 12}
# Measured of the stock runtime with the same library: its arena holds the same tensors and scratch.
STOCK_ARENA = {"ds_cnn": 16_000, "resnet8": 49_728, "dae": 3_200}


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """Folder of each kind of copy, and a cache of their own."""
    folder = tmp_path_factory.mktemp("cmsis-nn")
    return {
        "checkout": tree.checkout(folder / "checkout"),
        "pack": tree.pack(folder / "pack"),
        "installed": tree.installed(folder / "installed", load_board("qemu-m33")),
        "cache": folder / "cache",
    }


def symbols(elf):
    """Names in an executable."""
    nm = find(ARM_GCC).with_name("arm-none-eabi-nm")
    listed = subprocess.run([nm, "--defined-only", elf], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in listed.splitlines()}


def run(deploy, name, copies, kind, tmp_path, *words, **environment):
    output = tmp_path / "out.npz"
    folder = GOLDEN / name
    inputs = ("--input", folder / "input.npy", "--output", output, "--json")
    chosen = ("--kernels", "cmsis-nn", "--cmsis-nn", copies[kind])
    environment = {"DEPLOY_CACHE_DIR": str(copies["cache"])} | environment
    result = deploy(folder / f"{name}.pte", *words, *inputs, *chosen, **environment)
    assert result.status == 0, result.stderr
    return result.json, np.load(output)


@pytest.mark.parametrize("kind", ["checkout", "pack", "installed"])
@pytest.mark.parametrize("name", MODELS)
def test_golden_models_on_the_virtual_board(deploy, tmp_path, copies, name, kind):
    layers = ("--layers",) if kind == "checkout" else ()
    report, answers = run(deploy, name, copies, kind, tmp_path, "--board", "qemu-m33", *layers)
    assert answers["output0"].tobytes() == np.load(GOLDEN / name / "output.npy").tobytes()
    if layers:
        assert_golden(name, answers)
    assert report["verified"] is True
    assert report["kernels"] == f"{TITLES[kind]}: {LAYERS[name] - 2} of {LAYERS[name]} layers, ours for 2"
    assert report["ram"]["arena"] == STOCK_ARENA.get(name, report["ram"]["arena"])
    linked = symbols(report["image"])
    called = re.findall(r"\b(arm_\w+)\(", (Path(report["project"]) / "model.cpp").read_text())
    assert set(called) <= linked
    assert any(name.startswith("standin_arm_") for name in linked)  # behind Arm's names
    assert not any(name.startswith("deploy_arm_") for name in linked)


@pytest.mark.parametrize("name", MODELS)
def test_golden_models_on_the_virtual_pico_2(deploy, tmp_path, copies, name):
    """The same image as for the real board, its kernels and weights in RAM."""
    pytest.importorskip("toolkit.emulation.rp2350")
    sdk = find_pico_sdk()
    if sdk is None:
        pytest.skip("there is no Pico SDK")
    words = ("--board", "pico2", "--virtual")
    report, answers = run(deploy, name, copies, "checkout", tmp_path, *words, PICO_SDK_PATH=str(sdk.path))
    assert answers["output0"].tobytes() == np.load(GOLDEN / name / "output.npy").tobytes()
    assert report["verified"] is True
    assert report["kernels"].startswith(TITLES["checkout"])


def test_the_report_says_which_layers_are_ours_and_why(deploy, tmp_path, copies):
    model = GOLDEN / "dae"
    words = ("--board", "host", "--sanitize", "--input", model / "input.npy", "--cmsis-nn", copies["pack"])
    result = deploy(model / "dae.pte", *words, DEPLOY_CACHE_DIR=str(copies["cache"]))
    assert result.status == 0, result.stderr
    table = " ".join(result.stdout.split())
    assert f"kernels Arm CMSIS-NN 7.0.0: 10 of 12 layers, ours for 2; from {copies['pack']}" in table.replace("- ", "-")
    assert "ours 00 Quantize, 11 Dequantize: CMSIS-NN has no such function" in table
    saved = json.loads((tmp_path / "build" / "dae-host" / "build-sanitized" / "report.json").read_text())
    assert saved["our_layers"] == [
        {"position": 0, "layer": "", "operator": "Quantize", "kernel": "deploy_quantize_f32_s8"}
        | {"reason": "CMSIS-NN has no such function"},
        {"position": 11, "layer": "", "operator": "Dequantize", "kernel": "deploy_dequantize_s8_f32"}
        | {"reason": "CMSIS-NN has no such function"},
    ]


def test_the_environment_names_a_copy(deploy, tmp_path, copies):
    words = (GOLDEN / "dae" / "dae.pte", "--board", "host")
    environment = {"CMSIS_NN_PATH": str(copies["pack"]), "DEPLOY_CACHE_DIR": str(copies["cache"])}
    result = deploy("render", *words, "--out", "arms", **environment)
    assert result.status == 0, result.stderr
    assert '"Arm CMSIS-NN 7.0.0: 10 of 12 layers, ours for 2"' in (tmp_path / "arms" / "model.h").read_text()
    result = deploy("render", *words, "--out", "ours", "--kernels", "deploy", **environment)
    assert result.status == 0, result.stderr
    assert '"deploy kernels"' in (tmp_path / "ours" / "model.h").read_text()


def test_a_rendered_project_remembers_its_copy(deploy, tmp_path, copies):
    environment = {"DEPLOY_CACHE_DIR": str(copies["cache"])}
    words = (GOLDEN / "dae" / "dae.pte", "--board", "qemu-m33", "--out", "project", "--cmsis-nn", copies["checkout"])
    assert deploy("render", *words, **environment).status == 0
    built = deploy("build", "project", **environment)
    assert built.status == 0, built.stderr
    assert "arm_fully_connected_s8" in symbols(tmp_path / "project" / "build" / "runner.elf")
    elsewhere = deploy("build", "project", "--cmsis-nn", copies["pack"], **environment)
    assert elsewhere.status == 0, elsewhere.stderr
    other = deploy("build", "project", "--kernels", "deploy", **environment)
    assert other.status == 1
    assert "this project is rendered with --kernels cmsis-nn" in " ".join(other.stderr.split())


# --- vector code ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ds_cnn", "dae"])
def test_what_is_planned_for_vector_code(tmp_path, monkeypatch, name):
    """Kernel sums instead of biases, and other scratch. No virtual board here has such a core: it runs on the host."""
    monkeypatch.setenv("DEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("toolkit.planning.cmsis_nn.compiled_isa", lambda board: Isa.MVE)
    found = find_cmsis_nn(str(tree.checkout(tmp_path / "copy", definitions="STANDIN_MVE=1")))
    board, program = load_board("host"), golden_plan(name, "host").program
    plan = make_plan(program, board, model=name, library=KernelLibrary(found.title, found.path))
    assert any(step.kernel.kernel_sum is not None for step in plan.steps)
    render(plan, tmp_path / "project")
    image = build(tmp_path / "project", board)
    with flashing.flash(image, board) as running, Transport(running.port) as transport:
        verdict = verify(Device(transport, stopped=running.stopped), plan, [(golden_input(name),)])
    assert verdict.verified, verdict.difference
    assert verdict.device[0][0].tobytes() == np.load(GOLDEN / name / "output.npy").tobytes()


def test_a_release_that_asks_for_more_memory_than_planned_is_not_called(deploy, tmp_path):
    greedy = tree.checkout(tmp_path / "copy", definitions="STANDIN_GREED=16")
    model = GOLDEN / "ds_cnn"
    words = ("--board", "host", "--input", model / "input.npy", "--cmsis-nn", greedy)
    result = deploy(model / "ds_cnn.pte", *words, DEPLOY_CACHE_DIR=str(tmp_path / "cache"))
    assert result.status == 1
    assert "the kernel of layer 10 failed with status -1" in result.stderr
    assert "asks for more working memory than is planned for it" in " ".join(result.stderr.split())


# --- layers for which the library is wrong ---------------------------------------------------------------------------

INPUT, SMALL, WEIGHT, MULTIPLIER, SHIFT, GROUPED, HIGHEST, POOLED, SOFT, UP_WEIGHT, UP = range(11)


def constant(id, values):
    values = np.ascontiguousarray(values)
    dtype = {1: DType.INT8, 4: DType.INT32}[values.itemsize]
    return Tensor(id, values.shape, dtype, tuple(range(values.ndim)), values.tobytes())


def quirky_program():
    """Grouped convolution without bias, one value per row, a long softmax row and k3 s2 p1 upsampling; and a pool."""
    source = np.random.default_rng(4)
    image, rows = (1, 8, 8, 8), (1, 8, 1, 1)
    shapes = {INPUT: image, SMALL: rows, GROUPED: image, HIGHEST: image, POOLED: (1, 4, 4, 8), SOFT: image}
    tensors = {id: Tensor(id, shape, DType.INT8, (0, 1, 2, 3)) for id, shape in (shapes | {UP: (1, 15, 15, 8)}).items()}
    for id, values in {
        WEIGHT: source.integers(-128, 128, (8, 3, 3, 4)).astype("i1"),
        UP_WEIGHT: source.integers(-128, 128, (8, 3, 3, 8)).astype("i1"),
        MULTIPLIER: np.full(8, 1_500_000_000, "i4"),
        SHIFT: np.full(8, -9, "i4"),
    }.items():
        tensors[id] = constant(id, values)
    scale = {"bias": None, "multiplier": MULTIPLIER, "shift": SHIFT, "activation_min": -128, "activation_max": 127}
    window = {"kernel": (3, 3), "padding": (1, 1), "dilation": (1, 1), "input_offset": 3, "output_offset": -5}
    operators = (
        Conv2d(
            index=0,
            name="grouped",
            output=GROUPED,
            input=INPUT,
            weight=WEIGHT,
            input_shape=image,
            output_shape=image,
            groups=2,
            stride=(1, 1),
            **scale,
            **window,
        ),
        Maximum(
            index=1,
            name="highest",
            output=HIGHEST,
            input=SMALL,
            other=GROUPED,
            input_shape=rows,
            other_shape=image,
            output_shape=image,
        ),
        AvgPool2d(
            index=2,
            name="pool",
            output=POOLED,
            input=HIGHEST,
            input_shape=image,
            output_shape=(1, 4, 4, 8),
            kernel=(2, 2),
            stride=(2, 2),
            padding=(0, 0),
        ),
        Softmax(
            index=3,
            name="soft",
            output=SOFT,
            input=HIGHEST,
            rows=1,
            row_size=512,
            multiplier=1_400_000_000,
            shift=22,
            diff_min=-400,
        ),
        TransposeConv2d(
            index=4,
            name="up",
            output=UP,
            input=GROUPED,
            weight=UP_WEIGHT,
            input_shape=image,
            output_shape=(1, 15, 15, 8),
            stride=(2, 2),
            output_padding=(0, 0),
            **scale,
            **window,
        ),
    )
    return Program("forward", "00" * 32, tensors, operators, (INPUT, SMALL), (POOLED, SOFT, UP))


@pytest.mark.parametrize("board_name", ["qemu-m33", "host"])
def test_layers_for_which_the_library_is_wrong_are_ours(tmp_path, copies, monkeypatch, board_name):
    """The stand-in gives nonsense for them, as Arm's library does; both libraries are linked into one runner."""
    monkeypatch.setenv("DEPLOY_CACHE_DIR", str(copies["cache"]))
    board, program = load_board(board_name), quirky_program()
    found = find_cmsis_nn(str(copies["pack"]))
    plan = make_plan(program, board, model="quirky", library=KernelLibrary(found.title, found.path))
    assert plan.kernels == "Arm CMSIS-NN 7.0.0: 1 of 5 layers, ours for 4"
    render(plan, tmp_path / "project")
    image = build(tmp_path / "project", board, sanitize=board_name == "host")
    source = np.random.default_rng(5)
    samples = [
        tuple(source.integers(-128, 128, program.tensors[id].shape).astype("i1") for id in program.inputs)
        for _ in range(3)
    ]
    with flashing.flash(image, board) as running, Transport(running.port) as transport:
        device = Device(transport, stopped=running.stopped)
        assert device.hello.kernels == plan.kernels
        wrong = first_wrong_layer(fetch_layers(device, plan, samples[0]), plan, Reference(program).run(samples[0]))
        verdict = verify(device, plan, samples)
    assert wrong is None, plan.steps[wrong]
    assert verdict.verified, verdict.difference
    if board_name == "qemu-m33":
        ours = {name for name in symbols(image.elf) if name.startswith("deploy_arm_")}
        assert ours == {f"deploy_{name}_s8" for name in QUIRKY}


QUIRKY = ("arm_convolve_wrapper", "arm_maximum", "arm_softmax", "arm_transpose_conv_wrapper")


def test_the_stand_in_is_wrong_where_it_should_be(tmp_path, copies, monkeypatch):
    """Without what planning knows, the same program gives wrong answers: the test above can fail."""
    monkeypatch.setenv("DEPLOY_CACHE_DIR", str(copies["cache"]))
    monkeypatch.setattr("toolkit.planning.cmsis_nn.quirk_of", lambda op, isa: "")
    board, program = load_board("host"), quirky_program()
    found = find_cmsis_nn(str(copies["pack"]))
    plan = make_plan(program, board, model="quirky", library=KernelLibrary(found.title, found.path))
    render(plan, tmp_path / "project")
    image = build(tmp_path / "project", board)
    sample = tuple(np.zeros(program.tensors[id].shape, "i1") for id in program.inputs)
    with flashing.flash(image, board) as running, Transport(running.port) as transport:
        verdict = verify(Device(transport, stopped=running.stopped), plan, [sample])
    assert not verdict.verified
