"""Activations that a layer cannot compute with its result, because that shares its scale with other tensors.

The passes of executorch make an activation part of the layer before it by what the quantised range leaves out: below
the smallest int8 value there is nothing. Where a result is joined with others it has their scale, and a ReLU's result
may then have its zero in the middle of the range. There the layer's own result is quantised first, and the activation
is a function of that.
"""

from __future__ import annotations

from typing import Any

from toolkit.lowering.standins import FUSED, QUANTIZE, operator_of

_BOUNDS = {"aten::relu": (0.0, None), "aten::hardsigmoid": (0.0, 1.0)}
"""Least and largest result of those that have no arguments for it."""

_HARDSIGMOID_SCALE, _HARDSIGMOID_ZERO = 6.0 / 254, 0
"""Of its operand: beyond -3 and 3 it is constant."""


def separate(exported: Any) -> Any:
    """Quantise the result of a layer before an activation that cannot become part of it.

    Args:
        exported: an edge program before the Cortex-M passes; changed in place, and returned.
    """
    graph = exported.graph_module.graph
    for node in list(graph.nodes):
        if operator_of(node) == QUANTIZE and operator_of(node.args[0]) in FUSED and not _fills_the_range(node):
            _quantize_before(node.args[0], node)
    exported.graph_module.recompile()
    return exported


def _fills_the_range(quantize: Any) -> bool:
    """Whether the quantised range ends where the activation's results do."""
    _, scale, zero_point, low, high, _ = quantize.args
    activation = quantize.args[0]
    given = (*activation.args[1:], None, None)[:2]
    least, largest = _BOUNDS.get(operator_of(activation), given)
    ends = [(least, low), (largest, high)]
    return all(bound is None or _quantized(bound, scale, zero_point, low, high) == end for bound, end in ends)


def _quantized(value: float, scale: float, zero_point: int, low: int, high: int) -> int:
    return min(max(round(value / scale) + zero_point, low), high)


def _quantize_before(activation: Any, quantize: Any) -> None:
    from executorch.exir.dialects._ops import ops

    operand = activation.args[0]
    parameters = quantize.args[1:]
    if operator_of(activation) == "aten::hardsigmoid":
        parameters = (_HARDSIGMOID_SCALE, _HARDSIGMOID_ZERO, *quantize.args[3:])
    with activation.graph.inserting_before(activation):
        quantized = activation.graph.call_function(quantize.target, (operand, *parameters))
        quantized.meta = {**operand.meta, "val": operand.meta["val"].to(quantize.meta["val"].dtype)}
        target = ops.edge.quantized_decomposed.dequantize_per_tensor.default
        real = activation.graph.call_function(target, (quantized, *parameters))
        real.meta = dict(operand.meta)
    activation.args = (real, *activation.args[1:])
