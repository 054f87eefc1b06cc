"""Operators that treat every element alike, and softmax."""

from __future__ import annotations

import numpy as np

from toolkit.program.types import Activation, Add, Dequantize, Div, Maximum, Minimum, Mul, Quantize, Softmax
from toolkit.reference.arithmetic import (
    Array,
    Ints,
    divide_by_power_of_two,
    exp_on_negative_values,
    high_multiply_saturating,
    one_over_one_plus,
    requantize,
    to_int8,
    wrap,
)
from toolkit.reference.step import Arrays, Step

_ADD_LEFT_SHIFT = 20
_INT8_VALUES = np.arange(-128, 128, dtype=np.int64)


def quantize(op: Quantize, _: Arrays) -> Step:
    inverse = np.float32(1.0 / op.scale)

    def run(arrays: Arrays) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.rint(arrays[op.input] * inverse)
        # Beyond this range every int8 zero point leaves the result saturated.
        steps = np.clip(np.nan_to_num(scaled, nan=0.0), -1024, 1024).astype(np.int64)
        return to_int8(steps, op.zero_point, op.quant_min, op.quant_max)

    return run


def dequantize(op: Dequantize, _: Arrays) -> Step:
    scale = np.float32(op.scale)

    def run(arrays: Arrays) -> Array:
        result: Array = (arrays[op.input].astype(np.int32) - op.zero_point).astype(np.float32) * scale
        return result

    return run


def add(op: Add, _: Arrays) -> Step:
    # An operand's share depends on its value alone, so it is looked up.
    first = _rescaled(op.input_zero_point, op.input_multiplier, op.input_shift)
    second = _rescaled(op.other_zero_point, op.other_multiplier, op.other_shift)

    def run(arrays: Arrays) -> Array:
        a = first[arrays[op.input].reshape(op.input_shape).astype(np.int64) + 128]
        b = second[arrays[op.other].reshape(op.other_shape).astype(np.int64) + 128]
        total = requantize(wrap(a + b), op.output_multiplier, op.output_shift)
        return to_int8(total, op.output_zero_point, op.activation_min, op.activation_max)

    return run


def mul(op: Mul, _: Arrays) -> Step:
    def run(arrays: Arrays) -> Array:
        a = arrays[op.input].reshape(op.input_shape).astype(np.int64) - op.input_zero_point
        b = arrays[op.other].reshape(op.other_shape).astype(np.int64) - op.other_zero_point
        return to_int8(requantize(a * b, op.multiplier, op.shift), op.output_zero_point, -128, 127)

    return run


def div(op: Div, _: Arrays) -> Step:
    scale = np.float32(op.output_scale)

    def run(arrays: Arrays) -> Array:
        a = (arrays[op.input].astype(np.int32) - op.input_zero_point).astype(np.float32)
        b = (arrays[op.other].reshape(a.shape).astype(np.int32) - op.other_zero_point).astype(np.float32)
        quotient = np.divide(a, b, out=np.zeros_like(a), where=b != 0)
        with np.errstate(over="ignore"):
            steps = np.clip(np.rint(quotient * scale), -1024, 1024)
        return to_int8(steps.astype(np.int64), op.output_zero_point, -128, 127)

    return run


def minimum(op: Minimum, _: Arrays) -> Step:
    def run(arrays: Arrays) -> Array:
        lowest: Array = np.minimum(arrays[op.input].reshape(op.input_shape), arrays[op.other].reshape(op.other_shape))
        return lowest

    return run


def maximum(op: Maximum, _: Arrays) -> Step:
    def run(arrays: Arrays) -> Array:
        highest: Array = np.maximum(arrays[op.input].reshape(op.input_shape), arrays[op.other].reshape(op.other_shape))
        return highest

    return run


def activation(op: Activation, constants: Arrays) -> Step:
    table = constants[op.lut]

    def run(arrays: Arrays) -> Array:
        result: Array = table[arrays[op.input].astype(np.int64) + 128]
        return result

    return run


def softmax(op: Softmax, _: Arrays) -> Step:
    def run(arrays: Arrays) -> Array:
        rows = arrays[op.input].reshape(op.rows, op.row_size).astype(np.int64)
        difference = rows - rows.max(axis=1, keepdims=True)
        counted = difference >= op.diff_min
        # What is too far below the maximum takes no part; zero keeps its arithmetic in range.
        scaled = high_multiply_saturating(np.where(counted, difference, 0) << op.shift, op.multiplier)
        exponentials = exp_on_negative_values(scaled)
        total = np.where(counted, divide_by_power_of_two(exponentials, 12), 0).sum(axis=1, keepdims=True)
        result: Array = np.where(counted, _shares(exponentials, total), -128).astype(np.int8)
        return result

    return run


def _shares(exponentials: Ints, total: Ints) -> Ints:
    """Exponentials (Q0.31) over their sum (Q12.19), in 1/256 with a zero point of -128.

    From a sum of 2^28 on the last shift exceeds 31, which C leaves undefined; Arm cores then give a quotient of 1.
    """
    leading_zeros = 32 - np.floor(np.log2(total)).astype(np.int64) - 1
    leading_zeros = np.maximum(leading_zeros, 0)
    reciprocal = one_over_one_plus(wrap((total << leading_zeros) - 2**31))
    exponent = 35 - leading_zeros
    quotient = divide_by_power_of_two(high_multiply_saturating(reciprocal, exponentials), np.minimum(exponent, 31))
    quotient = np.where(exponent > 31, 1, quotient)
    return np.clip(quotient - 128, -128, 127)


def _rescaled(zero_point: int, multiplier: int, shift: int) -> Ints:
    """An operand of a sum on the common scale, for each of its 256 values."""
    return requantize(wrap((_INT8_VALUES - zero_point) << _ADD_LEFT_SHIFT), multiplier, shift)
