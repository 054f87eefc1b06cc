"""Random operators against executorch's Python ones, where no golden kernel case reaches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolkit.program.types import BatchMatmul, Div, Linear, Maximum, Minimum, TransposeConv2d
from toolkit.reference import execute

from .single import BIAS, INPUT, MULTIPLIER, OTHER, OUTPUT, SHIFT, WEIGHT, program

COMMON: dict[str, Any] = {"index": 0, "name": "", "output": OUTPUT}


@pytest.fixture(scope="session")
def operators() -> Any:
    """`torch.ops.cortex_m`; importing it takes several seconds."""
    # In this order: the operators alone fail on a circular import.
    pytest.importorskip("executorch.backends.cortex_m.passes.cortex_m_pass_manager")
    torch = pytest.importorskip("torch")
    return torch.ops.cortex_m


def tensor(array: Any) -> Any:
    import torch

    return torch.from_numpy(array)


def int8(rng: np.random.Generator, *shape: int) -> Any:
    return rng.integers(-128, 128, shape).astype(np.int8)


@pytest.mark.parametrize("seed", range(8))
def test_quotients(seed: int, operators: Any) -> None:
    rng = np.random.default_rng(seed)
    a, b = int8(rng, 500), int8(rng, 500)
    zero_a, zero_b, zero_out = (int(z) for z in rng.integers(-128, 128, 3))
    scale = float(rng.uniform(0.1, 40))
    operator = Div(
        **COMMON,
        input=INPUT,
        other=OTHER,
        input_zero_point=zero_a,
        other_zero_point=zero_b,
        output_zero_point=zero_out,
        output_scale=scale,
    )
    result = execute(program(operator, {INPUT: a, OTHER: b}, (500,), (INPUT, OTHER)), [a, b]).outputs[0]
    expected = operators.quantized_div(tensor(a), zero_a, tensor(b), zero_b, zero_out, scale)
    np.testing.assert_array_equal(result, expected.numpy())


@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (2, 3)])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1), (2, 3)])
@pytest.mark.parametrize("padding", [(0, 0), (1, 2)])
def test_transposed_convolutions(stride: Any, dilation: Any, padding: Any, operators: Any) -> None:
    rng = np.random.default_rng([*stride, *dilation, *padding])
    image, weight = int8(rng, 2, 5, 4, 3), int8(rng, 6, 3, 2, 3)
    bias = rng.integers(-5000, 5000, 6).astype(np.int32)
    multiplier = rng.integers(2**30, 2**31, 6).astype(np.int32)
    shift = rng.integers(-12, -6, 6).astype(np.int32)
    output_padding = tuple(s - 1 for s in stride)
    expected = operators.quantized_transpose_conv2d_nhwc(
        *(tensor(array) for array in (image, weight, bias)),
        list(stride),
        list(padding),
        list(output_padding),
        list(dilation),
        7,
        -3,
        tensor(multiplier),
        tensor(shift),
        -100,
        90,
        tensor(np.zeros(0, np.uint8)),
        tensor(np.zeros(0, np.uint8)),
    ).numpy()
    operator = TransposeConv2d(
        **COMMON,
        input=INPUT,
        weight=WEIGHT,
        bias=BIAS,
        multiplier=MULTIPLIER,
        shift=SHIFT,
        input_shape=image.shape,
        output_shape=expected.shape,
        kernel=(3, 2),
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        input_offset=7,
        output_offset=-3,
        activation_min=-100,
        activation_max=90,
    )
    arrays = {INPUT: image, WEIGHT: weight, BIAS: bias, MULTIPLIER: multiplier, SHIFT: shift}
    result = execute(program(operator, arrays, expected.shape, (INPUT,)), [image]).outputs[0]
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("filter_offset", [0, 3, -7])
def test_linear_layers_with_a_kernel_sum(filter_offset: int, operators: Any) -> None:
    """A lowering for Cortex-M55 carries the bias in the kernel sum; both forms give the same result."""
    rng = np.random.default_rng(filter_offset + 10)
    rows, weight = int8(rng, 4, 33), int8(rng, 9, 33)
    bias = rng.integers(-5000, 5000, 9).astype(np.int32)
    kernel_sum = (bias + 11 * (weight.astype(np.int32) + filter_offset).sum(axis=1)).astype(np.int32)[np.newaxis]
    expected = operators.quantized_linear(
        tensor(rows),
        tensor(weight),
        None,
        tensor(kernel_sum),
        11,
        filter_offset,
        5,
        [1234567890],
        [-9],
        120,
        -110,
    ).numpy()
    operator = Linear(
        **COMMON,
        input=INPUT,
        weight=WEIGHT,
        bias=BIAS,
        rows=4,
        depth=33,
        outputs=9,
        input_offset=11,
        filter_offset=filter_offset,
        output_offset=5,
        multipliers=(1234567890,),
        shifts=(-9,),
        activation_min=-110,
        activation_max=120,
    )
    single = program(operator, {INPUT: rows, WEIGHT: weight, BIAS: bias}, (4, 9), (INPUT,))
    np.testing.assert_array_equal(execute(single, [rows]).outputs[0], expected)


@pytest.mark.parametrize("kind", [Minimum, Maximum])
def test_extrema_broadcast(kind: Any, operators: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = int8(rng, 2, 1, 5), int8(rng, 1, 4, 1)
    operator = kind(
        **COMMON, input=INPUT, other=OTHER, input_shape=a.shape, other_shape=b.shape, output_shape=(2, 4, 5)
    )
    single = program(operator, {INPUT: a, OTHER: b}, (2, 4, 5), (INPUT, OTHER))
    expected = (operators.minimum if kind is Minimum else operators.maximum)(tensor(a), tensor(b))
    np.testing.assert_array_equal(execute(single, [a, b]).outputs[0], expected.numpy())


def test_batched_products(operators: Any) -> None:
    rng = np.random.default_rng(4)
    lhs, rhs = int8(rng, 3, 4, 17), int8(rng, 3, 6, 17)
    expected = operators.quantized_batch_matmul(
        tensor(lhs), 5, tensor(rhs), -9, 12, 1987654321, -10, tensor(np.zeros(0, np.uint8))
    )
    operator = BatchMatmul(
        **COMMON,
        lhs=INPUT,
        rhs=OTHER,
        batch=3,
        rows=4,
        depth=17,
        columns=6,
        lhs_offset=5,
        rhs_offset=-9,
        output_offset=12,
        multiplier=1987654321,
        shift=-10,
    )
    single = program(operator, {INPUT: lhs, OTHER: rhs}, (3, 4, 6), (INPUT, OTHER))
    np.testing.assert_array_equal(execute(single, [lhs, rhs]).outputs[0], expected.numpy())
