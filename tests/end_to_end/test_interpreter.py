"""The same command with ExecuTorch's interpreter as the engine.

The runtime is real: the Python package's, for this computer; operators run on this project's kernels (see
`tests/interpreter/trees.py`).
"""

import re

import numpy as np
import pytest

from tests.end_to_end.conftest import GOLDEN
from tests.interpreter.trees import board_installation, host_installation, package
from toolkit.board import load_board
from toolkit.interpreter import is_interpreted

HOST = load_board("host")
DAE = GOLDEN / "dae" / "dae.pte"


@pytest.fixture(scope="module")
def on_this_computer(tmp_path_factory):
    return host_installation(tmp_path_factory.mktemp("host") / "executorch", HOST, package())


def test_the_same_command_verifies_it(deploy, on_this_computer):
    words = ("--board", "host", "--engine", "executorch", "--json", "--input", GOLDEN / "dae" / "input.npy")
    result = deploy(DAE, *words, "--output", "out.npz", EXECUTORCH_PATH=str(on_this_computer))
    assert result.status == 0, result.stderr
    assert result.json["verified"] is True
    assert result.json["kernels"] == "ExecuTorch 1.5"
    assert result.json["bytes_compared"] == 2560
    assert result.json["flash"]["constants"] == DAE.stat().st_size
    assert result.json["project"].endswith("dae-host-executorch")


def test_a_wrong_answer_is_found(deploy, tmp_path):
    """An interpreter whose operator is off by one quantisation step fails nowhere, and is not believed."""
    broken = host_installation(tmp_path / "broken", HOST, package(), "-DZERO_POINT_ERROR=1")
    words = (
        "--board",
        "host",
        "--engine",
        "executorch",
        "--executorch",
        broken,
        "--input",
        GOLDEN / "dae" / "input.npy",
    )
    result = deploy(DAE, *words)
    assert result.status == 1
    assert "the device answers" in result.stderr
    assert "largest difference 1 LSB" in result.stderr
    assert "The default engine finds the first wrong layer: leave out --engine executorch." in result.stderr


def test_without_an_installation_it_is_said_how_to_get_one(deploy, tmp_path):
    environment = {"EXECUTORCH_PATH": ""}
    words = ("--board", "qemu-m33", "--engine", "executorch", "--out", "p")
    rendered = deploy("render", DAE, *words, **environment)
    assert rendered.status == 0, rendered.stderr
    assert "its operators are checked when it is built" in re.sub(r"\s+", " ", rendered.stderr)
    assert is_interpreted(tmp_path / "p")
    built = deploy("build", "p", **environment)
    assert built.status == 1
    assert "no ExecuTorch is named that was built for this board" in built.stderr
    assert "Build release 1.5 of ExecuTorch" in built.stderr
    assert "-DEXECUTORCH_BUILD_CORTEX_M=ON" in built.stderr
    assert "Traceback" not in built.stderr


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--layers",), "the interpreter shows no layers"),
        (("--place", "ram"), "ExecuTorch's stay in flash"),
        (("--kernels", "deploy"), "the interpreter's kernels are those that ExecuTorch was built with"),
        (("--cmsis-nn", "x"), "the interpreter's kernels are those that ExecuTorch was built with"),
    ],
)
def test_words_that_this_engine_has_no_use_for(deploy, words, what):
    result = deploy(DAE, "--board", "host", "--engine", "executorch", *words)
    assert result.status == 1
    assert what in result.stderr


def test_an_executorch_that_nothing_uses(deploy, tmp_path):
    result = deploy(DAE, "--board", "host", "--executorch", tmp_path)
    assert result.status == 1
    assert "Add --engine executorch." in result.stderr


def test_a_project_of_the_other_engine(deploy, on_this_computer):
    assert deploy("render", DAE, "--board", "host", "--out", "p").status == 0
    result = deploy("build", "p", "--engine", "executorch", "--executorch", on_this_computer)
    assert result.status == 1
    assert "this project is rendered with the default engine" in result.stderr


@pytest.fixture(scope="module")
def for_nano33ble(tmp_path_factory):
    """With a stand-in for the runtime: it answers an input of zeros with the number of registered operators."""
    folder = tmp_path_factory.mktemp("nano33ble") / "executorch"
    return board_installation(folder, load_board("nano33ble"), package())


ARDUINO = ("--board", "nano33ble", "--engine", "executorch")


def test_a_sketch(deploy, tmp_path, for_nano33ble):
    result = deploy("sketch", DAE, *ARDUINO, "--executorch", for_nano33ble, "-o", "Digits")
    assert result.status == 0, result.stderr
    assert result.stdout == f"{tmp_path / 'Digits'}\n"
    assert "deploy build" in result.stderr
    assert "no ExecuTorch is named" not in result.stderr
    assert (tmp_path / "Digits" / "src" / "internal" / "interpreter.cpp").is_file()
    assert '#include "src/Digits.h"' in (tmp_path / "Digits" / "Digits.ino").read_text()
    (tmp_path / "Digits" / "Digits.ino").write_text("// mine\n")
    again = deploy("render", DAE, *ARDUINO, "--out", "Digits", EXECUTORCH_PATH="")
    assert again.status == 0, again.stderr
    said = re.sub(r"\s+", " ", again.stderr)
    assert "your Digits.ino kept" in said
    assert "its operators are checked when it is built" in said
    library = deploy("sketch", DAE, *ARDUINO, "--library", "-o", "Other")
    assert library.status == 1
    assert "an Arduino library cannot bring ExecuTorch along" in library.stderr
    assert not (tmp_path / "Other").exists()


def test_a_real_board_needs_arduino_cli(deploy, for_nano33ble):
    environment = {"ARDUINO_CLI": "", "PATH": "/usr/bin:/bin"}
    result = deploy("build", DAE, *ARDUINO, "--executorch", for_nano33ble, **environment)
    assert result.status == 1
    assert "arduino-cli is not installed" in result.stderr
    assert "compiler.libraries.ldflags=-Wl,--whole-archive" in result.stderr


def test_the_virtual_arduino_board_is_verified_as_any_other(deploy, tmp_path, for_nano33ble):
    """The whole way; what the stand-in answers is wrong, and is found."""
    np.save(tmp_path / "zeros.npy", np.zeros((1, 640), np.float32))
    result = deploy(DAE, *ARDUINO, "--virtual", "--executorch", for_nano33ble, "--input", "zeros.npy", "--json")
    assert result.status == 1
    assert "the device answers 9.0 where" in result.stderr
    assert result.json["kernels"] == "ExecuTorch 1.5"
    assert result.json["bytes_compared"] == 2560
    assert result.json["project"].endswith("dae-nano33ble-executorch")
    assert result.json["flash"]["constants"] == DAE.stat().st_size
