"""Operators that treat every element alike: sums, products, extrema, tables, and the two conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from toolkit.program.call import INT8, MULTIPLIER, SHIFT, SIGNED_MULTIPLIER, WIDE_ZERO_POINT, Call
from toolkit.program.layout import arranged, element_order
from toolkit.program.types import (
    Activation,
    Add,
    Dequantize,
    Div,
    DType,
    Maximum,
    Minimum,
    Mul,
    Operator,
    Quantize,
    Shape,
    Softmax,
    Tensor,
)

_INT8_SCALAR_TYPE = 1
_TABLE_SIZE = 256
_SOFTMAX_SHIFT = (0, 31)
_DIFFERENCES = (-(2**31), 0)


def quantize(call: Call) -> Operator:
    source, result = call.tensor("input", DType.FLOAT32), call.result(DType.INT8)
    return _conversion(call, Quantize, source, result)


def dequantize(call: Call) -> Operator:
    source, result = call.tensor("input", DType.INT8), call.result(DType.FLOAT32)
    return _conversion(call, Dequantize, source, result)


def add(call: Call) -> Operator:
    operands = _broadcast(call)
    activation_min, activation_max = call.activation()
    return Add(
        index=call.index,
        name=call.name,
        output=operands.output,
        input=operands.input,
        other=operands.other,
        input_shape=operands.input_shape,
        other_shape=operands.other_shape,
        output_shape=operands.output_shape,
        input_zero_point=call.integer("input_zero_point", INT8),
        # A difference is a sum in which one multiplier is negative.
        input_multiplier=call.integer("input_multiplier", SIGNED_MULTIPLIER),
        input_shift=call.integer("input_shift", SHIFT),
        other_zero_point=call.integer("other_zero_point", INT8),
        other_multiplier=call.integer("other_multiplier", SIGNED_MULTIPLIER),
        other_shift=call.integer("other_shift", SHIFT),
        output_zero_point=call.integer("output_zero_point", INT8),
        output_multiplier=call.integer("output_multiplier", MULTIPLIER),
        output_shift=call.integer("output_shift", SHIFT),
        activation_min=activation_min,
        activation_max=activation_max,
    )


def mul(call: Call) -> Operator:
    operands = _broadcast(call)
    return Mul(
        index=call.index,
        name=call.name,
        output=operands.output,
        input=operands.input,
        other=operands.other,
        input_shape=operands.input_shape,
        other_shape=operands.other_shape,
        output_shape=operands.output_shape,
        input_zero_point=call.integer("input_zero_point", WIDE_ZERO_POINT),
        other_zero_point=call.integer("other_zero_point", WIDE_ZERO_POINT),
        output_zero_point=call.integer("output_zero_point", INT8),
        multiplier=call.integer("multiplier", MULTIPLIER),
        shift=call.integer("shift", SHIFT),
    )


def div(call: Call) -> Operator:
    source, other, result = call.tensor("input", DType.INT8), call.tensor("other", DType.INT8), call.result(DType.INT8)
    _require_alike(call, source, result)
    _require_alike(call, other, result)
    return Div(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        other=other.id,
        input_zero_point=call.integer("input_zero_point", INT8),
        other_zero_point=call.integer("other_zero_point", INT8),
        output_zero_point=call.integer("output_zero_point", INT8),
        output_scale=call.scale("output_scale"),
    )


def minimum(call: Call) -> Operator:
    return Minimum(index=call.index, name=call.name, **_broadcast(call)._asdict())


def maximum(call: Call) -> Operator:
    return Maximum(index=call.index, name=call.name, **_broadcast(call)._asdict())


def activation(call: Call) -> Operator:
    source, result = call.tensor("input", DType.INT8), call.result(DType.INT8)
    _require_alike(call, source, result)
    lut = call.constant("lut", DType.INT8, (_TABLE_SIZE,))
    return Activation(index=call.index, name=call.name, output=result.id, input=source.id, lut=lut.id)


def clamp(call: Call) -> Operator:
    """A clamp of int8 to int8 bounds, as a table: the kernel is that of every other function of one int8 value."""
    source, result = call.tensor("input", DType.INT8), call.result(DType.INT8)
    _require_alike(call, source, result)
    low, high = call.optional_integer("low", INT8), call.optional_integer("high", INT8)
    values = np.arange(INT8[0], INT8[1] + 1)
    # The upper bound wins where the bounds contradict each other.
    values = np.minimum(np.maximum(values, INT8[0] if low is None else low), INT8[1] if high is None else high)
    lut = call.add_constant((_TABLE_SIZE,), DType.INT8, values.astype(np.int8).tobytes())
    return Activation(index=call.index, name=call.name, output=result.id, input=source.id, lut=lut.id)


def softmax(call: Call) -> Operator:
    source, result = call.tensor("input", DType.INT8), call.result(DType.INT8)
    _require_alike(call, source, result)
    rank = len(source.shape)
    axis = call.integer("dim", (-rank, rank - 1)) % rank if rank else 0
    row_size = source.shape[axis] if rank else 1
    order = element_order(source.shape, source.dim_order)
    innermost = element_order(source.shape, (*(a for a in source.dim_order if a != axis), axis) if rank else ())
    if order != innermost:
        call.fail(
            f"softmax over axis {axis} of {list(source.shape)}, which is not the innermost in memory",
            hint="Move the axis to the end before the softmax.",
        )
    if call.integer("output_zero_point", INT8) != INT8[0]:
        call.fail(f"the output zero point must be {INT8[0]}")
    call.integer("input_zero_point", INT8)
    shift, diff_min = call.integer("shift", _SOFTMAX_SHIFT), call.integer("diff_min", _DIFFERENCES)
    if -diff_min << shift >= 2**31:
        call.fail(f"diff_min {diff_min} and shift {shift} exceed the fixed-point range")
    return Softmax(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        rows=source.size // row_size,
        row_size=row_size,
        multiplier=call.integer("multiplier", MULTIPLIER),
        shift=shift,
        diff_min=diff_min,
    )


def _conversion(
    call: Call, kind: Callable[..., Quantize | Dequantize], source: Tensor, result: Tensor
) -> Quantize | Dequantize:
    _require_alike(call, source, result)
    if call.integer("dtype", (0, 127)) != _INT8_SCALAR_TYPE:
        call.fail("only int8 is supported as the quantised type")
    quant_min, quant_max = call.bounds("quant_min", "quant_max")
    return kind(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        scale=call.scale("scale"),
        zero_point=call.integer("zero_point", INT8),
        quant_min=quant_min,
        quant_max=quant_max,
    )


def _require_alike(call: Call, source: Tensor, result: Tensor) -> None:
    """Raises ProgramError unless input and output have one shape and one element order."""
    if source.shape != result.shape:
        call.fail(f"input and output have different shapes: {list(source.shape)} and {list(result.shape)}")
    if element_order(source.shape, source.dim_order) != element_order(result.shape, result.dim_order):
        call.fail(
            f"input and output are in different memory orders: {list(source.dim_order)} and {list(result.dim_order)}"
        )


class _Operands(NamedTuple):
    """Tensors of an operator with two inputs, with their sizes in the memory order of the output."""

    output: int
    input: int
    other: int
    input_shape: Shape
    other_shape: Shape
    output_shape: Shape


def _broadcast(call: Call) -> _Operands:
    """Raises ProgramError unless the inputs broadcast to the output without reordering their bytes."""
    source, other, result = call.tensor("input", DType.INT8), call.tensor("other", DType.INT8), call.result(DType.INT8)
    input_shape, other_shape = operand_shape(call, source, result), operand_shape(call, other, result)
    output_shape = result.physical_shape
    if any({a, b} - {1} != {out} - {1} for a, b, out in zip(input_shape, other_shape, output_shape, strict=True)):
        call.fail(f"{list(source.shape)} and {list(other.shape)} do not broadcast to the output {list(result.shape)}")
    return _Operands(result.id, source.id, other.id, input_shape, other_shape, output_shape)


def operand_shape(call: Call, tensor: Tensor, result: Tensor) -> Shape:
    """An operand's sizes, with leading ones, in the memory order of the output."""
    rank = len(result.shape)
    if tensor.size == 1:
        return (1,) * rank
    missing = rank - len(tensor.shape)
    if missing < 0:
        call.fail(f"an operand {list(tensor.shape)} has more dimensions than the output {list(result.shape)}")
    shape = (1,) * missing + tensor.shape
    dim_order = (*range(missing), *(axis + missing for axis in tensor.dim_order))
    if element_order(shape, dim_order) != element_order(shape, result.dim_order):
        call.fail(
            f"an operand (tensor {tensor.id}) and the output are in different memory orders: "
            f"{list(tensor.dim_order)} and {list(result.dim_order)}"
        )
    return arranged(shape, result.dim_order)
