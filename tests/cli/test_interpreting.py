"""The way with ExecuTorch's interpreter: what people are warned of."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.interpreter.trees import empty_installation, package
from tests.program.samples import sample
from toolkit.board import load_board
from toolkit.cli import interpreting, job
from toolkit.cli.progress import Stages
from toolkit.errors import UsageError
from toolkit.interpreter.contents import read_contents
from toolkit.program import read_program

M33 = load_board("qemu-m33")


@pytest.fixture
def stages():
    return Stages(Console(file=io.StringIO(), width=1000))


def lowered(name):
    return job.Lowered(name, f"{name}.pte", sample(name))


def test_layers_that_cmsis_nn_gets_wrong_are_named(stages, tmp_path):
    """The default engine computes them with kernels of its own; the interpreter has Arm's alone."""
    board = replace(M33, name="an-m55", cpu="cortex-m55", flags=("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"))
    operators = read_contents(sample("signal"), source="m").operators
    tree = empty_installation(tmp_path / "executorch", board, package(), {"all_ops_lib": operators})
    planned = interpreting.plan(lowered("signal"), board, stages, tree, program=read_program(sample("signal")))
    assert planned.libraries == ("all_ops_lib",)
    said = stages.console.file.getvalue()
    assert [line for line in said.splitlines() if line.startswith("warning")] == [
        "warning: operator 3 (cortex_m::quantized_conv2d_nhwc): "
        "CMSIS-NN's vector code is wrong for 1xN convolutions with a stride"
    ]


def test_rendering_without_an_installation_warns(stages, monkeypatch):
    monkeypatch.delenv("EXECUTORCH_PATH", raising=False)
    interpreting.plan(lowered("dae"), M33, stages, None)
    assert "no ExecuTorch is named" in stages.console.file.getvalue()


def test_whose_word_the_sizes_of_an_arduino_board_are_is_said(stages):
    interpreting.plan(lowered("dae"), load_board("nano33ble"), stages, None)
    assert "for the method; sizes of nano33ble.toml" in stages.console.file.getvalue()


def test_words_that_contradict_each_other(tmp_path):
    interpreting.check_words("deploy", None)
    interpreting.check_words("executorch", tmp_path)
    with pytest.raises(UsageError, match="names an ExecuTorch that nothing uses"):
        interpreting.check_words("deploy", tmp_path)
    with pytest.raises(UsageError, match="an Arduino library cannot bring ExecuTorch along"):
        interpreting.check_words("executorch", None, library=True)
    with pytest.raises(UsageError, match="shows no layers"):
        interpreting.check_words("executorch", None, layers=True)


def test_projects_of_the_two_engines_lie_side_by_side():
    folder = interpreting.project_folder(None, "net", M33)
    assert folder.parts[-2:] == ("build", "net-qemu-m33-executorch")
