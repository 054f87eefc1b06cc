"""From checked arguments to typed operators: one function per operator, which validates everything it passes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from toolkit.program.call import Call
from toolkit.program.operators import convolution, elementwise, matrix, movement, pooling
from toolkit.program.types import Operator

BUILDERS: Mapping[str, Callable[[Call], Operator]] = MappingProxyType(
    {
        "cortex_m::quantize_per_tensor": elementwise.quantize,
        "cortex_m::dequantize_per_tensor": elementwise.dequantize,
        "cortex_m::quantized_conv2d": convolution.conv2d,
        "cortex_m::quantized_conv2d_nhwc": convolution.conv2d,
        "cortex_m::quantized_depthwise_conv2d": convolution.depthwise_conv2d,
        "cortex_m::quantized_depthwise_conv2d_nhwc": convolution.depthwise_conv2d,
        "cortex_m::quantized_transpose_conv2d": convolution.transpose_conv2d,
        "cortex_m::quantized_transpose_conv2d_nhwc": convolution.transpose_conv2d,
        "cortex_m::quantized_avg_pool2d": pooling.avg_pool2d,
        "cortex_m::quantized_avg_pool2d_nhwc": pooling.avg_pool2d,
        "cortex_m::quantized_max_pool2d": pooling.max_pool2d,
        "cortex_m::quantized_max_pool2d_nhwc": pooling.max_pool2d,
        "cortex_m::quantized_linear": matrix.linear,
        "cortex_m::quantized_batch_matmul": matrix.batch_matmul,
        "cortex_m::quantized_add": elementwise.add,
        "cortex_m::quantized_mul": elementwise.mul,
        "cortex_m::quantized_div": elementwise.div,
        "cortex_m::minimum": elementwise.minimum,
        "cortex_m::maximum": elementwise.maximum,
        "cortex_m::quantized_activation": elementwise.activation,
        "cortex_m::softmax": elementwise.softmax,
        "cortex_m::transpose": movement.transpose,
        "cortex_m::pad": movement.pad,
        "dim_order_ops::_clone_dim_order": movement.copy,
        "dim_order_ops::_to_dim_order_copy": movement.copy,
        "aten::clone": movement.copy,
        "aten::view_copy": movement.view,
        "aten::_unsafe_view": movement.view,
        "aten::unsqueeze_copy": movement.view,
        "aten::squeeze_copy": movement.view,
        "aten::minimum": elementwise.minimum,
        "aten::maximum": elementwise.maximum,
        "aten::clamp": elementwise.clamp,
        "aten::cat": movement.concatenate,
        "aten::slice_copy": movement.cut,
        "aten::expand_copy": movement.expand,
        "executorch_prim::et_view": movement.view,
    }
)
"""Builders by serialised name; the same names as `signatures.SIGNATURES`."""
