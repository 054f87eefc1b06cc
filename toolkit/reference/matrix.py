"""Linear layers and batched matrix products, int8 with int32 sums."""

from __future__ import annotations

import numpy as np

from toolkit.program.types import BatchMatmul, Linear
from toolkit.reference.arithmetic import Array, requantize, to_int8, wrap
from toolkit.reference.step import Arrays, Step


def linear(op: Linear, constants: Arrays) -> Step:
    weights = constants[op.weight].astype(np.float64).T + op.filter_offset
    bias = np.int64(0) if op.bias is None else constants[op.bias].astype(np.int64)
    multipliers, shifts = np.array(op.multipliers, dtype=np.int64), np.array(op.shifts, dtype=np.int64)

    def run(arrays: Arrays) -> Array:
        rows = arrays[op.input].reshape(op.rows, op.depth).astype(np.float64) + op.input_offset
        sums = wrap((rows @ weights).astype(np.int64) + bias)
        return to_int8(requantize(sums, multipliers, shifts), op.output_offset, op.activation_min, op.activation_max)

    return run


def batch_matmul(op: BatchMatmul, _: Arrays) -> Step:
    def run(arrays: Arrays) -> Array:
        lhs = arrays[op.lhs].reshape(op.batch, op.rows, op.depth).astype(np.float64) + op.lhs_offset
        rhs = arrays[op.rhs].reshape(op.batch, op.columns, op.depth).astype(np.float64) + op.rhs_offset
        sums = wrap((lhs @ rhs.transpose(0, 2, 1)).astype(np.int64))
        return to_int8(requantize(sums, op.multiplier, op.shift), op.output_offset, -128, 127)

    return run
