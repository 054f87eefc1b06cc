"""Arm's CMSIS-NN as planning sees it: the working memory its functions need on each kind of core, and the inputs for
which a result of theirs is not right.

Formulae and conditions are those of sections 4 and 5 of `tests/golden/kernels/README.md`, measured on a revision that
lies between the releases 7.0.0 and 8.0.0. Where another one asks for more memory, the rendered runner notices before it
calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.board import Board, Isa
from toolkit.planning.simplify import Graph
from toolkit.planning.types import Kernel
from toolkit.program.types import (
    Add,
    AvgPool2d,
    BatchMatmul,
    Conv2d,
    Copy,
    DepthwiseConv2d,
    DType,
    Linear,
    Maximum,
    Minimum,
    Operator,
    Shape,
    Softmax,
    Tensor,
    Transpose,
    TransposeConv2d,
)

ADD_LEFT_SHIFT = 20
"""By how much both operands of a sum are shifted before they are scaled: ExecuTorch's scales assume it."""

_WIDE = 16  # bytes of a vector register
_BLOCK_OF_CHANNELS = 124  # of a depthwise convolution in vector code
_LONG_ROW = 512  # values of one softmax row from which on its sum of exponentials can reach 2^28
_MANY_CHANNELS = 16  # above it, and with strides of at most 2, transposed convolution becomes an ordinary one


def compiled_isa(board: Board) -> Isa:
    """The instructions the library is compiled for: on the development machine its plain C code."""
    return Isa.SCALAR if board.toolchain == "host" else board.isa


def scratch_of(op: Operator, isa: Isa) -> tuple[int, int]:
    """Bytes of the buffer that one call needs, and of a second one (0 for all but transposed convolution).

    Where there is a second one, the first is a multiple of 16.
    """
    if isinstance(op, Conv2d):
        return _convolution(op, isa), 0
    if isinstance(op, DepthwiseConv2d):
        return _depthwise(op, isa), 0
    if isinstance(op, TransposeConv2d):
        return _transposed(op, isa)
    if isinstance(op, BatchMatmul):
        return (4 * op.columns if isa is Isa.MVE else 0), 0
    if isinstance(op, AvgPool2d):
        return (4 * op.input_shape[3] if isa is Isa.DSP else 0), 0
    return 0, 0


def _columns(op: Conv2d | DepthwiseConv2d | TransposeConv2d, isa: Isa) -> int:
    """Patches as columns: two of int16, or four of int8 in whole vector registers."""
    return 4 * _rounded_up(prod(op.kernel) * op.input_shape[3], _WIDE if isa is Isa.MVE else 4)


def _convolution(op: Conv2d, isa: Isa) -> int:
    if _is_1x1(op):
        return 0
    if isa is Isa.MVE and _is_1xn(op):
        return _one_row(op)
    return _columns(op, isa)


def _is_1x1(op: Conv2d) -> bool:
    return op.kernel == (1, 1) and op.padding == (0, 0) and op.dilation == (1, 1) and op.groups == 1


def _is_1xn(op: Conv2d | DepthwiseConv2d) -> bool:
    """Whether vector code takes its own way for one row."""
    ungrouped = not isinstance(op, Conv2d) or op.groups == 1
    one_row = op.input_shape[1] == 1 and op.kernel[0] == 1 and op.dilation[1] == 1
    return ungrouped and one_row and op.stride[1] * op.input_shape[3] % 4 == 0


def _one_row(op: Conv2d) -> int:
    """The longer of the padded pieces at both ends of the row; all columns where the pieces do not make up the row."""
    width, channels = op.input_shape[2:]
    kernel, stride, padding, outputs = op.kernel[1], op.stride[1], op.padding[1], op.output_shape[2]
    missing = (outputs - 1) * stride + kernel - width
    uneven = (missing % 2) * (1 if missing > 0 else -1)
    left = max(1, -(-padding // stride)) if padding else 0
    right = max(1, -(-(padding + uneven) // stride)) if padding + uneven else 0
    if left + right + max(outputs - left - right, 0) != outputs:
        return _columns(op, Isa.MVE)
    at_left = kernel + padding
    at_right = kernel - 1 + (right if uneven else padding)
    return max(at_left, at_right) * channels


def _depthwise(op: DepthwiseConv2d, isa: Isa) -> int:
    channels = op.input_shape[3]
    taps = prod(op.kernel)
    if isa is Isa.MVE and channels == 1 and op.output_shape[3] > 1:
        return _columns(op, isa) + taps * op.output_shape[3]  # computed as a convolution with a turned filter
    if op.depth_multiplier != 1 or op.input_shape[0] != 1 or op.dilation != (1, 1):
        return 0
    if isa is Isa.MVE:
        return 4 * _BLOCK_OF_CHANNELS * taps
    has_3x3_code = op.kernel == (3, 3) and max(op.padding) <= 1
    return 2 * channels * taps if isa is Isa.DSP and not has_3x3_code else 0


def _transposed(op: TransposeConv2d, isa: Isa) -> tuple[int, int]:
    if _is_reversed(op):
        return _columns(op, isa), prod(op.kernel) * op.input_shape[3] * op.output_shape[3]
    (kernel_h, kernel_w), (stride_h, stride_w) = op.kernel, op.stride
    row = (op.input_shape[2] - 1) * stride_w + max(kernel_w, stride_h)
    return 4 * op.output_shape[3] * row * max(kernel_h, stride_h), 0


def _is_reversed(op: TransposeConv2d) -> bool:
    return op.input_shape[3] > _MANY_CHANNELS and max(op.stride) <= 2


def quirk_of(op: Operator, isa: Isa) -> str:
    """Why the library must not compute an operator, in a few words; empty where its result is right."""
    find = _QUIRKS.get(type(op))
    return find(op, isa) if find else ""


def _convolution_quirk(op: Conv2d, isa: Isa) -> str:
    if op.groups > 1 and op.bias is None:
        return "CMSIS-NN reads past a missing bias in grouped convolutions"
    if isa is Isa.MVE and not _is_1x1(op) and _is_1xn(op) and op.stride[1] > 1:
        return "CMSIS-NN's vector code is wrong for 1xN convolutions with a stride"
    return ""


def _depthwise_quirk(op: DepthwiseConv2d, isa: Isa) -> str:
    if isa is not Isa.MVE:
        return ""
    if op.bias is None and op.output_shape[3] > _BLOCK_OF_CHANNELS:
        return f"CMSIS-NN's vector code makes up a bias past channel {_BLOCK_OF_CHANNELS} where there is none"
    if op.input_shape[3] == 1 and _is_1xn(op) and op.stride[1] > 1:
        return "CMSIS-NN's vector code is wrong for 1xN convolutions with a stride"
    return ""


def _transposed_quirk(op: TransposeConv2d, isa: Isa) -> str:
    (kernel_h, kernel_w), (stride_h, stride_w), (padding_h, padding_w) = op.kernel, op.stride, op.padding
    if _is_reversed(op):
        fits = padding_h <= kernel_h - 1 and padding_w <= kernel_w - 1
        return "" if fits else "CMSIS-NN does not crop a transposed convolution by more than its kernel"
    rows = op.output_shape[1] + padding_h - op.input_shape[1] * stride_h
    if padding_h % stride_h or not 0 <= rows <= max(kernel_h - stride_h, 0):
        return "CMSIS-NN gives wrong rows for this padding of a transposed convolution"
    if padding_w + op.output_shape[2] > (op.input_shape[2] - 1) * stride_w + max(kernel_w, stride_w):
        return "CMSIS-NN writes past the end for this width of a transposed convolution"
    if stride_w > max(kernel_w, stride_h):
        return "CMSIS-NN asks for too little memory for this stride of a transposed convolution"
    return ""


def _linear_quirk(op: Linear, isa: Isa) -> str:
    if isa is Isa.MVE and len(op.multipliers) > 1 and op.filter_offset:
        return "CMSIS-NN's vector code scales four rows alike where weights have a zero point"
    return ""


def add_quirk(left_shift: int, isa: Isa) -> str:
    """Why the library must not compute a sum whose operands are shifted by `left_shift`."""
    return "CMSIS-NN's DSP code loses signs in sums" if isa is Isa.DSP and left_shift < 16 else ""


def _softmax_quirk(op: Softmax, isa: Isa) -> str:
    return "CMSIS-NN's softmax of long rows depends on the compiler" if op.row_size >= _LONG_ROW else ""


def _transpose_quirk(op: Transpose | Copy, isa: Isa) -> str:
    axes = len(op.permutation)
    if op.permutation != tuple(range(axes)):
        return ""
    if axes == 2 or (axes == 4 and isa is Isa.MVE):
        return "CMSIS-NN swaps axes that should stay"
    return ""


def _extremum_quirk(op: Minimum | Maximum, isa: Isa) -> str:
    first, second = _four_axes(op.input_shape), _four_axes(op.other_shape)
    for small, large in ((first, second), (second, first)):
        if small[1] > 1 and small[2:] == (1, 1) and prod(large[2:]) > 1:
            return "CMSIS-NN reads past an operand with one value per row"
    return ""


def _four_axes(shape: Shape) -> Shape:
    return (1,) * (4 - len(shape)) + tuple(shape)


_QUIRKS: dict[type[Operator], Callable[[Any, Isa], str]] = {
    Add: lambda op, isa: add_quirk(ADD_LEFT_SHIFT, isa),
    Conv2d: _convolution_quirk,
    Copy: _transpose_quirk,
    DepthwiseConv2d: _depthwise_quirk,
    Linear: _linear_quirk,
    Maximum: _extremum_quirk,
    Minimum: _extremum_quirk,
    Softmax: _softmax_quirk,
    Transpose: _transpose_quirk,
    TransposeConv2d: _transposed_quirk,
}


def with_kernel_sums(graph: Graph, kernels: list[Kernel]) -> tuple[Graph, list[Kernel]]:
    """Give every linear layer that Arm's vector code computes the sums it takes instead of a bias.

    Args:
        graph: what is planned.
        kernels: one per operator.

    Returns:
        The graph with the sums as constants and without the biases they contain, and the kernels that read them.
    """
    tensors = dict(graph.tensors)
    operators, changed = list(graph.operators), list(kernels)
    for position, (op, kernel) in enumerate(zip(graph.operators, kernels, strict=True)):
        if not isinstance(op, Linear) or kernel.reason:
            continue
        id = max(tensors) + 1
        sums = kernel_sums(op, graph.tensors)
        tensors[id] = Tensor(id, (op.outputs,), DType.INT32, (0,), sums.tobytes())
        operators[position] = replace(op, bias=None)
        changed[position] = replace(kernel, kernel_sum=id)
    return replace(graph, operators=tuple(operators), tensors=tensors), changed


def kernel_sums(op: Linear, tensors: Mapping[int, Tensor]) -> npt.NDArray[np.int32]:
    """Per output: bias + input_offset * sum of (weight + filter_offset); int32 (outputs,)."""
    weights = np.frombuffer(tensors[op.weight].constant or b"", np.int8).reshape(op.outputs, op.depth)
    sums = weights.sum(axis=1, dtype=np.int32) + np.int32(op.depth * op.filter_offset)
    biases = np.frombuffer(tensors[op.bias].constant or b"", np.int32) if op.bias is not None else np.int32(0)
    result: npt.NDArray[np.int32] = np.int32(op.input_offset) * sums + biases
    return result


def _rounded_up(value: int, to: int) -> int:
    return -(-value // to) * to
