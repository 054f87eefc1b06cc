"""Writing model files as a user would, and lowering them by the path that users' models take."""

from collections import Counter
from textwrap import dedent, indent

import numpy as np
import pytest

from toolkit.lowering import float_outputs, load_model, lower, quantized_outputs
from toolkit.program import read_program
from toolkit.reference import execute

HEAD = """\
import torch
from torch import nn
from torch.nn import functional as F

"""

DATA = """
def example_inputs():
    return next(inputs())

def calibration_inputs():
    return inputs()

def inputs():
    for seed in range(4):
        torch.manual_seed(seed)
        yield ({tensors},)
"""


def network(forward, layers="pass", arguments="x"):
    """Source of a `model()` with the given layers (statements on self) and result of forward (an expression)."""
    body = indent(dedent(layers), " " * 8)
    return (
        f"class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n{body}\n\n"
        f"    def forward(self, {arguments}):\n        return {forward}\n\n"
        "def model():\n    torch.manual_seed(1)\n    return Net()\n"
    )


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a model file into the current folder and returns its name."""
    monkeypatch.chdir(tmp_path)

    def to(body, *, tensors=None, name="net.py"):
        data = DATA.format(tensors=tensors) if tensors else ""
        (tmp_path / name).write_text(HEAD + dedent(body) + data)
        return name

    return to


@pytest.fixture
def load(write):
    """Writes and loads a model file that gives no reason for a warning."""

    def loaded(body, *, tensors, name="net.py"):
        return load_model(write(body, tensors=tensors, name=name), warn=pytest.fail)

    return loaded


@pytest.fixture
def lowered(load):
    """Writes, loads and lowers a model file: (Model, Lowered)."""

    def done(body, *, tensors, cpu="cortex-m33", name="net.py"):
        model = load(body, tensors=tensors, name=name)
        return model, lower(model, cpu)

    return done


def instructions(pte):
    """Names of the operators that a serialised program calls, in order, as executorch's own reader finds them."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    plan = deserialize_pte_binary(pte).program.execution_plan[0]
    return [plan.operators[one.instr_args.op_index].name for one in plan.chains[0].instructions]


def work(pte):
    """How often a program calls each operator that computes: without conversions, transposes and views."""
    moves = {"cortex_m::quantize_per_tensor", "cortex_m::dequantize_per_tensor", "cortex_m::transpose"}
    return Counter(name.removeprefix("cortex_m::") for name in instructions(pte) if name not in moves)


def assert_close(model, program):
    """The quantised model and the program compute what the float model does, but for a few steps of int8."""
    expected = float_outputs(model, model.evaluation)
    widest = max(np.abs(array).max() for sample in (*expected, *model.evaluation) for array in sample)
    for got in (quantized_outputs(program, model.evaluation), executed(program.pte, model.evaluation)):
        for outputs, others in zip(expected, got, strict=True):
            assert [array.shape for array in outputs] == [array.shape for array in others]
            for one, other in zip(outputs, others, strict=True):
                np.testing.assert_allclose(other, one, rtol=0, atol=0.02 * widest)


def executed(pte, inputs):
    """Outputs of a serialised program, as the device must give them."""
    program = read_program(pte)
    return tuple(execute(program, sample).outputs for sample in inputs)
