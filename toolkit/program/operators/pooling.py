"""Average and maximum pooling, in both layouts."""

from __future__ import annotations

from toolkit.program.call import COUNT, INT8, PADDING, Call
from toolkit.program.operators.image import image_shape
from toolkit.program.types import AvgPool2d, DType, MaxPool2d, Operator, Pair, Shape4


def avg_pool2d(call: Call) -> Operator:
    source, result = call.tensor("input", DType.INT8), call.result(DType.INT8)
    input_shape, output_shape = image_shape(call, "input", source), image_shape(call, "output", result)
    kernel, stride, padding = _window(call)
    call.integer("zero_point", INT8)
    _require_output(call, input_shape, output_shape, kernel, stride, padding, ceil_mode=call.flag("ceil_mode"))
    return AvgPool2d(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        input_shape=input_shape,
        output_shape=output_shape,
        kernel=kernel,
        stride=stride,
        padding=padding,
    )


def max_pool2d(call: Call) -> Operator:
    source, result = call.tensor("input", DType.INT8), call.result(DType.INT8)
    input_shape, output_shape = image_shape(call, "input", source), image_shape(call, "output", result)
    kernel, stride, padding = _window(call)
    if call.pair("dilation", COUNT) != (1, 1):
        call.fail("a dilated maximum pooling is not supported")
    if call.integer("input_zero_point", INT8) != call.integer("output_zero_point", INT8):
        call.fail("input and output have different zero points; a maximum does not rescale")
    _require_output(call, input_shape, output_shape, kernel, stride, padding, ceil_mode=call.flag("ceil_mode"))
    activation_min, activation_max = call.activation()
    return MaxPool2d(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        input_shape=input_shape,
        output_shape=output_shape,
        kernel=kernel,
        stride=stride,
        padding=padding,
        activation_min=activation_min,
        activation_max=activation_max,
    )


def _window(call: Call) -> tuple[Pair, Pair, Pair]:
    """Kernel, stride and padding. A padding below the kernel size leaves a sample in the first window."""
    kernel, stride, padding = call.pair("kernel", COUNT), call.pair("stride", COUNT), call.pair("padding", PADDING)
    if padding[0] >= kernel[0] or padding[1] >= kernel[1]:
        call.fail(f"the padding {list(padding)} is not below the kernel size {list(kernel)}")
    return kernel, stride, padding


def _require_output(
    call: Call,
    input_shape: Shape4,
    output_shape: Shape4,
    kernel: Pair,
    stride: Pair,
    padding: Pair,
    *,
    ceil_mode: bool,
) -> None:
    """Output sizes as PyTorch defines them; in ceil mode the last window must still begin on a sample."""
    sizes = []
    for size, k, s, p in zip(input_shape[1:3], kernel, stride, padding, strict=True):
        room = size + 2 * p - k
        output = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (output - 1) * s >= size + p:
            output -= 1
        sizes.append(output)
    expected = (input_shape[0], *sizes, input_shape[3])
    if output_shape != expected:
        call.fail(f"the output is {list(output_shape)}; input, kernel and stride give {list(expected)} (NHWC)")
    for size, output, s, p in zip(input_shape[1:3], sizes, stride, padding, strict=True):
        if (output - 1) * s - p >= size:
            call.fail("the last window holds padding only")
