"""Operators that move bytes and do not change them."""

from __future__ import annotations

from toolkit.program.call import COUNT, INT8, INT64, PADDING, Call
from toolkit.program.layout import CHANNELS_LAST, arranged, contiguous, element_order, is_ordered, same_elements
from toolkit.program.operators.elementwise import operand_shape
from toolkit.program.types import Concatenate, Copy, DType, Expand, Operator, Pad, Shape, Slice, Tensor, Transpose, View

_IMAGE_RANK = 4


def transpose(call: Call) -> Operator:
    source, result = call.tensor("input", DType.INT8), call.result(DType.INT8)
    rank = len(source.shape)
    # The program permutes logical axes: output axis i is input axis axes[i].
    axes = tuple(axis % rank for axis in call.integers("permutation", (-rank, rank - 1))) if rank else ()
    if sorted(axes) != list(range(rank)):
        call.fail(f"{list(axes)} is not a permutation of {rank} axes")
    if result.shape != arranged(source.shape, axes):
        call.fail(f"the output is {list(result.shape)}; the permutation gives {list(arranged(source.shape, axes))}")
    return Transpose(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        input_shape=source.physical_shape,
        permutation=tuple(source.dim_order.index(axes[axis]) for axis in result.dim_order),
    )


def pad(call: Call) -> Operator:
    source, result = call.tensor("input", DType.INT8), call.result(DType.INT8)
    rank = len(source.shape)
    before, after = call.integers("before", PADDING), call.integers("after", PADDING)
    if not 1 <= rank <= _IMAGE_RANK or len(before) != _IMAGE_RANK or len(after) != _IMAGE_RANK:
        call.fail(f"cannot pad a tensor of {rank} dimensions by {list(before)} and {list(after)}")
    axes = _padded_axes(call, source, result, before, after)
    # A tensor of one pixel or channel may be written in another dim order than the padded one, for the same bytes.
    if element_order(source.shape, source.dim_order) != element_order(source.shape, result.dim_order):
        call.fail(f"input and output are in different memory orders ({source.dim_order} and {result.dim_order})")
    unused = _IMAGE_RANK - rank
    positions = [unused + axes.index(axis) for axis in result.dim_order]
    return Pad(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        input_shape=arranged(source.shape, result.dim_order),
        before=tuple(before[position] for position in positions),
        after=tuple(after[position] for position in positions),
        value=call.integer("value", INT8),
    )


def concatenate(call: Call) -> Operator:
    parts, result = call.tensors("parts", DType.INT8), call.result(DType.INT8)
    if not parts:
        call.fail("nothing is concatenated")
    axis = _axis(call, result)
    shapes = tuple(_ordered_as(call, part, result) for part in parts)
    expected = list(result.shape)
    expected[axis] = sum(part.shape[axis] for part in parts)
    others = {(*part.shape[:axis], *part.shape[axis + 1 :]) for part in (*parts, result)}
    if len(others) != 1 or tuple(expected) != result.shape:
        listed = ", ".join(str(list(part.shape)) for part in parts)
        call.fail(f"{listed} along axis {axis} do not give {list(result.shape)}")
    return Concatenate(
        index=call.index,
        name=call.name,
        output=result.id,
        parts=tuple(part.id for part in parts),
        part_shapes=shapes,
        axis=result.dim_order.index(axis),
    )


def cut(call: Call) -> Operator:
    source, result = call.tensor("input", DType.INT8), call.result(DType.INT8)
    shape = _ordered_as(call, source, result)
    axis = _axis(call, result)
    size, step = source.shape[axis], call.integer("step", COUNT)
    start, end = (_end(call, name, size, default) for name, default in (("start", 0), ("end", size)))
    count = len(range(start, end, step))
    expected = (*source.shape[:axis], count, *source.shape[axis + 1 :])
    if result.shape != expected:
        call.fail(f"the output is {list(result.shape)}; the slice of {list(source.shape)} gives {list(expected)}")
    return Slice(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        input_shape=shape,
        axis=result.dim_order.index(axis),
        start=start,
        step=step,
        count=count,
    )


def expand(call: Call) -> Operator:
    source, result = call.tensor("input", DType.INT8), call.result(DType.INT8)
    shape = operand_shape(call, source, result)
    if any(size not in (1, whole) for size, whole in zip(shape, result.physical_shape, strict=True)):
        call.fail(f"{list(source.shape)} cannot be repeated to {list(result.shape)}")
    return Expand(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        input_shape=shape,
        output_shape=result.physical_shape,
    )


def copy(call: Call) -> Operator:
    source, result = _unconverted(call)
    if source.shape != result.shape:
        call.fail(f"input and output have different shapes: {list(source.shape)} and {list(result.shape)}")
    if same_elements(source, result):
        shape, permutation = result.physical_shape, contiguous(len(result.shape))
    else:
        shape = source.physical_shape
        permutation = tuple(source.dim_order.index(axis) for axis in result.dim_order)
    return Copy(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        input_shape=shape,
        permutation=permutation,
    )


def view(call: Call) -> Operator:
    source, result = _unconverted(call)
    if source.size != result.size:
        call.fail(f"{list(source.shape)} cannot be seen as {list(result.shape)}")
    if not same_elements(source, result):
        call.fail(
            f"a view of {list(source.shape)} in the memory order {list(source.dim_order)} as {list(result.shape)} "
            f"in {list(result.dim_order)} would need its elements reordered"
        )
    return View(index=call.index, name=call.name, output=result.id, input=source.id)


def _axis(call: Call, result: Tensor) -> int:
    """The logical axis that `dim` names."""
    rank = len(result.shape)
    if rank == 0:
        call.fail("a single value has no axis to cut or join along")
    return call.integer("dim", (-rank, rank - 1)) % rank


def _end(call: Call, name: str, size: int, default: int) -> int:
    """The start or end of a slice, which may be counted from the back and lie outside."""
    given = call.optional_integer(name, INT64)
    position = default if given is None else given
    return min(max(position + size if position < 0 else position, 0), size)


def _ordered_as(call: Call, tensor: Tensor, result: Tensor) -> Shape:
    """A tensor's sizes in the memory order of the result, which must be its own."""
    if len(tensor.shape) != len(result.shape):
        call.fail(f"{list(tensor.shape)} and the output {list(result.shape)} differ in rank")
    return operand_shape(call, tensor, result)


def _unconverted(call: Call) -> tuple[Tensor, Tensor]:
    """Input and output of one element type."""
    source, result = call.any_tensor("input"), call.output.tensor
    if source.dtype is not result.dtype:
        call.fail(
            f"a conversion from {source.dtype.name.lower()} to {result.dtype.name.lower()} is not supported",
            hint="Quantisation is the only conversion that has a Cortex-M kernel: keep to one type in the model.",
        )
    return call.tensor("input", source.dtype), call.result(result.dtype)


def _padded_axes(
    call: Call, source: Tensor, result: Tensor, before: tuple[int, ...], after: tuple[int, ...]
) -> tuple[int, ...]:
    """The logical axes that the last entries of `before` and `after` belong to, one per axis of the input.

    The exporter writes them in memory order, and decides by the sizes as well as by the dim order whether an image
    is channels-last: one with a single channel or pixel counts as such, unless the explicit layout made it. Only one
    reading gives the output's shape.
    """
    rank = len(source.shape)
    readings = [contiguous(rank)]
    if rank == _IMAGE_RANK and is_ordered(source, CHANNELS_LAST):
        readings.insert(0, CHANNELS_LAST)
    unused = _IMAGE_RANK - rank
    for axes in readings:
        sizes = {axis: before[unused + i] + source.shape[axis] + after[unused + i] for i, axis in enumerate(axes)}
        if not any(before[:unused] + after[:unused]) and all(sizes[axis] == result.shape[axis] for axis in axes):
            return axes
    call.fail(f"padding {list(source.shape)} by {list(before)} and {list(after)} does not give {list(result.shape)}")
