"""Random layers of odd shapes against the numpy model, on every machine."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from . import reference
from .calls import Call
from .reference import Output, Window

LAYERS = 250  # of each kind


def fitting_output(random, sums, *, per_channel=True):
    """Multipliers that spread the sums over int8 and somewhat beyond; now and then one beyond what is fast."""
    channels = sums.shape[-1] if per_channel else 1
    scale = random.uniform(20, 120, channels) / (np.abs(sums).max() / 2 + 1)
    if random.random() < 0.2:
        scale[random.integers(channels)] *= random.choice([2.0**20, 2.0**-12, -1.0])
    fraction, exponent = np.frexp(scale)
    multiplier = np.minimum(np.round(fraction * 2**31), 2**31 - 1).astype("i4")
    low, high = sorted(random.integers(-128, 128, 2)) if random.random() < 0.3 else (-128, 127)
    return Output(
        multiplier, np.maximum(exponent, -31).astype("i4"), int(random.integers(-128, 128)), int(low), int(high)
    )


def random_codes(random, *shape):
    return random.integers(-128, 128, shape, dtype="i1")


def random_bias(random, channels):
    """Zero length means no bias; now and then one so large that sums come near the ends of int32."""
    high = 2_000_000_000 if random.random() < 0.1 else 3000
    return random.integers(-high, high, channels if random.random() < 0.8 else 0, dtype="i4")


def random_window(random, size, kernel, *, dilated=True):
    """A window and an output size of at least one pixel; padding may exceed the kernel."""
    dilation = tuple(int(d) for d in random.integers(1, 3, 2)) if dilated and random.random() < 0.3 else (1, 1)
    stride = tuple(int(s) for s in random.integers(1, 4, 2))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    padding = [int(random.integers(0, k + 2)) if random.random() < 0.5 else k // 2 for k in kernel]
    return Window(stride, tuple(padding), dilation), random_output_size(random, size, reach, stride, padding)


def random_output_size(random, size, reach, stride, padding):
    """Padding on the far side may be another than on the near one; the output's size is all that tells."""
    after = [p if random.random() < 0.6 else int(random.integers(0, 3)) for p in padding]
    spans = [n + p + a - r for n, p, a, r in zip(size, padding, after, reach, strict=True)]
    return tuple(max(1, span // s + 1) for span, s in zip(spans, stride, strict=True))


def small(random, high, count=2):
    return tuple(int(value) for value in random.integers(1, high + 1, count))


def tiles(window, input_offset, out, *more):
    """The scalars of a convolution's parameters, in the order of the structure."""
    pairs = [window.stride, window.padding, *more, window.dilation]
    return (input_offset, out.offset, *(value for pair in pairs for value in reversed(pair)), out.low, out.high)


def random_convolution(random):
    groups = int(random.choice([1, 1, 1, 2, 3]))
    per_group, rows_per_group = int(random.choice([1, 2, 3, 4, 4, 5, 8, 9])), int(random.integers(1, 10))
    size, kernel = small(random, 9), small(random, 5)
    if random.random() < 0.3:
        kernel = (1, 1)
    window, out_size = random_window(random, size, kernel)
    n, input_offset = int(random.integers(1, 3)), int(random.integers(-127, 129))
    image = random_codes(random, n, *size, per_group * groups)
    filters = random_codes(random, rows_per_group * groups, *kernel, per_group)
    bias = random_bias(random, filters.shape[0])
    full_bias = bias if bias.size else 0
    sums = reference.convolution_sums(image, filters, full_bias, window, out_size, input_offset, groups)
    out = fitting_output(random, sums)
    scalars = (*image.shape, *filters.shape, *sums.shape, *tiles(window, input_offset, out))
    arrays = (image, filters, bias, out.multiplier, out.shift)
    scratch = 4 * (-(-kernel[0] * kernel[1] * per_group // 4) * 4)
    return Call("arm_convolve_wrapper_s8", scalars, arrays, sums.shape), reference.finish(sums, out), scratch


def random_depthwise(random):
    channels, multiplier = int(random.choice([1, 1, 3, 4, 5, 8, 13])), int(random.choice([1, 1, 1, 2, 7]))
    size = small(random, 9)
    kernel = (3, 3) if random.random() < 0.6 else small(random, 5)
    window, out_size = random_window(random, size, kernel)
    if kernel == (3, 3) and random.random() < 0.8:  # the shapes that have a kernel of their own
        size = tuple(int(value) for value in random.integers(3, 9, 2))
        stride = int(random.integers(1, 3))
        window = Window((stride, stride), tuple(int(p) for p in random.choice([0, 1, 1, 2], 2)))
        out_size = random_output_size(random, size, kernel, window.stride, window.padding)
    n, input_offset = int(random.integers(1, 3)), int(random.integers(-127, 129))
    image = random_codes(random, n, *size, channels)
    filters = random_codes(random, 1, *kernel, channels * multiplier)
    bias = random_bias(random, channels * multiplier)
    full_bias = bias if bias.size else 0
    sums = reference.depthwise_sums(image, filters, full_bias, window, out_size, input_offset, multiplier)
    out = fitting_output(random, sums)
    parameters = tiles(window, input_offset, out)
    parameters = (*parameters[:2], multiplier, *parameters[2:])
    scalars = (*image.shape, *filters.shape, *sums.shape, *parameters)
    arrays = (image, filters, bias, out.multiplier, out.shift)
    taps = -(-kernel[0] * kernel[1] // 4) * 4
    scratch = (multiplier + 4) * taps if channels == 1 and multiplier > 1 else 0
    return Call("arm_depthwise_conv_wrapper_s8", scalars, arrays, sums.shape), reference.finish(sums, out), scratch


def random_transpose_convolution(random):
    channels, channels_out = small(random, 9)
    size, kernel, stride = small(random, 5), small(random, 4), small(random, 3)
    padding = tuple(int(random.integers(0, k)) for k in kernel)
    full = [(n - 1) * s + k for n, s, k in zip(size, stride, kernel, strict=True)]
    out_size = tuple(max(1, f - 2 * p + int(random.integers(0, 2))) for f, p in zip(full, padding, strict=True))
    window, input_offset = Window(stride, padding), int(random.integers(-127, 129))
    image = random_codes(random, int(random.integers(1, 3)), *size, channels)
    filters = random_codes(random, channels_out, *kernel, channels)
    bias = random_bias(random, channels_out)
    full_bias = bias if bias.size else 0
    sums = reference.transpose_convolution_sums(image, filters, full_bias, window, out_size, input_offset)
    out = fitting_output(random, sums)
    scalars = (*image.shape, *filters.shape, *sums.shape, *tiles(window, input_offset, out, (0, 0)))
    arrays = (image, filters, bias, out.multiplier, out.shift)
    return Call("arm_transpose_conv_wrapper_s8", scalars, arrays, sums.shape), reference.finish(sums, out), 0


def random_fully_connected(random):
    batches, (depth, rows) = int(random.integers(1, 4)), small(random, 40)
    per_channel = random.random() < 0.5
    input_offset, filter_offset = int(random.integers(-127, 129)), int(random.choice([0, 0, -128, 77]))
    samples, weights = random_codes(random, batches, depth), random_codes(random, rows, depth)
    bias = random_bias(random, rows)
    sums = (samples.astype("i8") + input_offset) @ (weights.astype("i8") + filter_offset).T
    sums = sums + (bias if bias.size else 0)
    out = fitting_output(random, sums, per_channel=per_channel)
    function = "arm_fully_connected_per_channel_s8" if per_channel else "arm_fully_connected_s8"
    scalars = (batches, depth, rows, input_offset, filter_offset, out.offset, out.low, out.high)
    arrays = (samples, weights, bias, out.multiplier, out.shift)
    return Call(function, scalars, arrays, sums.shape), reference.finish(sums, out), 0


def random_batch_matmul(random):
    (n, h), (rows, columns), depth = small(random, 2), small(random, 7), int(random.integers(1, 20))
    left = random_codes(random, *(random.choice([1, size]) for size in (n, h)), rows, depth)
    right = random_codes(random, *(random.choice([1, size]) for size in (n, h)), columns, depth)
    offsets = [int(value) for value in random.integers(-127, 129, 2)]
    sums = (left.astype("i8") + offsets[0]) @ np.swapaxes(right.astype("i8") + offsets[1], 2, 3)
    out = fitting_output(random, sums, per_channel=False)
    scalars = (*left.shape, *right.shape, *sums.shape, *offsets, out.offset, out.low, out.high)
    scalars = (*scalars, int(out.multiplier[0]), int(out.shift[0]))
    return Call("arm_batch_matmul_s8", scalars, (left, right), sums.shape), reference.finish(sums, out), 0


def random_pool(random):
    size, kernel, channels = small(random, 9), small(random, 4), int(random.integers(1, 10))
    average = random.random() < 0.5
    many = random.random() < 0.1  # more taps than an int16 sum bears
    if many:
        size = kernel = (17, 16)
    stride = small(random, 3)
    padding = tuple(int(random.integers(0, k)) for k in kernel)
    out_size = tuple(max(1, (n + p - k) // s + 1) for n, p, k, s in zip(size, padding, kernel, stride, strict=True))
    image = random_codes(random, int(random.integers(1, 3)), *size, channels)
    if many:
        image[...] = random.choice([-128, 127])
    low, high = sorted(int(value) for value in random.integers(-128, 128, 2))
    pooled = reference.pool(image, kernel, Window(stride, padding), out_size, average=average)
    function = "arm_avgpool_s8" if average else "arm_max_pool_s8"
    tiles = (stride[1], stride[0], padding[1], padding[0])
    scalars = (*image.shape, 1, *kernel, 1, *pooled.shape, *tiles, low, high)
    return Call(function, scalars, (image,), pooled.shape), np.clip(pooled, low, high), 0


def random_add(random):
    size, offsets = int(random.integers(1, 200)), [int(value) for value in random.integers(-127, 129, 2)]
    left_shift = int(random.choice([20, 20, 0, 1, 1, 8, 15, 21]))
    scales = random.uniform(0.001, 1, 3)
    twice = 2 * max(scales[:2])
    real = np.array([scales[0] / twice, scales[1] / twice, twice / (scales[2] * 2.0**left_shift)])
    if random.random() < 0.3:  # not what a quantizer gives: neither input has the scale 1/2
        real[:2] = random.choice([0.75, 0.25, -0.25, 2.0**-31, random.uniform(0.5, 1)], 2)
    if random.random() < 0.3:  # so that single units of the scaled inputs show
        real[2] = random.uniform(0.2, 0.5) / 2.0 ** max(left_shift - 1, 0)
    fraction, exponent = np.frexp(real)
    multiplier = [int(value) for value in np.minimum(np.round(fraction * 2**31), 2**31 - 1)]
    shift = [int(value) for value in np.maximum(exponent, -31)]
    codes = [random_codes(random, size) for _ in range(2)]
    scaled = [
        reference.requantize((codes[k].astype("i8") + offsets[k]) << left_shift, multiplier[k], shift[k])
        for k in range(2)
    ]
    low, high = sorted(int(value) for value in random.integers(-128, 128, 2))
    out = Output(multiplier[2], shift[2], int(random.integers(-128, 128)), low, high)
    inputs = [value for k in range(2) for value in (offsets[k], multiplier[k], shift[k])]
    scalars = (*inputs, left_shift, out.offset, multiplier[2], shift[2], low, high, size)
    expected = reference.finish(scaled[0] + scaled[1], out)
    return Call("arm_elementwise_add_s8", scalars, tuple(codes), (size,)), expected, 0


def random_multiply(random):
    size, offsets = int(random.integers(1, 60)), [int(value) for value in random.integers(-127, 129, 2)]
    a, b = random_codes(random, size), random_codes(random, size)
    products = (a.astype("i8") + offsets[0]) * (b.astype("i8") + offsets[1])
    out = fitting_output(random, products, per_channel=False)
    scalars = (*offsets, out.offset, int(out.multiplier[0]), int(out.shift[0]), out.low, out.high, size)
    return Call("arm_elementwise_mul_s8", scalars, (a, b), (size,)), reference.finish(products, out), 0


def random_transpose(random):
    axes = int(random.integers(1, 5))
    shape, order = small(random, 7, axes), [int(axis) for axis in random.permutation(axes)]
    codes = random_codes(random, *shape)
    moved = np.transpose(codes, order)
    ones = (1,) * (4 - axes)
    return Call("arm_transpose_s8", (*shape, *ones, *moved.shape, *ones, axes, *order), (codes,), moved.shape), moved, 0


MAKERS = [
    random_convolution,
    random_depthwise,
    random_transpose_convolution,
    random_fully_connected,
    random_batch_matmul,
    random_pool,
    random_add,
    random_multiply,
    random_transpose,
]


@cache
def draw(make):
    """The layers of one maker, the same for every machine."""
    random = np.random.default_rng(1)
    return [make(random) for _ in range(LAYERS)]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_random_layers(driver, make):
    drawn = draw(make)
    results = driver.run([call for call, _, _ in drawn])
    for (call, expected, scratch), result in zip(drawn, results, strict=True):
        assert result.status == 0, call.scalars
        assert result.broken_blocks == 0, call.scalars
        assert result.scratch == scratch, call.scalars
        np.testing.assert_array_equal(result.output, expected, err_msg=str(call.scalars))


@pytest.mark.parametrize("make", [random_add, random_multiply], ids=lambda make: make.__name__)
def test_output_over_the_first_input(driver, make):
    drawn = draw(make)
    results = driver.run([replace(call, in_place=True) for call, _, _ in drawn])
    for (call, expected, _), result in zip(drawn, results, strict=True):
        np.testing.assert_array_equal(result.output, expected, err_msg=str(call.scalars))
