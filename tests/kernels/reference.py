"""The kernels' arithmetic in numpy, from the formulae of tests/golden/kernels/README.md; plain and slow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Pair = tuple[int, int]  # (vertical, horizontal)


@dataclass(frozen=True)
class Window:
    """How a kernel moves over an image."""

    stride: Pair
    padding: Pair
    dilation: Pair = (1, 1)


@dataclass(frozen=True)
class Output:
    """What happens to an accumulator; multiplier and shift are scalars or one per channel."""

    multiplier: np.ndarray
    shift: np.ndarray
    offset: int
    low: int = -128
    high: int = 127


def requantize(values, multiplier, shift):
    """int32 values times multiplier / 2^31 * 2^shift, rounded twice."""
    values, multiplier, shift = np.broadcast_arrays(np.asarray(values, "i8"), multiplier, shift)
    shift = np.asarray(shift)
    left = np.maximum(shift, 0).astype("i8")
    right = np.maximum(-shift, 0).astype("i8")
    shifted = (values << left).astype("i4").astype("i8")
    product = (shifted * multiplier + (1 << 30)) >> 31
    half = np.where(right > 0, 1 << np.maximum(right - 1, 0), 0)
    return np.sign(product) * ((np.abs(product) + half) >> right)


def finish(sums, out: Output):
    result = requantize(sums, out.multiplier, out.shift) + out.offset
    return np.minimum(np.maximum(result, out.low), out.high).astype("i1")


def _taps(size: Pair, kernel: Pair, out: Pair, window: Window):
    """For every tap: ky, kx, and the input rows and columns it reads for each output, with a mask of those inside."""
    for ky in range(kernel[0]):
        rows = np.arange(out[0]) * window.stride[0] - window.padding[0] + ky * window.dilation[0]
        for kx in range(kernel[1]):
            columns = np.arange(out[1]) * window.stride[1] - window.padding[1] + kx * window.dilation[1]
            inside = ((rows >= 0) & (rows < size[0]))[:, None] & ((columns >= 0) & (columns < size[1]))
            yield ky, kx, np.clip(rows, 0, size[0] - 1), np.clip(columns, 0, size[1] - 1), inside


def convolution_sums(image, filters, bias, window: Window, out: Pair, input_offset: int, groups: int = 1):
    """image (N, H, W, C), filters (C_out, kh, kw, C / groups), both int8; int32 sums (N, *out, C_out)."""
    n, height, width, channels = image.shape
    rows_per_group, per_group = filters.shape[0] // groups, channels // groups
    sums = np.zeros((n, *out, filters.shape[0]), "i8") + bias
    shifted = image.astype("i8") + input_offset
    for ky, kx, rows, columns, inside in _taps((height, width), filters.shape[1:3], out, window):
        samples = shifted[:, rows][:, :, columns] * inside[None, :, :, None]
        for group in range(groups):
            of_group = slice(group * rows_per_group, (group + 1) * rows_per_group)
            seen = samples[..., group * per_group : (group + 1) * per_group]
            sums[..., of_group] += seen @ filters[of_group, ky, kx].astype("i8").T
    return sums


def depthwise_sums(image, filters, bias, window: Window, out: Pair, input_offset: int, multiplier: int):
    """filters (1, kh, kw, C * multiplier)."""
    by_output = np.moveaxis(filters[0], 2, 0)[..., None]
    return convolution_sums(
        np.repeat(image, multiplier, axis=3), by_output, bias, window, out, input_offset, groups=filters.shape[3]
    )


def transpose_convolution_sums(image, filters, bias, window: Window, out: Pair, input_offset: int):
    """Every input pixel adds its multiple of the kernel to the output."""
    sums = np.zeros((image.shape[0], *out, filters.shape[0]), "i8") + bias
    shifted = image.astype("i8") + input_offset
    for y, x in np.ndindex(image.shape[1:3]):
        for ky, kx in np.ndindex(filters.shape[1:3]):
            row = y * window.stride[0] - window.padding[0] + ky
            column = x * window.stride[1] - window.padding[1] + kx
            if 0 <= row < out[0] and 0 <= column < out[1]:
                sums[:, row, column] += shifted[:, y, x] @ filters[:, ky, kx].astype("i8").T
    return sums


def pool(image, kernel: Pair, window: Window, out: Pair, *, average: bool):
    """Taps in padding take no part; averages round halves away from zero."""
    n, height, width, channels = image.shape
    total = np.zeros((n, *out, channels), "i8")
    largest = np.full((n, *out, channels), -128, "i8")
    count = np.zeros((1, *out, 1), "i8")
    for _, _, rows, columns, inside in _taps((height, width), kernel, out, window):
        samples = image[:, rows][:, :, columns].astype("i8")
        mask = inside[None, :, :, None]
        total += samples * mask
        largest = np.where(mask, np.maximum(largest, samples), largest)
        count += mask
    if not average:
        return largest.astype("i1")
    magnitude = (np.abs(total) + count // 2) // count
    return (np.sign(total) * magnitude).astype("i1")
