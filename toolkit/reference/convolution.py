"""Convolutions: exact integer arithmetic on int8 images in memory order (batch, height, width, channels).

Sums are taken in float64 matrix products, which are exact below 2^53, and reduced modulo 2^32 afterwards.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from toolkit.program.types import Conv2d, DepthwiseConv2d, TransposeConv2d
from toolkit.reference.arithmetic import Array, Ints, requantize, to_int8, wrap
from toolkit.reference.step import Arrays, Step

_LARGEST_BLOCK = 2**22
"""Elements of the unfolded image that are held at a time."""


def conv2d(op: Conv2d, constants: Arrays) -> Step:
    channels, *_, group_channels = constants[op.weight].shape
    weights = constants[op.weight].astype(np.float64).reshape(channels, -1)
    per_group = channels // op.groups
    finish = _Finish(op, constants)

    def run(arrays: Arrays) -> Array:
        image = _padded(arrays, op)
        sums = np.empty(op.output_shape, dtype=np.float64)
        for group in range(op.groups):
            part = image[..., group * group_channels : (group + 1) * group_channels]
            span = slice(group * per_group, (group + 1) * per_group)
            _accumulate(part, weights[span].T, op, sums[..., span])
        return finish(sums.astype(np.int64))

    return run


def depthwise_conv2d(op: DepthwiseConv2d, constants: Arrays) -> Step:
    weights = constants[op.weight]
    channels = op.input_shape[3]
    finish = _Finish(op, constants)
    if channels == 1:
        columns = weights.astype(np.float64).reshape(-1, op.depth_multiplier)

        def run_unfolded(arrays: Arrays) -> Array:
            sums = np.empty(op.output_shape, dtype=np.float64)
            _accumulate(_padded(arrays, op), columns, op, sums)
            return finish(sums.astype(np.int64))

        return run_unfolded
    taps = weights.astype(np.int32).reshape(*op.kernel, channels, op.depth_multiplier)

    def run(arrays: Arrays) -> Array:
        image = _padded(arrays, op).astype(np.int32)
        windows = _windows(image, op)
        sums = np.zeros((*op.output_shape[:3], channels, op.depth_multiplier), dtype=np.int32)
        for y in range(op.kernel[0]):
            for x in range(op.kernel[1]):
                sums += windows[:, :, :, y, x, :, np.newaxis] * taps[y, x]
        return finish(sums.reshape(op.output_shape).astype(np.int64))

    return run


def transpose_conv2d(op: TransposeConv2d, constants: Arrays) -> Step:
    weights = constants[op.weight].astype(np.float64)
    finish = _Finish(op, constants)
    batch, out_h, out_w, channels = op.output_shape
    _, height, width, _ = op.input_shape
    # Every tap writes into a canvas that is large enough for all; the padding is what is cut off its start.
    canvas_h = max((height - 1) * op.stride[0] + (op.kernel[0] - 1) * op.dilation[0] + 1, op.padding[0] + out_h)
    canvas_w = max((width - 1) * op.stride[1] + (op.kernel[1] - 1) * op.dilation[1] + 1, op.padding[1] + out_w)

    def run(arrays: Arrays) -> Array:
        image = arrays[op.input].reshape(op.input_shape).astype(np.float64) + op.input_offset
        canvas = np.zeros((batch, canvas_h, canvas_w, channels), dtype=np.float64)
        for y in range(op.kernel[0]):
            for x in range(op.kernel[1]):
                top, left = y * op.dilation[0], x * op.dilation[1]
                rows = slice(top, top + (height - 1) * op.stride[0] + 1, op.stride[0])
                columns = slice(left, left + (width - 1) * op.stride[1] + 1, op.stride[1])
                canvas[:, rows, columns] += image @ weights[:, y, x, :].T
        top, left = op.padding
        return finish(canvas[:, top : top + out_h, left : left + out_w].astype(np.int64))

    return run


class _Finish:
    """Bias, requantisation per channel, output offset and clamp."""

    def __init__(self, op: Conv2d | DepthwiseConv2d | TransposeConv2d, constants: Arrays) -> None:
        self._op = op
        self._bias: Ints | None = None if op.bias is None else constants[op.bias].astype(np.int64)
        self._multiplier: Ints = constants[op.multiplier].astype(np.int64)
        self._shift: Ints = constants[op.shift].astype(np.int64)

    def __call__(self, sums: Ints) -> Array:
        op = self._op
        total = wrap(sums if self._bias is None else sums + self._bias)
        scaled = requantize(total, self._multiplier, self._shift)
        return to_int8(scaled, op.output_offset, op.activation_min, op.activation_max)


def _padded(arrays: Arrays, op: Conv2d | DepthwiseConv2d) -> Array:
    """The input as float64 with its offset added, and zeros (the zero point) where windows reach outside."""
    reach = [op.dilation[axis] * (op.kernel[axis] - 1) + 1 for axis in (0, 1)]
    needed = [(op.output_shape[1 + axis] - 1) * op.stride[axis] + reach[axis] for axis in (0, 1)]
    image = arrays[op.input].reshape(op.input_shape)
    batch, height, width, channels = op.input_shape
    top, left = op.padding
    canvas = np.zeros((batch, max(needed[0], top + height), max(needed[1], left + width), channels), dtype=np.float64)
    canvas[:, top : top + height, left : left + width] = image
    canvas[:, top : top + height, left : left + width] += op.input_offset
    return canvas


def _windows(image: Array, op: Conv2d | DepthwiseConv2d) -> Array:
    """A view (batch, output height, output width, kernel height, kernel width, channels) of a padded image."""
    batch_step, row_step, column_step, channel_step = image.strides
    shape = (*op.output_shape[:3], *op.kernel, image.shape[3])
    strides = (
        batch_step,
        row_step * op.stride[0],
        column_step * op.stride[1],
        row_step * op.dilation[0],
        column_step * op.dilation[1],
        channel_step,
    )
    return as_strided(image, shape, strides, writeable=False)


def _accumulate(image: Array, columns: Array, op: Conv2d | DepthwiseConv2d, sums: Array) -> None:
    """Fills `sums` with the products of every window with `columns` (window size, channels), in blocks of rows."""
    windows = _windows(image, op)
    batch, out_h, out_w = op.output_shape[:3]
    depth = columns.shape[0]
    rows = max(1, _LARGEST_BLOCK // (out_w * depth))
    for sample in range(batch):
        for top in range(0, out_h, rows):
            block = windows[sample, top : top + rows]
            sums[sample, top : top + rows] = (block.reshape(-1, depth) @ columns).reshape(*block.shape[:2], -1)
