"""How each operator says itself in C: the structs it fills and the kernel it calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from toolkit.planning.cmsis_nn import ADD_LEFT_SHIFT
from toolkit.planning.types import Plan, Step
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
    Pair,
    Quantize,
    Shape,
    Slice,
    Softmax,
    Transpose,
    TransposeConv2d,
)
from toolkit.rendering.broadcasting import loops_of


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel call in C.

    Attributes:
        statements: lines that declare and fill the arguments.
        arguments: C expressions, in the order of the kernel's prototype.
        returns_status: whether the kernel returns a status (the others cannot fail).
        counts: of the loops around the call, outermost first; their variables are i0, i1, …
    """

    statements: tuple[str, ...]
    arguments: tuple[str, ...]
    returns_status: bool = True
    counts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """Where the operands of one step are, as C expressions."""

    plan: Plan
    step: Step
    symbols: dict[int, str]

    def operand(self, id: int, c_type: str = "int8_t") -> str:
        """A constant's symbol, or the place of an activation."""
        if id in self.symbols:
            return self.symbols[id]
        return f"at<{c_type}>({self.plan.activations[id].span.offset})"

    def output(self, c_type: str = "int8_t") -> str:
        return self.operand(self.step.operator.output, c_type)

    @property
    def function(self) -> str:
        """The kernel's name."""
        return self.step.kernel.function

    def size(self, id: int) -> int:
        return self.plan.tensor(id).size

    @property
    def context(self) -> str:
        """The statement that declares the kernel's working memory, or the sums it takes in its place."""
        kernel, scratch = self.step.kernel, self.step.scratch
        value = "{nullptr, 0}"
        if kernel.kernel_sum is not None:
            sums = f"const_cast<int32_t*>({self.symbols[kernel.kernel_sum]})"
            value = f"{{{sums}, {self.plan.tensor(kernel.kernel_sum).nbytes}}}"
        elif scratch:
            value = f"{{at<void>({scratch.offset}), {scratch.nbytes - kernel.second_scratch}}}"
        return f"const cmsis_nn_context context = {value};"

    @property
    def second_context(self) -> str:
        """The statement that declares the second working memory of a transposed convolution."""
        scratch, nbytes = self.step.scratch, self.step.kernel.second_scratch
        offset = scratch.offset + scratch.nbytes - nbytes if scratch else 0
        value = f"{{at<void>({offset}), {nbytes}}}" if nbytes else "{nullptr, 0}"
        return f"const cmsis_nn_context reverse_context = {value};"

    def suffices(self, needed: str, context: str = "context") -> tuple[str, ...]:
        """Statements that refuse to call a kernel of Arm's library that needs more memory than planned.

        Releases of that library differ in what they ask for; ours asks for what planning knows.
        """
        if self.plan.library.folder is None or self.step.kernel.reason:
            return ()
        return (
            f"const int32_t for_{context} = {needed};",
            f"if (for_{context} > {context}.size) return failed(ARM_CMSIS_NN_ARG_ERROR);",
        )


def say(step: Step, plan: Plan, symbols: dict[int, str]) -> Call:
    """The call of one step's kernel."""
    return _SAYINGS[type(step.operator)](step.operator, Scope(plan, step, symbols))


def _dims(name: str, shape: Shape) -> str:
    """CMSIS-NN's dims of a tensor of at most four axes, missing leading axes being 1."""
    padded = (1,) * (4 - len(shape)) + tuple(shape)
    return f"const cmsis_nn_dims {name} = {{{', '.join(map(str, padded))}}};"


def _tile(pair: Pair) -> str:
    """CMSIS-NN's tile: width before height."""
    return f"{{{pair[1]}, {pair[0]}}}"


def c_float(value: float) -> str:
    """A C literal of exactly the float32 nearest to `value`."""
    text = repr(float(np.float32(value)))
    return f"{text}f"


def _convolution(op: Conv2d | DepthwiseConv2d, scope: Scope, struct: str, filter_shape: Shape) -> Call:
    needed = f"{scope.function}_get_buffer_size(&params, &input, &filter, &output)"
    statements = [
        scope.context,
        f"{struct} params{{}};",
        f"params.input_offset = {op.input_offset};",
        f"params.output_offset = {op.output_offset};",
        *([f"params.ch_mult = {op.depth_multiplier};"] if isinstance(op, DepthwiseConv2d) else []),
        f"params.stride = {_tile(op.stride)};",
        f"params.padding = {_tile(op.padding)};",
        f"params.dilation = {_tile(op.dilation)};",
        f"params.activation = {{{op.activation_min}, {op.activation_max}}};",
        *_per_channel(scope.symbols[op.multiplier], scope.symbols[op.shift]),
        _dims("input", op.input_shape),
        _dims("filter", filter_shape),
        _dims("bias", (op.output_shape[3],)),
        _dims("output", op.output_shape),
        *scope.suffices(needed),
    ]
    bias = "nullptr" if op.bias is None else scope.symbols[op.bias]
    arguments = (
        *("&context", "&params", "&quantisation", "&input", scope.operand(op.input)),
        *("&filter", scope.operand(op.weight), "&bias", bias, "&output", scope.output()),
    )
    return Call(tuple(statements), arguments)


def _per_channel(multiplier: str, shift: str) -> list[str]:
    # The published struct has pointers to non-const; the kernels only read.
    return [
        "cmsis_nn_per_channel_quant_params quantisation{};",
        f"quantisation.multiplier = const_cast<int32_t*>({multiplier});",
        f"quantisation.shift = const_cast<int32_t*>({shift});",
    ]


def _conv2d(op: Conv2d, scope: Scope) -> Call:
    filter_shape = (op.output_shape[3], *op.kernel, op.input_shape[3] // op.groups)
    return _convolution(op, scope, "cmsis_nn_conv_params", filter_shape)


def _depthwise(op: DepthwiseConv2d, scope: Scope) -> Call:
    return _convolution(op, scope, "cmsis_nn_dw_conv_params", (1, *op.kernel, op.output_shape[3]))


def _transpose_conv2d(op: TransposeConv2d, scope: Scope) -> Call:
    statements = (
        scope.context,
        scope.second_context,
        "cmsis_nn_transpose_conv_params params{};",
        f"params.input_offset = {op.input_offset};",
        f"params.output_offset = {op.output_offset};",
        f"params.stride = {_tile(op.stride)};",
        f"params.padding = {_tile(op.padding)};",
        f"params.padding_offsets = {_tile(op.output_padding)};",
        f"params.dilation = {_tile(op.dilation)};",
        f"params.activation = {{{op.activation_min}, {op.activation_max}}};",
        *_per_channel(scope.symbols[op.multiplier], scope.symbols[op.shift]),
        _dims("input", op.input_shape),
        _dims("filter", (op.output_shape[3], *op.kernel, op.input_shape[3])),
        _dims("bias", (op.output_shape[3],)),
        _dims("output", op.output_shape),
        *scope.suffices("arm_transpose_conv_s8_get_buffer_size(&params, &input, &filter, &output)"),
        *scope.suffices(
            "arm_transpose_conv_s8_get_reverse_conv_buffer_size(&params, &input, &filter)", "reverse_context"
        ),
    )
    bias = "nullptr" if op.bias is None else scope.symbols[op.bias]
    arguments = (
        *("&context", "&reverse_context", "&params", "&quantisation", "&input", scope.operand(op.input)),
        *("&filter", scope.operand(op.weight), "&bias", bias, "&output", scope.output()),
    )
    return Call(statements, arguments)


def _batch_matmul(op: BatchMatmul, scope: Scope) -> Call:
    statements = (
        scope.context,
        "cmsis_nn_bmm_params params{};",
        f"params.fc_params.input_offset = {op.lhs_offset};",
        f"params.fc_params.filter_offset = {op.rhs_offset};",
        f"params.fc_params.output_offset = {op.output_offset};",
        "params.fc_params.activation = {-128, 127};",
        f"const cmsis_nn_per_tensor_quant_params quantisation = {{{op.multiplier}, {op.shift}}};",
        _dims("lhs", (op.batch, op.rows, op.depth)),
        _dims("rhs", (op.batch, op.columns, op.depth)),
        _dims("output", (op.batch, op.rows, op.columns)),
    )
    arguments = (
        *("&context", "&params", "&quantisation", "&lhs", scope.operand(op.lhs), "&rhs", scope.operand(op.rhs)),
        *("&output", scope.output()),
    )
    return Call(statements, arguments)


def _linear(op: Linear, scope: Scope) -> Call:
    statements = [
        scope.context,
        "cmsis_nn_fc_params params{};",
        f"params.input_offset = {op.input_offset};",
        f"params.filter_offset = {op.filter_offset};",
        f"params.output_offset = {op.output_offset};",
        f"params.activation = {{{op.activation_min}, {op.activation_max}}};",
    ]
    if len(op.multipliers) == 1:
        statements.append(
            f"const cmsis_nn_per_tensor_quant_params quantisation = {{{op.multipliers[0]}, {op.shifts[0]}}};"
        )
    else:
        statements += [
            f"static const int32_t multiplier[] = {{{', '.join(map(str, op.multipliers))}}};",
            f"static const int32_t shift[] = {{{', '.join(map(str, op.shifts))}}};",
            *_per_channel("multiplier", "shift"),
        ]
    statements += [
        f"const cmsis_nn_dims input = {{{op.rows}, 1, 1, {op.depth}}};",
        f"const cmsis_nn_dims filter = {{{op.depth}, 1, 1, {op.outputs}}};",
        f"const cmsis_nn_dims bias = {{1, 1, 1, {op.outputs}}};",
        f"const cmsis_nn_dims output = {{{op.rows}, 1, 1, {op.outputs}}};",
        *scope.suffices("arm_fully_connected_s8_get_buffer_size(&filter)"),
    ]
    bias = "nullptr" if op.bias is None else scope.symbols[op.bias]
    arguments = (
        *("&context", "&params", "&quantisation", "&input", scope.operand(op.input)),
        *("&filter", scope.operand(op.weight), "&bias", bias, "&output", scope.output()),
    )
    return Call(tuple(statements), arguments)


def _quantize(op: Quantize, scope: Scope) -> Call:
    inverse_scale = c_float(float(np.float32(1.0 / op.scale)))
    arguments = (
        *(scope.operand(op.input, "float"), scope.output(), str(scope.size(op.input)), inverse_scale),
        *(str(op.zero_point), str(op.quant_min), str(op.quant_max)),
    )
    return Call((), arguments, returns_status=False)


def _dequantize(op: Dequantize, scope: Scope) -> Call:
    arguments = (
        *(scope.operand(op.input), scope.output("float"), str(scope.size(op.input))),
        *(c_float(op.scale), str(op.zero_point)),
    )
    return Call((), arguments, returns_status=False)


def _stepped(pointer: str, steps: Sequence[int]) -> str:
    """A pointer that moves on with the loops around a call."""
    moves = [f"i{depth}" if step == 1 else f"{step} * i{depth}" for depth, step in enumerate(steps) if step]
    return " + ".join([pointer, *moves])


def _add(op: Add, scope: Scope) -> Call:
    loops, block = loops_of(op.input_shape, op.other_shape, op.output_shape)
    arguments = (
        _stepped(scope.operand(op.input), [loop.input_step for loop in loops]),
        _stepped(scope.operand(op.other), [loop.other_step for loop in loops]),
        *(str(-op.input_zero_point), str(op.input_multiplier), str(op.input_shift)),
        *(str(-op.other_zero_point), str(op.other_multiplier), str(op.other_shift)),
        *(str(ADD_LEFT_SHIFT), _stepped(scope.output(), [loop.output_step for loop in loops])),
        *(str(op.output_zero_point), str(op.output_multiplier), str(op.output_shift)),
        *(str(op.activation_min), str(op.activation_max), str(block)),
    )
    return Call((), arguments, counts=tuple(loop.count for loop in loops))


def _mul(op: Mul, scope: Scope) -> Call:
    loops, block = loops_of(op.input_shape, op.other_shape, op.output_shape)
    arguments = (
        _stepped(scope.operand(op.input), [loop.input_step for loop in loops]),
        _stepped(scope.operand(op.other), [loop.other_step for loop in loops]),
        *(str(-op.input_zero_point), str(-op.other_zero_point)),
        _stepped(scope.output(), [loop.output_step for loop in loops]),
        *(str(op.output_zero_point), str(op.multiplier), str(op.shift), "-128", "127", str(block)),
    )
    return Call((), arguments, counts=tuple(loop.count for loop in loops))


def _div(op: Div, scope: Scope) -> Call:
    arguments = (
        *(scope.operand(op.input), scope.operand(op.other)),
        *(str(op.input_zero_point), str(op.other_zero_point), c_float(op.output_scale)),
        *(scope.output(), str(op.output_zero_point), str(scope.size(op.output))),
    )
    return Call((), arguments, returns_status=False)


def _extremum(op: Minimum | Maximum, scope: Scope) -> Call:
    statements = (
        scope.context,
        _dims("input", op.input_shape),
        _dims("other", op.other_shape),
        _dims("output", op.output_shape),
    )
    arguments = (
        *("&context", scope.operand(op.input), "&input", scope.operand(op.other), "&other"),
        *(scope.output(), "&output"),
    )
    return Call(statements, arguments)


def _activation(op: Activation, scope: Scope) -> Call:
    arguments = (scope.operand(op.input), scope.symbols[op.lut], scope.output(), str(scope.size(op.output)))
    return Call((), arguments, returns_status=False)


def _pool(op: AvgPool2d | MaxPool2d, scope: Scope) -> Call:
    needed = f"arm_avgpool_s8_get_buffer_size({op.output_shape[2]}, {op.input_shape[3]})"
    low, high = (op.activation_min, op.activation_max) if isinstance(op, MaxPool2d) else (-128, 127)
    statements = (
        scope.context,
        "cmsis_nn_pool_params params{};",
        f"params.stride = {_tile(op.stride)};",
        f"params.padding = {_tile(op.padding)};",
        f"params.activation = {{{low}, {high}}};",
        _dims("input", op.input_shape),
        _dims("filter", (1, *op.kernel, 1)),
        _dims("output", op.output_shape),
        *(scope.suffices(needed) if isinstance(op, AvgPool2d) else ()),
    )
    arguments = (
        *("&context", "&params", "&input", scope.operand(op.input)),
        *("&filter", "&output", scope.output()),
    )
    return Call(statements, arguments)


def _softmax(op: Softmax, scope: Scope) -> Call:
    arguments = (
        *(scope.operand(op.input), str(op.rows), str(op.row_size)),
        *(str(op.multiplier), str(op.shift), str(op.diff_min), scope.output()),
    )
    return Call((), arguments, returns_status=False)


def _transpose(op: Transpose | Copy, scope: Scope) -> Call:
    axes = len(op.input_shape)
    # The kernel counts axes from the front of its dims struct: a tensor of fewer than four fills n, h, w in order.
    shape = tuple(op.input_shape) + (1,) * (4 - axes)
    output_shape = tuple(op.input_shape[axis] for axis in op.permutation) + (1,) * (4 - axes)
    statements = (
        f"static const uint32_t permutation[] = {{{', '.join(map(str, op.permutation))}}};",
        f"const cmsis_nn_transpose_params params = {{{axes}, permutation}};",
        _dims("input", shape),
        _dims("output", output_shape),
    )
    return Call(statements, (scope.operand(op.input), scope.output(), "&input", "&output", "&params"))


def _pad(op: Pad, scope: Scope) -> Call:
    missing = (0,) * (4 - len(op.input_shape))
    statements = (
        _dims("input", op.input_shape),
        _dims("before", missing + op.before),
        _dims("after", missing + op.after),
    )
    arguments = (scope.operand(op.input), scope.output(), str(op.value), "&input", "&before", "&after")
    return Call(statements, arguments)


def _concatenate(op: Concatenate, scope: Scope) -> Call:
    blocks = [prod(shape[op.axis :]) for shape in op.part_shapes]
    statements = (
        f"const int8_t* const parts[] = {{{', '.join(scope.operand(part) for part in op.parts)}}};",
        f"static const int32_t blocks[] = {{{', '.join(map(str, blocks))}}};",
    )
    rows = prod(op.part_shapes[0][: op.axis])
    arguments = ("parts", "blocks", str(len(blocks)), scope.output(), str(rows))
    return Call(statements, arguments, returns_status=False)


def _slice(op: Slice, scope: Scope) -> Call:
    rows, inner = prod(op.input_shape[: op.axis]), prod(op.input_shape[op.axis + 1 :])
    row, kept = op.input_shape[op.axis] * inner, op.count * inner
    source = scope.operand(op.input) + (f" + {op.start * inner}" if op.start else "")
    if op.step == 1:
        arguments = (source, str(row), scope.output(), str(kept), str(kept), str(rows))
        return Call((), arguments, returns_status=False)
    arguments = (
        *(_stepped(source, [row]), str(op.step * inner), _stepped(scope.output(), [kept])),
        *(str(inner), str(inner), str(op.count)),
    )
    return Call((), arguments, returns_status=False, counts=(rows,))


def _expand(op: Expand, scope: Scope) -> Call:
    loops, block = loops_of(op.input_shape, op.output_shape, op.output_shape)
    *outer, last = loops  # one at least: what repeats nothing is not there any more
    arguments = (
        *(_stepped(scope.operand(op.input), [loop.input_step for loop in outer]), str(last.input_step)),
        *(_stepped(scope.output(), [loop.output_step for loop in outer]), str(last.output_step)),
        *(str(block), str(last.count)),
    )
    return Call((), arguments, returns_status=False, counts=tuple(loop.count for loop in outer))


_SAYINGS: dict[type[Operator], Callable[[Any, Scope], Call]] = {
    Activation: _activation,
    Add: _add,
    AvgPool2d: _pool,
    BatchMatmul: _batch_matmul,
    Concatenate: _concatenate,
    Conv2d: _conv2d,
    Copy: _transpose,
    DepthwiseConv2d: _depthwise,
    Dequantize: _dequantize,
    Div: _div,
    Expand: _expand,
    Linear: _linear,
    MaxPool2d: _pool,
    Maximum: _extremum,
    Minimum: _extremum,
    Mul: _mul,
    Pad: _pad,
    Quantize: _quantize,
    Slice: _slice,
    Softmax: _softmax,
    Transpose: _transpose,
    TransposeConv2d: _transpose_conv2d,
}
