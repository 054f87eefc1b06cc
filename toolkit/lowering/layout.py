"""Moving transposes out of the way of table lookups.

Around every convolution the passes put a transpose to and from channels-last, and take those away that meet across
sums, products and clamps. They do not look across a lookup, which would leave two transposes around every activation
between two convolutions.
"""

from __future__ import annotations

from typing import Any

from toolkit.lowering.standins import operator_of

_TRANSPOSE = "cortex_m::transpose"
_LOOKUP = "cortex_m::quantized_activation"


def sink_transposes(exported: Any) -> Any:
    """Let lookups happen before transposes, and drop the transposes that then undo each other.

    Args:
        exported: an edge program after the Cortex-M passes; changed in place, and returned.
    """
    graph = exported.graph_module.graph
    for node in list(graph.nodes):
        if operator_of(node) == _LOOKUP:
            _sink(node)
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


def _join(second: Any, first: Any) -> None:
    """Two transposes in a row become one, or none where the second undoes the first."""
    permutation = [first.args[1][axis] for axis in second.args[1]]
    if permutation == sorted(permutation):
        second.replace_all_uses_with(first.args[0])
    else:
        second.args = (first.args[0], permutation)
