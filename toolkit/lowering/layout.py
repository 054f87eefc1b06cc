"""Moving transposes out of the way of table lookups, and of sums and products with a repeated operand.

Around every convolution the passes put a transpose to and from channels-last, and take those away that meet across
sums, products, clamps, slices and concatenations. They do not look across a lookup, nor where one operand of a product
is a repetition, which would leave two transposes around every activation and every gate between two convolutions.
"""

from __future__ import annotations

from typing import Any

from toolkit.lowering.standins import operator_of

_TRANSPOSE = "cortex_m::transpose"
_LOOKUP = "cortex_m::quantized_activation"
_EXPAND = "aten::expand_copy"
_CAT = "aten::cat"
_OPERANDS = {"cortex_m::quantized_add": (0, 4), "cortex_m::quantized_mul": (0, 2)}
"""Positions of the operands among the arguments."""


def sink_transposes(exported: Any) -> Any:
    """Let lookups, sums and products happen before transposes, and drop the transposes that then undo each other.

    Args:
        exported: an edge program after the Cortex-M passes; changed in place, and returned.
    """
    graph = exported.graph_module.graph
    for node in list(graph.nodes):
        if operator_of(node) == _LOOKUP:
            _sink(node)
        elif operator_of(node) in _OPERANDS:
            _sink_below_repetition(node, _OPERANDS[operator_of(node)])
        elif operator_of(node) == _TRANSPOSE and operator_of(node.args[0]) == _CAT:
            _hoist_above_cat(node, node.args[0])
        elif operator_of(node) == _TRANSPOSE and operator_of(node.args[0]) == _TRANSPOSE:
            _join(node, node.args[0])
    graph.eliminate_dead_code()
    exported.graph_module.recompile()
    return exported


def _sink(lookup: Any) -> None:
    """A lookup of a transposed tensor becomes the transpose of a lookup."""
    transpose, table = lookup.args
    if operator_of(transpose) != _TRANSPOSE or len(transpose.users) != 1:
        return
    source, permutation = transpose.args
    with lookup.graph.inserting_after(lookup):
        moved = lookup.graph.call_function(transpose.target)
    lookup.replace_all_uses_with(moved)
    moved.args = (lookup, permutation)
    moved.meta = {**transpose.meta, "val": lookup.meta["val"]}
    lookup.args = (source, table)
    lookup.meta["val"] = source.meta["val"]


def _sink_below_repetition(binary: Any, positions: tuple[int, int]) -> None:
    """A product of a transposed tensor and a repeated one becomes the transpose of a product."""
    for moving, staying in (positions, positions[::-1]):
        transpose, repeated = binary.args[moving], binary.args[staying]
        if operator_of(transpose) == _TRANSPOSE and operator_of(repeated) == _EXPAND and len(repeated.users) == 1:
            break
    else:
        return
    source, permutation = transpose.args
    small = repeated.args[0]
    back = [permutation.index(axis) for axis in range(len(permutation))]
    shape = [int(small.meta["val"].shape[axis]) for axis in back]
    if small.meta["val"].dim() != len(permutation) or sum(size != 1 for size in shape) > 1:
        return  # then it would have to be transposed itself
    whole = [int(size) for size in source.meta["val"].shape]
    graph = binary.graph
    with graph.inserting_before(binary):
        seen = graph.call_function(_view(), (small, shape))
        seen.meta = {**repeated.meta, "val": small.meta["val"].reshape(shape)}
        spread = graph.call_function(repeated.target, (seen, whole))
        spread.meta = {**repeated.meta, "val": repeated.meta["val"].new_empty(whole)}
    with graph.inserting_after(binary):
        moved = graph.call_function(transpose.target)
    binary.replace_all_uses_with(moved)
    moved.args = (binary, permutation)
    moved.meta = {**transpose.meta, "val": binary.meta["val"]}
    operands = {moving: source, staying: spread}
    binary.args = tuple(operands.get(position, argument) for position, argument in enumerate(binary.args))
    binary.meta["val"] = binary.meta["val"].new_empty(whole)


def _hoist_above_cat(transpose: Any, cat: Any) -> None:
    """The transpose of joined tensors becomes the join of transposed ones, where that undoes another transpose."""
    permutation = transpose.args[1]
    parts, axis = cat.args[0], cat.args[1] if len(cat.args) > 1 else 0
    undone = [operator_of(part) == _TRANSPOSE and _after(part.args[1], permutation) is None for part in parts]
    if len(cat.users) != 1 or not any(undone):
        return
    moved = []
    with cat.graph.inserting_before(cat):
        for part, is_undone in zip(parts, undone, strict=True):
            if is_undone:
                moved.append(part.args[0])
                continue
            turned = cat.graph.call_function(transpose.target, (part, permutation))
            turned.meta = {**transpose.meta, "val": part.meta["val"].permute(permutation).contiguous()}
            if operator_of(part) == _TRANSPOSE:
                turned.args = (part.args[0], _after(part.args[1], permutation))
            moved.append(turned)
    cat.args = (moved, permutation.index(axis % len(permutation)))
    cat.meta["val"] = transpose.meta["val"]
    transpose.replace_all_uses_with(cat)


def _view() -> Any:
    from executorch.exir.dialects._ops import ops

    return ops.edge.aten.view_copy.default


def _join(second: Any, first: Any) -> None:
    """Two transposes in a row become one, or none where the second undoes the first."""
    permutation = _after(first.args[1], second.args[1])
    if permutation is None:
        second.replace_all_uses_with(first.args[0])
    else:
        second.args = (first.args[0], permutation)


def _after(first: list[int], second: list[int]) -> list[int] | None:
    """The permutation that two make one after the other; None when the second undoes the first."""
    joined = [first[axis] for axis in second]
    return None if joined == sorted(joined) else joined
