"""The golden models: every layer and every output byte."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from toolkit.errors import ModelError
from toolkit.program import read_program
from toolkit.program.types import Dequantize, Program, View
from toolkit.reference import Reference, execute

MODELS = Path(__file__).parent.parent / "golden" / "models"
NAMES = ("ds_cnn", "resnet8", "mbv1", "dae")


def golden_program(name: str) -> Program:
    return read_program((MODELS / name / f"{name}.pte").read_bytes(), source=f"{name}.pte")


@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_equals_golden_intermediates(name: str) -> None:
    program = golden_program(name)
    golden = np.load(MODELS / name / "intermediates.npz")
    result = execute(program, [np.load(MODELS / name / "input.npy")])
    compared = set()
    for operator in program.operators:
        if isinstance(operator, View):
            continue
        key = f"{operator.index:02d}"
        assert result.tensors[operator.output].dtype == golden[key].dtype
        np.testing.assert_array_equal(result.tensors[operator.output], golden[key], err_msg=repr(operator))
        compared.add(key)
    assert compared == set(golden)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_equal_golden_outputs(name: str) -> None:
    program = golden_program(name)
    result = execute(program, [np.load(MODELS / name / "input.npy")])
    (output,) = result.outputs
    np.testing.assert_array_equal(output, np.load(MODELS / name / "output.npy"))
    last = program.operators[-1]
    assert isinstance(last, Dequantize)
    np.testing.assert_array_equal(result.tensors[last.input].ravel(), np.load(MODELS / name / "output_int8.npy"))


@pytest.mark.parametrize("name", NAMES)
def test_input_in_device_order_is_the_physical_order_of_the_input_tensor(name: str) -> None:
    program = golden_program(name)
    tensor = program.tensors[program.inputs[0]]
    physical = np.load(MODELS / name / "input.npy").transpose(tensor.dim_order)
    assert physical.astype("<f4").tobytes() == (MODELS / name / "input_device.bin").read_bytes()


def test_a_prepared_program_is_fast_and_can_be_run_again() -> None:
    program = golden_program("mbv1")
    sample = np.load(MODELS / "mbv1" / "input.npy")
    reference = Reference(program)
    first = reference.run([sample])
    times = []
    for _ in range(3):
        start = time.perf_counter()
        again = reference.run([sample])
        times.append(time.perf_counter() - start)
    np.testing.assert_array_equal(first.outputs[0], again.outputs[0])
    assert min(times) < 0.3


def test_wrong_inputs_are_refused() -> None:
    program = golden_program("dae")
    with pytest.raises(ModelError, match=r"float32 \[1, 640\], float64 \[1, 640\] was given"):
        execute(program, [np.zeros((1, 640))])
    with pytest.raises(ModelError, match="takes 1 inputs, 2 were given"):
        execute(program, [np.zeros((1, 640), np.float32)] * 2)
