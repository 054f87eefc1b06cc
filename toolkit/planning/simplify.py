"""Passes over a program that take away what costs memory or time and computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from toolkit.errors import PlanError
from toolkit.planning.repetitions import without_repetitions
from toolkit.program.types import (
    Concatenate,
    Conv2d,
    Copy,
    DepthwiseConv2d,
    Expand,
    Linear,
    Operator,
    Pad,
    Program,
    Shape,
    Slice,
    Tensor,
    Transpose,
    View,
)


@dataclass(frozen=True, slots=True)
class Graph:
    """What is left of a program.

    Attributes:
        operators: the ones that compute something, with resolved operands.
        inputs, outputs: resolved tensor ids.
        results: for every instruction of the program, by index, the tensor that holds its result's bytes.
        tensors: of the program, and constants that planning made.
    """

    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    results: dict[int, int]
    tensors: Mapping[int, Tensor]


def simplify(program: Program) -> Graph:
    """Drop identities (clones, views, empty pads) and what is computed twice, repetitions that a kernel does itself,
    then everything that no output needs, then empty biases."""
    graph = _drop_identities(program)
    graph = drop_unused(replace(graph, operators=without_repetitions(graph.operators)))
    return _drop_zero_biases(graph)


def _drop_identities(program: Program) -> Graph:
    alias: dict[int, int] = {}
    results: dict[int, int] = {}
    kept: list[Operator] = []
    computed: dict[Operator, int] = {}
    for op in program.operators:
        op = op.reading(alias)
        work = replace(op, index=0, name="", output=0)
        if _is_identity(op):
            alias[op.output] = op.inputs[0]
        elif work in computed:
            alias[op.output] = computed[work]
        else:
            kept.append(op)
            computed[work] = op.output
        if not (isinstance(op, View) and op.index in results):
            results[op.index] = alias.get(op.output, op.output)
    outputs = tuple(alias.get(id, id) for id in program.outputs)
    for id in outputs:
        if program.tensors[id].constant is not None:
            raise PlanError(
                "an output of the model is a constant: it does not depend on any input",
                where=f"tensor {id}",
                hint="Return something that is computed from the model's inputs.",
            )
    return Graph(tuple(kept), program.inputs, outputs, results, program.tensors)


def _is_identity(op: Operator) -> bool:
    """Whether the bytes of the result are the bytes of the input."""
    if isinstance(op, View):
        return True
    if isinstance(op, Copy | Transpose):
        return moves_nothing(op.input_shape, op.permutation)
    if isinstance(op, Concatenate):
        return len(op.parts) == 1
    if isinstance(op, Slice):
        return op.count == op.input_shape[op.axis]
    if isinstance(op, Expand):
        return op.input_shape == op.output_shape
    return isinstance(op, Pad) and not any(op.before) and not any(op.after)


def moves_nothing(shape: Shape, permutation: tuple[int, ...]) -> bool:
    """Whether a permutation of a tensor's axes leaves its bytes where they are (axes of size 1 may go anywhere)."""
    moved = [axis for axis in permutation if shape[axis] != 1]
    return moved == sorted(moved)


def drop_unused(graph: Graph) -> Graph:
    """Without the operators whose results nothing reads."""
    needed = set(graph.outputs)
    kept: list[Operator] = []
    for op in reversed(graph.operators):
        if op.output in needed:
            needed.update(op.inputs)
            kept.append(op)
    return replace(graph, operators=tuple(reversed(kept)))


def _drop_zero_biases(graph: Graph) -> Graph:
    """A bias of zeros adds nothing and takes four bytes a channel. Grouped convolutions keep theirs: there some
    libraries read through a missing bias."""

    def without(op: Operator) -> Operator:
        if isinstance(op, Conv2d | DepthwiseConv2d | Linear) and op.bias is not None:
            grouped = isinstance(op, Conv2d) and op.groups > 1
            data = graph.tensors[op.bias].constant
            if not grouped and data is not None and not any(data):
                return replace(op, bias=None)
        return op

    return replace(graph, operators=tuple(without(op) for op in graph.operators))
