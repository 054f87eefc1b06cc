"""Which kernel computes an operator, and how much scratch one call needs on this board.

A program carries scratch sizes and kernel sums of the core it was lowered for; neither is used. Both follow from
shapes and weights, and what a kernel needs is derived here for the library the plan uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toolkit.board import Board, Isa
from toolkit.errors import PlanError
from toolkit.planning import cmsis_nn
from toolkit.planning.simplify import Graph
from toolkit.planning.types import Kernel, KernelLibrary
from toolkit.program.types import (
    Activation,
    Add,
    AvgPool2d,
    BatchMatmul,
    Concatenate,
    Conv2d,
    Copy,
    DepthwiseConv2d,
    Dequantize,
    Div,
    Expand,
    Linear,
    Maximum,
    MaxPool2d,
    Minimum,
    Mul,
    Operator,
    Pad,
    Quantize,
    Slice,
    Softmax,
    Transpose,
    TransposeConv2d,
)

OWN_PREFIX = "deploy_"
"""What our functions' names begin with where they stand beside Arm's: `arm_` alone is Arm's there."""

_MAX_AXES = 4  # of CMSIS-NN's dims struct


def choose_kernels(graph: Graph, library: KernelLibrary, board: Board) -> tuple[Graph, list[Kernel]]:
    """The kernel of every operator; the graph gains the constants that kernels need besides.

    Raises:
        PlanError: an operator has none.
    """
    kernels = [choose_kernel(op) for op in graph.operators]
    if library.folder is None:
        return graph, kernels
    isa = cmsis_nn.compiled_isa(board)
    kernels = [_of_cmsis_nn(op, kernel, isa) for op, kernel in zip(graph.operators, kernels, strict=True)]
    return cmsis_nn.with_kernel_sums(graph, kernels) if isa is Isa.MVE else (graph, kernels)


def _of_cmsis_nn(op: Operator, ours: Kernel, isa: Isa) -> Kernel:
    """Arm's function for an operator, or ours where it has none or is not right."""
    if ours.function.startswith(OWN_PREFIX):
        return replace(ours, reason="CMSIS-NN has no such function")
    if reason := cmsis_nn.quirk_of(op, isa):
        return replace(ours, function=OWN_PREFIX + ours.function, reason=reason)
    first, second = cmsis_nn.scratch_of(op, isa)
    return replace(ours, scratch=first + second, second_scratch=second)


def choose_kernel(op: Operator) -> Kernel:
    """Our kernel that computes an operator, under the name of CMSIS-NN's API where that has the function.

    Raises:
        PlanError: there is none.
    """
    choose = _CHOICES.get(type(op))
    if choose is None:
        raise PlanError(
            f"there is no kernel for {op.name} yet",
            where=f"operator {op.index}",
            hint="Replace this layer in the model, or open an issue with the model's `deploy inspect`.",
        )
    return choose(op)


def _quantize(op: Quantize) -> Kernel:
    # It reads a float before it writes the byte at or below the same address.
    return Kernel("deploy_quantize_f32_s8", in_place=True)


def _convolve(op: Conv2d) -> Kernel:
    return Kernel("arm_convolve_wrapper_s8", scratch=convolve_scratch(op))


def convolve_scratch(op: Conv2d) -> int:
    """Two columns of int16 patches, each rounded up to four elements."""
    patch = op.kernel[0] * op.kernel[1] * op.input_shape[3] // op.groups
    return 4 * _multiple_of_4(patch)


def _depthwise(op: DepthwiseConv2d) -> Kernel:
    return Kernel("arm_depthwise_conv_wrapper_s8", scratch=depthwise_scratch(op))


def depthwise_scratch(op: DepthwiseConv2d) -> int:
    """With one input channel it is a convolution: the widened weights and four patches. Otherwise nothing."""
    channels = op.output_shape[3]
    if op.input_shape[3] != 1 or channels == 1:
        return 0
    return (channels + 4) * _multiple_of_4(op.kernel[0] * op.kernel[1])


def _linear(op: Linear) -> Kernel:
    per_tensor = len(op.multipliers) == 1
    return Kernel("arm_fully_connected_s8" if per_tensor else "arm_fully_connected_per_channel_s8")


def _permutation(op: Transpose | Copy) -> Kernel:
    _check_axes(op, len(op.input_shape))
    return Kernel("arm_transpose_s8")


def _pad(op: Pad) -> Kernel:
    _check_axes(op, len(op.input_shape))
    return Kernel("arm_pad_s8")


def _extremum(function: str) -> Callable[[Any], Kernel]:
    def choose(op: Minimum | Maximum) -> Kernel:
        _check_axes(op, len(op.output_shape))
        return Kernel(function)

    return choose


def _simple(function: str) -> Callable[[Any], Kernel]:
    return lambda _: Kernel(function)


def _check_axes(op: Operator, axes: int) -> None:
    if axes > _MAX_AXES:
        raise PlanError(
            f"{op.name} works on {axes} axes; the kernels take at most {_MAX_AXES}",
            where=f"operator {op.index}",
            hint="Merge axes that stay together (reshape) before this layer.",
        )


def _multiple_of_4(value: int) -> int:
    return -(-value // 4) * 4


_CHOICES: dict[type[Operator], Callable[[Any], Kernel]] = {
    Quantize: _quantize,
    Dequantize: _simple("deploy_dequantize_s8_f32"),
    Conv2d: _convolve,
    DepthwiseConv2d: _depthwise,
    Linear: _linear,
    TransposeConv2d: _simple("arm_transpose_conv_wrapper_s8"),
    BatchMatmul: _simple("arm_batch_matmul_s8"),
    Add: _simple("arm_elementwise_add_s8"),
    Mul: _simple("arm_elementwise_mul_s8"),
    Div: _simple("deploy_div_s8"),
    Minimum: _extremum("arm_minimum_s8"),
    Maximum: _extremum("arm_maximum_s8"),
    Activation: lambda _: Kernel("deploy_lookup_s8", in_place=True),
    AvgPool2d: _simple("arm_avgpool_s8"),
    MaxPool2d: _simple("arm_max_pool_s8"),
    Softmax: _simple("arm_softmax_s8"),
    Transpose: _permutation,
    Copy: _permutation,
    Pad: _pad,
    Concatenate: _simple("deploy_concatenate_s8"),
    Slice: _simple("deploy_copy_s8"),
    Expand: _simple("deploy_copy_s8"),
}
