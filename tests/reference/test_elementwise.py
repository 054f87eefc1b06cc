"""Operators that have no golden kernel case: conversions, quotients, tables, and the movement of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolkit.program.types import (
    Activation,
    Copy,
    Dequantize,
    Div,
    DType,
    Operator,
    Program,
    Quantize,
    Tensor,
    View,
)
from toolkit.reference import execute

IN, OTHER, OUT = 0, 1, 2
COMMON: dict[str, Any] = {"index": 0, "name": "", "output": OUT, "input": IN}


def run(operator: Operator, *arrays: Any, output: Tensor, constant: Any = None) -> Any:
    """The result of one operator; `arrays` are its inputs, contiguous, `constant` its second operand."""
    tensors = {
        id_: Tensor(id_, array.shape, DType(array.dtype.str), tuple(range(array.ndim)))
        for id_, array in zip((IN, OTHER), arrays, strict=False)
    }
    if constant is not None:
        tensors[OTHER] = Tensor(OTHER, constant.shape, DType(constant.dtype.str), (0,), constant.tobytes())
    program = Program("forward", "", {**tensors, OUT: output}, (operator,), tuple(range(len(arrays))), (OUT,))
    return execute(program, arrays).outputs[0]


def contiguous(dtype: DType, *shape: int) -> Tensor:
    return Tensor(OUT, shape, dtype, tuple(range(len(shape))))


def test_quantize_rounds_half_to_even_and_saturates() -> None:
    operator = Quantize(**COMMON, scale=0.5, zero_point=3, quant_min=-128, quant_max=127)
    samples = [
        0.0,
        0.25,
        0.75,
        1.25,
        -0.25,
        -0.75,
        61.9,
        62.0,
        62.3,
        1e30,
        -65.5,
        -66.0,
        -1e30,
        np.inf,
        -np.inf,
        np.nan,
    ]
    expected = [3, 3, 5, 5, 3, 1, 127, 127, 127, 127, -128, -128, -128, 127, -128, 3]
    result = run(operator, np.array(samples, np.float32), output=contiguous(DType.INT8, len(samples)))
    assert result.tolist() == expected


def test_quantize_keeps_to_its_own_range() -> None:
    operator = Quantize(**COMMON, scale=1.0, zero_point=0, quant_min=-127, quant_max=100)
    result = run(operator, np.array([-200, -127, 100, 101], np.float32), output=contiguous(DType.INT8, 4))
    assert result.tolist() == [-127, -127, 100, 100]


def test_quantize_multiplies_by_the_reciprocal_in_float32() -> None:
    # Dividing by the scale, or multiplying in float64, rounds some of these to another step.
    scale = float(np.float32(0.3))
    operator = Quantize(**COMMON, scale=scale, zero_point=0, quant_min=-128, quant_max=127)
    values = np.arange(-3000, 3000, dtype=np.float32) * np.float32(0.01)
    result = run(operator, values, output=contiguous(DType.INT8, values.size))
    inverse = np.float32(np.float64(1) / np.float64(scale))
    products = [np.float32(value * inverse) for value in values]
    assert result.tolist() == [round(float(product)) for product in products]
    quotients = [round(float(value / np.float32(scale))) for value in values]
    assert result.tolist() != quotients


def test_dequantize() -> None:
    operator = Dequantize(**COMMON, scale=0.1, zero_point=-5, quant_min=-128, quant_max=127)
    result = run(operator, np.array([-128, -5, 0, 127], np.int8), output=contiguous(DType.FLOAT32, 4))
    expected = [np.float32(q) * np.float32(0.1) for q in (-123, 0, 5, 132)]
    assert result.dtype == np.float32
    assert result.tolist() == [float(value) for value in expected]


def test_quotients_round_half_to_even_and_are_zero_over_zero() -> None:
    operator = Div(
        **COMMON, other=OTHER, input_zero_point=1, other_zero_point=-1, output_zero_point=10, output_scale=1.0
    )
    #     (6-1)/(1+1)=2.5, (8-1)/2=3.5, -5/2=-2.5, 5/0, 126/1, -129/1
    a = np.array([6, 8, -4, 6, 127, -128], np.int8)
    b = np.array([1, 1, 1, -1, 0, 0], np.int8)
    assert run(operator, a, b, output=contiguous(DType.INT8, 6)).tolist() == [12, 14, 8, 10, 127, -119]


def test_tables_are_indexed_from_the_lowest_value() -> None:
    table = np.random.default_rng(0).integers(-128, 128, 256).astype(np.int8)
    operator = Activation(**COMMON, lut=OTHER)
    values = np.arange(-128, 128).astype(np.int8)[::-1].copy()
    result = run(operator, values, output=contiguous(DType.INT8, 256), constant=table)
    assert result.tolist() == table[::-1].tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.int32])
def test_a_copy_between_orders_keeps_the_logical_elements(dtype: Any) -> None:
    operator = Copy(**COMMON, input_shape=(2, 3, 4, 5), permutation=(0, 2, 3, 1))
    image = np.arange(120).reshape(2, 3, 4, 5).astype(dtype)
    output = Tensor(OUT, (2, 3, 4, 5), DType(np.dtype(dtype).str), (0, 2, 3, 1))
    result = run(operator, image, output=output)
    np.testing.assert_array_equal(result, image)
    assert result.dtype == image.dtype


def test_a_view_keeps_the_bytes() -> None:
    image = np.arange(24).reshape(2, 3, 4).astype(np.int8)
    result = run(View(**COMMON), image, output=contiguous(DType.INT8, 4, 6))
    np.testing.assert_array_equal(result, image.reshape(4, 6))
