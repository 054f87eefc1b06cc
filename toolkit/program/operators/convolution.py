"""Convolutions, in both layouts."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.program.call import COUNT, INT8, OFFSET, PADDING, Call
from toolkit.program.operators.image import image_shape
from toolkit.program.types import (
    Conv2d,
    DepthwiseConv2d,
    DType,
    Operator,
    Pair,
    Shape4,
    Tensor,
    TransposeConv2d,
)


@dataclass(frozen=True, slots=True)
class _Window:
    """How a kernel moves over an image, along height and width."""

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair

    def output_size(self, size: int, axis: int) -> int:
        """Output size along an axis of a convolution over `size` samples."""
        reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1
        return (size + 2 * self.padding[axis] - reach) // self.stride[axis] + 1

    def transposed_size(self, size: int, axis: int, extra: int) -> int:
        """Output size along an axis of a transposed convolution over `size` samples."""
        reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1
        return (size - 1) * self.stride[axis] - 2 * self.padding[axis] + reach + extra


def conv2d(call: Call) -> Operator:
    source, result, weight = call.tensor("input", DType.INT8), call.result(DType.INT8), _weight(call)
    input_shape, output_shape = image_shape(call, "input", source), image_shape(call, "output", result)
    channels, kernel_h, kernel_w, group_channels = weight.shape
    window = _window(call, (kernel_h, kernel_w))
    if input_shape[3] % group_channels:
        call.fail(f"{input_shape[3]} input channels do not divide into groups of {group_channels}")
    groups = input_shape[3] // group_channels
    if channels % groups:
        call.fail(f"{channels} output channels do not divide into {groups} groups")
    expected = (
        input_shape[0],
        window.output_size(input_shape[1], 0),
        window.output_size(input_shape[2], 1),
        channels,
    )
    _require_output(call, output_shape, expected)
    bias = call.optional_constant("bias", DType.INT32, (channels,))
    multiplier, shift = call.requantisation(channels)
    activation_min, activation_max = call.activation()
    return Conv2d(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        weight=weight.id,
        bias=bias.id if bias else None,
        multiplier=multiplier.id,
        shift=shift.id,
        input_shape=input_shape,
        output_shape=output_shape,
        kernel=window.kernel,
        groups=groups,
        stride=window.stride,
        padding=window.padding,
        dilation=window.dilation,
        input_offset=call.integer("input_offset", OFFSET),
        output_offset=call.integer("output_offset", INT8),
        activation_min=activation_min,
        activation_max=activation_max,
    )


def depthwise_conv2d(call: Call) -> Operator:
    source, result, weight = call.tensor("input", DType.INT8), call.result(DType.INT8), _weight(call)
    input_shape, output_shape = image_shape(call, "input", source), image_shape(call, "output", result)
    first, kernel_h, kernel_w, channels = weight.shape
    window = _window(call, (kernel_h, kernel_w))
    depth_multiplier = call.integer("depth_multiplier", COUNT)
    if first != 1 or channels != input_shape[3] * depth_multiplier:
        call.fail(
            f"the weight {list(weight.shape)} does not fit {input_shape[3]} input channels "
            f"with a depth multiplier of {depth_multiplier}"
        )
    expected = (
        input_shape[0],
        window.output_size(input_shape[1], 0),
        window.output_size(input_shape[2], 1),
        channels,
    )
    _require_output(call, output_shape, expected)
    bias = call.optional_constant("bias", DType.INT32, (channels,))
    multiplier, shift = call.requantisation(channels)
    activation_min, activation_max = call.activation()
    return DepthwiseConv2d(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        weight=weight.id,
        bias=bias.id if bias else None,
        multiplier=multiplier.id,
        shift=shift.id,
        input_shape=input_shape,
        output_shape=output_shape,
        kernel=window.kernel,
        depth_multiplier=depth_multiplier,
        stride=window.stride,
        padding=window.padding,
        dilation=window.dilation,
        input_offset=call.integer("input_offset", OFFSET),
        output_offset=call.integer("output_offset", INT8),
        activation_min=activation_min,
        activation_max=activation_max,
    )


def transpose_conv2d(call: Call) -> Operator:
    source, result, weight = call.tensor("input", DType.INT8), call.result(DType.INT8), _weight(call)
    input_shape, output_shape = image_shape(call, "input", source), image_shape(call, "output", result)
    channels, kernel_h, kernel_w, input_channels = weight.shape
    window = _window(call, (kernel_h, kernel_w))
    output_padding = call.pair("output_padding", PADDING)
    if input_channels != input_shape[3]:
        call.fail(f"the weight {list(weight.shape)} does not fit {input_shape[3]} input channels")
    expected = (
        input_shape[0],
        window.transposed_size(input_shape[1], 0, output_padding[0]),
        window.transposed_size(input_shape[2], 1, output_padding[1]),
        channels,
    )
    _require_output(call, output_shape, expected)
    bias = call.optional_constant("bias", DType.INT32, (channels,))
    multiplier, shift = call.requantisation(channels)
    activation_min, activation_max = call.activation()
    return TransposeConv2d(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        weight=weight.id,
        bias=bias.id if bias else None,
        multiplier=multiplier.id,
        shift=shift.id,
        input_shape=input_shape,
        output_shape=output_shape,
        kernel=window.kernel,
        stride=window.stride,
        padding=window.padding,
        output_padding=output_padding,
        dilation=window.dilation,
        input_offset=call.integer("input_offset", OFFSET),
        output_offset=call.integer("output_offset", INT8),
        activation_min=activation_min,
        activation_max=activation_max,
    )


def _weight(call: Call) -> Tensor:
    weight = call.constant("weight", DType.INT8)
    if len(weight.shape) != 4:
        call.fail(f"weight (tensor {weight.id}) has the shape {list(weight.shape)}; it must have four dimensions")
    return weight


def _window(call: Call, kernel: Pair) -> _Window:
    return _Window(
        kernel=kernel,
        stride=call.pair("stride", COUNT),
        padding=call.pair("padding", PADDING),
        dilation=call.pair("dilation", COUNT),
    )


def _require_output(call: Call, found: Shape4, expected: Shape4) -> None:
    if found != expected:
        call.fail(f"the output is {list(found)}; input, weight and stride give {list(expected)} (NHWC)")
