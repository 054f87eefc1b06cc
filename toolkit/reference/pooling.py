"""Pooling over the taps that lie inside the image."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from toolkit.program.types import AvgPool2d, MaxPool2d
from toolkit.reference.arithmetic import Array
from toolkit.reference.step import Arrays, Step


def avg_pool2d(op: AvgPool2d, _: Arrays) -> Step:
    ones = np.ones((1, *op.input_shape[1:3], 1), dtype=np.int64)
    counts = _windows(ones, op, 0).sum(axis=(-2, -1), dtype=np.int64)

    def run(arrays: Arrays) -> Array:
        sums = _windows(arrays[op.input].reshape(op.input_shape), op, 0).sum(axis=(-2, -1), dtype=np.int64)
        # Rounded to nearest; a tie, which only an even count has, goes away from zero.
        means = np.sign(sums) * ((np.abs(sums) + counts // 2) // counts)
        rounded: Array = means.astype(np.int8)
        return rounded

    return run


def max_pool2d(op: MaxPool2d, _: Arrays) -> Step:
    def run(arrays: Arrays) -> Array:
        highest = _windows(arrays[op.input].reshape(op.input_shape), op, -128).max(axis=(-2, -1))
        clamped: Array = np.clip(highest, op.activation_min, op.activation_max).astype(np.int8)
        return clamped

    return run


def _windows(image: Array, op: AvgPool2d | MaxPool2d, fill: int) -> Array:
    """A view (batch, output height, output width, channels, kernel height, kernel width), `fill` outside the image."""
    pads = [(0, 0)]
    for axis in (0, 1):
        needed = (op.output_shape[1 + axis] - 1) * op.stride[axis] + op.kernel[axis]
        before = op.padding[axis]
        pads.append((before, max(0, needed - before - op.input_shape[1 + axis])))
    canvas = np.pad(image, [*pads, (0, 0)], constant_values=fill)
    batch_step, row_step, column_step, channel_step = canvas.strides
    shape = (canvas.shape[0], *op.output_shape[1:3], canvas.shape[3], *op.kernel)
    strides = (
        batch_step,
        row_step * op.stride[0],
        column_step * op.stride[1],
        channel_step,
        row_step,
        column_step,
    )
    return as_strided(canvas, shape, strides, writeable=False)
