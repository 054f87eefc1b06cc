"""The operators that a program may call, with their arguments in serialised order.

Source: the Cortex-M operator declarations of executorch 1.5.1 (`cortex_m::*`, in both layouts), and the few portable
operators that only move or rename bytes. Every one is an out variant: the result is passed as the last argument, and
once more as the returned value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType


class Kind(Enum):
    """What an argument must be."""

    TENSOR = auto()
    OPTIONAL_TENSOR = auto()
    SCRATCH = auto()
    """A tensor that the kernel may overwrite. Its contents and its size do not matter here."""
    INTEGER = auto()
    OPTIONAL_INTEGER = auto()
    REAL = auto()
    FLAG = auto()
    INTEGERS = auto()
    TENSORS = auto()
    ANY = auto()
    """Not looked at."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Arguments before the result, and how often the result is listed after them."""

    arguments: tuple[tuple[str, Kind], ...]
    results: int = 2


def _signature(**arguments: Kind) -> Signature:
    return Signature(tuple(arguments.items()))


_T, _O, _S, _I, _R, _F, _L, _ANY = (
    Kind.TENSOR,
    Kind.OPTIONAL_TENSOR,
    Kind.SCRATCH,
    Kind.INTEGER,
    Kind.REAL,
    Kind.FLAG,
    Kind.INTEGERS,
    Kind.ANY,
)

_QUANTIZE = _signature(input=_T, scale=_R, zero_point=_I, quant_min=_I, quant_max=_I, dtype=_I)
_CONV2D = _signature(
    input=_T,
    weight=_T,
    bias=_O,
    stride=_L,
    padding=_L,
    dilation=_L,
    input_offset=_I,
    output_offset=_I,
    multiplier=_T,
    shift=_T,
    activation_min=_I,
    activation_max=_I,
    scratch=_S,
)
_DEPTHWISE_CONV2D = _signature(
    input=_T,
    weight=_T,
    bias=_O,
    stride=_L,
    padding=_L,
    dilation=_L,
    depth_multiplier=_I,
    input_offset=_I,
    output_offset=_I,
    multiplier=_T,
    shift=_T,
    activation_min=_I,
    activation_max=_I,
    scratch=_S,
)
_TRANSPOSE_CONV2D = _signature(
    input=_T,
    weight=_T,
    bias=_O,
    stride=_L,
    padding=_L,
    output_padding=_L,
    dilation=_L,
    input_offset=_I,
    output_offset=_I,
    multiplier=_T,
    shift=_T,
    activation_min=_I,
    activation_max=_I,
    scratch=_S,
    output_scratch=_S,
)
_AVG_POOL2D = _signature(
    input=_T,
    kernel=_L,
    stride=_L,
    padding=_L,
    ceil_mode=_F,
    zero_point=_I,
    multiplier=_I,
    shift=_I,
    scratch=_S,
)
_MAX_POOL2D = _signature(
    input=_T,
    kernel=_L,
    stride=_L,
    padding=_L,
    dilation=_L,
    ceil_mode=_F,
    input_zero_point=_I,
    output_zero_point=_I,
    activation_min=_I,
    activation_max=_I,
)
_LINEAR = _signature(
    input=_T,
    weight=_T,
    bias=_O,
    kernel_sum=_O,
    input_offset=_I,
    filter_offset=_I,
    output_offset=_I,
    multipliers=_L,
    shifts=_L,
    activation_max=_I,
    activation_min=_I,
)
_BATCH_MATMUL = _signature(
    lhs=_T,
    lhs_offset=_I,
    rhs=_T,
    rhs_offset=_I,
    output_offset=_I,
    multiplier=_I,
    shift=_I,
    scratch=_S,
)
_ADD = _signature(
    input=_T,
    input_zero_point=_I,
    input_multiplier=_I,
    input_shift=_I,
    other=_T,
    other_zero_point=_I,
    other_multiplier=_I,
    other_shift=_I,
    output_zero_point=_I,
    output_multiplier=_I,
    output_shift=_I,
    activation_min=_I,
    activation_max=_I,
)
_MUL = _signature(
    input=_T,
    input_zero_point=_I,
    other=_T,
    other_zero_point=_I,
    output_zero_point=_I,
    multiplier=_I,
    shift=_I,
)
_DIV = _signature(
    input=_T,
    input_zero_point=_I,
    other=_T,
    other_zero_point=_I,
    output_zero_point=_I,
    output_scale=_R,
)
_EXTREMUM = _signature(input=_T, other=_T)
_CAT = _signature(parts=Kind.TENSORS, dim=_I)
_SLICE = _signature(input=_T, dim=_I, start=Kind.OPTIONAL_INTEGER, end=Kind.OPTIONAL_INTEGER, step=_I)
_EXPAND = _signature(input=_T, shape=_ANY, implicit=_ANY)
_CLAMP = _signature(input=_T, low=Kind.OPTIONAL_INTEGER, high=Kind.OPTIONAL_INTEGER)
_ACTIVATION = _signature(input=_T, lut=_T)
_SOFTMAX = _signature(
    input=_T,
    dim=_I,
    input_zero_point=_I,
    output_zero_point=_I,
    multiplier=_I,
    shift=_I,
    diff_min=_I,
)
_TRANSPOSE = _signature(input=_T, permutation=_L)
_PAD = _signature(input=_T, before=_L, after=_L, value=_I)
_COPY = _signature(input=_T, non_blocking=_ANY, dim_order=_ANY)
_CLONE = _signature(input=_T, memory_format=_ANY)
_VIEW = _signature(input=_T, shape=_ANY)

SIGNATURES: Mapping[str, Signature] = MappingProxyType(
    {
        "cortex_m::quantize_per_tensor": _QUANTIZE,
        "cortex_m::dequantize_per_tensor": _QUANTIZE,
        "cortex_m::quantized_conv2d": _CONV2D,
        "cortex_m::quantized_conv2d_nhwc": _CONV2D,
        "cortex_m::quantized_depthwise_conv2d": _DEPTHWISE_CONV2D,
        "cortex_m::quantized_depthwise_conv2d_nhwc": _DEPTHWISE_CONV2D,
        "cortex_m::quantized_transpose_conv2d": _TRANSPOSE_CONV2D,
        "cortex_m::quantized_transpose_conv2d_nhwc": _TRANSPOSE_CONV2D,
        "cortex_m::quantized_avg_pool2d": _AVG_POOL2D,
        "cortex_m::quantized_avg_pool2d_nhwc": _AVG_POOL2D,
        "cortex_m::quantized_max_pool2d": _MAX_POOL2D,
        "cortex_m::quantized_max_pool2d_nhwc": _MAX_POOL2D,
        "cortex_m::quantized_linear": _LINEAR,
        "cortex_m::quantized_batch_matmul": _BATCH_MATMUL,
        "cortex_m::quantized_add": _ADD,
        "cortex_m::quantized_mul": _MUL,
        "cortex_m::quantized_div": _DIV,
        "cortex_m::minimum": _EXTREMUM,
        "cortex_m::maximum": _EXTREMUM,
        "cortex_m::quantized_activation": _ACTIVATION,
        "cortex_m::softmax": _SOFTMAX,
        "cortex_m::transpose": _TRANSPOSE,
        "cortex_m::pad": _PAD,
        "dim_order_ops::_clone_dim_order": _COPY,
        "dim_order_ops::_to_dim_order_copy": _COPY,
        "aten::clone": _CLONE,
        "aten::view_copy": _VIEW,
        "aten::_unsafe_view": _VIEW,
        "aten::unsqueeze_copy": _VIEW,
        "aten::squeeze_copy": _VIEW,
        "aten::minimum": _EXTREMUM,
        "aten::maximum": _EXTREMUM,
        "aten::clamp": _CLAMP,
        "aten::cat": _CAT,
        "aten::slice_copy": _SLICE,
        "aten::expand_copy": _EXPAND,
        # The exporter's own name for a view of memory that it did not plan; it has no returned value.
        "executorch_prim::et_view": Signature((("input", _T), ("shape", _ANY)), results=1),
    }
)

PORTABLE_INT8 = frozenset(
    {"aten::minimum", "aten::maximum", "aten::clamp", "aten::cat", "aten::slice_copy", "aten::expand_copy"}
)
"""Portable operators that a lowering leaves on int8 tensors: those with the meaning of Cortex-M ones, and those that
move elements. On float tensors they are layers that have not been quantised."""
