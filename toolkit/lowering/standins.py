"""Operators that hold a place while executorch's Cortex-M passes run.

In the middle of the passes, quantised operators have lost the conversions around them but have not yet become int8
operators, and the results of some (a linear layer, a quotient, a softmax) count as float until they have. What needs
an int8 input fails on them: a table lookup, and the transpose in front of a convolution. The operators here say that
their result is int8 without asking what they are given, and make room for the real thing when the passes are done.
"""

from __future__ import annotations

import functools
from typing import Any

QUANTIZE = "quantized_decomposed::quantize_per_tensor"
DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor"

FUSED = ("aten::relu", "aten::hardtanh", "aten::clamp", "aten::hardsigmoid")
"""Activations that a layer computes with its result, where nothing is quantised between the two."""

_FLOAT_FOR_A_WHILE = ("aten::linear", "aten::div", "aten::_softmax")


def operator_of(node: Any) -> str:
    """The operator a node calls, `namespace::name`; empty for anything else (allocations, views, tuples)."""
    schema = getattr(getattr(node, "target", None), "_schema", None)
    return str(schema.name) if schema is not None else ""


def hold_int8(exported: Any) -> Any:
    """Put a stand-in behind the results that count as float for a while.

    Args:
        exported: an edge program before the Cortex-M passes; changed in place, and returned.
    """
    graph = exported.graph_module.graph
    for node in list(graph.nodes):
        if operator_of(node) == QUANTIZE and operator_of(_producer(node)) in _FLOAT_FOR_A_WHILE:
            with graph.inserting_after(node):
                held = graph.call_function(int8_stand_in())
            node.replace_all_uses_with(held)
            held.args = (node,)
            held.meta = dict(node.meta)
    exported.graph_module.recompile()
    return exported


def _producer(quantized: Any) -> Any:
    """The node whose result is quantised, behind the activation that is computed with it."""
    node = quantized.args[0]
    while operator_of(node) in FUSED:
        node = node.args[0]
    return node


def settle(exported: Any) -> Any:
    """Replace the stand-ins by what they stand for: a Cortex-M lookup, or nothing.

    Args:
        exported: the same program after the Cortex-M passes; changed in place, and returned.
    """
    from executorch.exir.dialects._ops import ops

    graph = exported.graph_module.graph
    for node in list(graph.nodes):
        if node.target == lookup_stand_in():
            node.target = ops.edge.cortex_m.quantized_activation.default
        elif node.target == int8_stand_in():
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    exported.graph_module.recompile()
    return exported


def lookup_stand_in() -> Any:
    """The edge operator `deploy::lookup(Tensor input, Tensor table) -> Tensor`."""
    return _stand_ins()[0]


def int8_stand_in() -> Any:
    """The edge operator `deploy::int8(Tensor input) -> Tensor`."""
    return _stand_ins()[1]


@functools.cache
def _stand_ins() -> tuple[Any, Any, Any]:
    """Both operators, and the library that defines them, which lives as long as they do."""
    import torch
    from executorch.exir.dialects._ops import ops

    library = torch.library.Library("deploy", "DEF")
    for name, operands in (("lookup", "Tensor input, Tensor table"), ("int8", "Tensor input")):
        library.define(f"{name}({operands}) -> Tensor")
        torch.library.register_fake(f"deploy::{name}", _result, lib=library)
    return ops.edge.deploy.lookup.default, ops.edge.deploy.int8.default, library


def _result(value: Any, *_: Any) -> Any:
    import torch

    return torch.empty_like(value, dtype=torch.int8)
