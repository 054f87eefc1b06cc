"""Arguments no kernel can work with are refused with ARG_ERROR instead of being computed wrongly."""

import numpy as np
import pytest

from .calls import Call

ARG_ERROR = -1
PARAMETERS = (0, 0, 1, 1, 0, 0, 1, 1, -128, 127)  # offsets, stride, padding, dilation, activation


def codes(*shape):
    return np.zeros(shape, "i1")


def convolution(channels, per_group, channels_out, **options):
    quantisation = [np.full(channels_out, 1 << 30, "i4"), np.full(channels_out, -8, "i4")]
    arrays = (codes(1, 2, 2, channels), codes(channels_out, 1, 1, per_group), np.zeros(0, "i4"), *quantisation)
    scalars = (1, 2, 2, channels, channels_out, 1, 1, per_group, 1, 2, 2, channels_out, *PARAMETERS)
    return Call("arm_convolve_wrapper_s8", scalars, arrays, (1, 2, 2, channels_out), **options)


def depthwise(channels, multiplier, channels_out, **options):
    quantisation = [np.full(channels_out, 1 << 30, "i4"), np.full(channels_out, -8, "i4")]
    arrays = (codes(1, 2, 2, channels), codes(1, 1, 1, channels_out), np.zeros(0, "i4"), *quantisation)
    parameters = (*PARAMETERS[:2], multiplier, *PARAMETERS[2:])
    scalars = (1, 2, 2, channels, 1, 1, 1, channels_out, 1, 2, 2, channels_out, *parameters)
    return Call("arm_depthwise_conv_wrapper_s8", scalars, arrays, (1, 2, 2, channels_out), **options)


def transpose(axes, *permutation):
    return Call("arm_transpose_s8", (2, 2, 2, 2, 2, 2, 2, 2, axes, *permutation), (codes(2, 2, 2, 2),), (2, 2, 2, 2))


def batch_matmul(depth_left, depth_right):
    scalars = (1, 1, 2, depth_left, 1, 1, 2, depth_right, 1, 1, 2, 2, 0, 0, 0, -128, 127, 1 << 30, -8)
    return Call("arm_batch_matmul_s8", scalars, (codes(2, depth_left), codes(2, depth_right)), (1, 1, 2, 2))


REFUSED = {
    "convolution without scratch": convolution(4, 4, 3, scratch=False),
    "groups that do not divide the input channels": convolution(5, 2, 4),
    "groups that do not divide the output channels": convolution(4, 2, 3),
    "depthwise convolution of one channel without scratch": depthwise(1, 8, 8, scratch=False),
    "channel multiplier and channels that do not agree": depthwise(2, 3, 4),
    "transposition of five axes": transpose(5, 0, 1, 2, 3, 4),
    "transposition with an axis that is not there": transpose(3, 0, 1, 3),
    "matrices of different depth": batch_matmul(3, 4),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_refused(driver, call):
    (result,) = driver.run([call])
    assert result.status == ARG_ERROR
    assert result.broken_blocks == 0
