"""Repetitions that need not be written out, or not in another memory order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from toolkit.program.types import Add, Expand, Maximum, Minimum, Mul, Operator, Shape, Transpose


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis of a repetition: sizes before and after, and the axis of the original tensor that it runs along."""

    before: int
    after: int
    source: int | None


def without_repetitions(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """Sums, products and extrema repeat their operands themselves; a repetition between two transposes that undo each
    other is one of the original tensor. What nothing reads any more is left in place."""
    repeated: dict[int, Expand] = {}
    transposed: dict[int, Transpose] = {}
    result: list[Operator] = []
    for op in operators:
        if isinstance(op, Transpose) and op.input in repeated:
            op = _turned(op, repeated[op.input], transposed) or op
        op = _repeating(op, repeated)
        if isinstance(op, Expand):
            repeated[op.output] = op
        elif isinstance(op, Transpose):
            transposed[op.output] = op
        result.append(op)
    return tuple(result)


def _repeating(op: Operator, repeated: Mapping[int, Expand]) -> Operator:
    if not isinstance(op, Add | Mul | Minimum | Maximum):
        return op
    first, second = repeated.get(op.input), repeated.get(op.other)
    if first is not None and first.output_shape == op.input_shape:
        op = replace(op, input=first.input, input_shape=first.input_shape)
    if second is not None and second.output_shape == op.other_shape:
        op = replace(op, other=second.input, other_shape=second.input_shape)
    return op


def _turned(last: Transpose, expand: Expand, transposed: Mapping[int, Transpose]) -> Expand | None:
    """The repetition of the original tensor that a transpose, a repetition and another transpose are, if any."""
    first = transposed.get(expand.input)
    if first is None:
        return None
    axes = _axes(expand, first)
    groups = _grouped(axes, last.input_shape)
    if groups is None:
        return None
    turned = [axis for position in last.permutation for axis in groups[position]]
    along = [axis.source for axis in turned if axis.source is not None]
    sizes = [first.input_shape[axis] for axis in sorted(along)]
    if along != sorted(along) or prod(sizes) != prod(first.input_shape):
        return None
    return Expand(
        index=last.index,
        name=expand.name,
        output=last.output,
        input=first.input,
        input_shape=tuple(axis.before for axis in turned),
        output_shape=tuple(axis.after for axis in turned),
    )


def _axes(expand: Expand, first: Transpose) -> list[_Axis]:
    """The axes of a repetition; empty when a view between it and the transpose before it has split or joined some."""
    moved = [axis for axis in first.permutation if first.input_shape[axis] != 1]
    if [first.input_shape[axis] for axis in moved] != [size for size in expand.input_shape if size != 1]:
        return []
    rest = iter(moved)
    sizes = zip(expand.input_shape, expand.output_shape, strict=True)
    return [_Axis(before, after, next(rest) if before != 1 else None) for before, after in sizes]


def _grouped(axes: Sequence[_Axis], shape: Shape) -> list[list[_Axis]] | None:
    """The axes that each axis of a shape consists of, None when they do not divide so."""
    groups: list[list[_Axis]] = []
    rest = list(axes)
    for size in shape:
        group: list[_Axis] = []
        while rest and prod(axis.after for axis in group) * rest[0].after <= size and (rest[0].after > 1 or not group):
            group.append(rest.pop(0))
        if prod(axis.after for axis in group) != size:
            return None
        groups.append(group)
    return groups if all(axis.after == 1 for axis in rest) else None
