"""Instructions on a Cortex-M33, counted exactly: each layer against what the stock stack took for the same shape."""

import numpy as np
import pytest

from .calls import Call, float_bits

ELEMENTS = 4096


def same_size(n, stride):
    return -(-n // stride)


def convolution(height, width, channels, kernel, channels_out, stride=1, *, depthwise=False):
    random = np.random.default_rng(3)
    out = (same_size(height, stride), same_size(width, stride))
    padding = [max((o - 1) * stride + k - n, 0) // 2 for o, k, n in zip(out, kernel, (height, width), strict=True)]
    filters = (1, *kernel, channels_out) if depthwise else (channels_out, *kernel, channels)
    multiplier = (channels_out // channels,) if depthwise else ()
    scalars = (1, height, width, channels, *filters, 1, *out, channels_out, 3, -5, *multiplier)
    scalars = (*scalars, stride, stride, padding[1], padding[0], 1, 1, -128, 127)
    arrays = (
        random.integers(-128, 128, (1, height, width, channels), dtype="i1"),
        random.integers(-127, 128, filters, dtype="i1"),
        random.integers(-500, 500, channels_out, dtype="i4"),
        np.full(channels_out, 1234567890, "i4"),
        np.full(channels_out, -9, "i4"),
    )
    function = "arm_depthwise_conv_wrapper_s8" if depthwise else "arm_convolve_wrapper_s8"
    return Call(function, scalars, arrays, (1, *out, channels_out))


def linear(depth, rows):
    random = np.random.default_rng(4)
    arrays = (
        random.integers(-128, 128, depth, dtype="i1"),
        random.integers(-127, 128, (rows, depth), dtype="i1"),
        random.integers(-500, 500, rows, dtype="i4"),
        np.array([1234567890], "i4"),
        np.array([-9], "i4"),
    )
    return Call("arm_fully_connected_s8", (1, depth, rows, 3, 0, -5, -128, 127), arrays, (1, rows))


def add():
    codes = np.resize(np.arange(-128, 128, dtype="i1"), ELEMENTS)
    scalars = (5, 1 << 30, 0, -7, 1350663438, -2, 20, 3, 1091877774, -18, -128, 127, ELEMENTS)
    return Call("arm_elementwise_add_s8", scalars, (codes, codes[::-1]), (ELEMENTS,))


def quantize():
    values = np.linspace(-4, 4, ELEMENTS, dtype="f4")
    return Call("deploy_quantize_f32_s8", (ELEMENTS, float_bits(30.0), 4, -128, 127), (values,), (ELEMENTS,))


def dequantize():
    codes = np.resize(np.arange(-128, 128, dtype="i1"), ELEMENTS)
    return Call("deploy_dequantize_s8_f32", (ELEMENTS, float_bits(0.03), 4), (codes,), (ELEMENTS,), "f4")


# Layers of the MLPerf Tiny models: the call, the stock stack's instructions, and how many times fewer ours must be.
LAYERS = {
    "1x1 64 to 64, 25x5": (convolution(25, 5, 64, (1, 1), 64), 1_065_562, 1.5),
    "1x1 8 to 16, 48x48": (convolution(48, 48, 8, (1, 1), 16), 1_946_314, 1.8),
    "1x1 32 to 32, 24x24": (convolution(24, 24, 32, (1, 1), 32), 1_580_954, 1.6),
    "1x1 128 to 128, 6x6": (convolution(6, 6, 128, (1, 1), 128), 1_077_626, 1.5),
    "3x3 16 to 16, 32x32": (convolution(32, 32, 16, (3, 3), 16), 5_510_734, 1.7),
    "3x3 32 to 32, 16x16": (convolution(16, 16, 32, (3, 3), 32), 4_552_850, 1.6),
    "3x3 64 to 64, 8x8": (convolution(8, 8, 64, (3, 3), 64), 4_157_314, 1.55),
    "3x3 3 to 16, 32x32": (convolution(32, 32, 3, (3, 3), 16), 2_110_005, 1.9),
    "3x3 stride 2, 3 to 8, 96x96": (convolution(96, 96, 3, (3, 3), 8, 2), 3_043_501, 1.9),
    "10x4 stride 2, 1 to 64": (convolution(49, 10, 1, (10, 4), 64, 2, depthwise=True), 1_687_752, 2.9),
    "depthwise 64, 25x5": (convolution(25, 5, 64, (3, 3), 64, depthwise=True), 561_594, 2.0),
    "depthwise 16 stride 2, 48x48": (convolution(48, 48, 16, (3, 3), 16, 2, depthwise=True), 701_434, 2.0),
    "linear 640 to 128": (linear(640, 128), 160_433, 1.2),
    "add": (add(), 83.4 * ELEMENTS, 3.0),
    "quantize": (quantize(), 15 * ELEMENTS, 1.8),
    "dequantize": (dequantize(), 8.5 * ELEMENTS, 1.0),
}


@pytest.mark.parametrize(("call", "stock", "factor"), LAYERS.values(), ids=LAYERS)
def test_instructions(m33, call, stock, factor):
    (result,) = m33.run([call], count=True)
    assert result.status == 0
    assert 0 < m33.instructions(result) <= stock / factor
