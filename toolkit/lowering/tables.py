"""Elementwise arithmetic as a table lookup.

Between two int8 tensors, whatever computes each element from the same element of one other tensor is a function of 256
values, whichever operators spell it: a ReLU that stands alone, LeakyReLU, ELU, Hardswish, `(x - 0.5) / 0.5`,
`x * torch.sigmoid(x)`. Cortex-M has an operator for that, a lookup in a table of 256 bytes; the passes of executorch
know a few activations that become one, and leave the others in float or in two operators. Here all such arithmetic is
evaluated for the 256 inputs, with every rounding to int8 that it holds on the way, so that the table gives exactly what
the quantised model computes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolkit.lowering.standins import DEQUANTIZE, QUANTIZE, lookup_stand_in, operator_of

_POINTWISE = ("aten::hardswish", "aten::alias_copy")
"""Elementwise, although torch does not tag them so."""


def tabulate(exported: Any) -> Any:
    """Put a table where a quantised tensor is a function of one other, elementwise.

    A stand-in holds the place of each lookup until the passes are done; see `standins`.

    Args:
        exported: an edge program before the Cortex-M passes; changed in place, and returned.
    """
    tables = _Tables(exported)
    graph = exported.graph_module.graph
    quantized = [node for node in graph.nodes if _is_int8(node, QUANTIZE)]
    found = [(node, root) for node in quantized if (root := tables.root(node)) is not node]
    values = [tables.table(node, root) for node, root in found]  # all of them, before the graph changes
    for (node, root), table in zip(found, values, strict=True):
        node.replace_all_uses_with(root if _is_identity(table) else tables.lookup(node, root, table))
    graph.eliminate_dead_code()
    exported.graph_module.recompile()
    return exported


@dataclass
class _Tables:
    """What is known of the nodes of one program, filled in graph order.

    Attributes:
        exported: the program.
        roots: for a quantised node, the quantised node that it is a function of (itself, if of none or of several).
        sources: for a float node, the roots its elements are computed from; None if other than elementwise.
    """

    exported: Any
    roots: dict[Any, Any] = field(default_factory=dict)
    sources: dict[Any, frozenset[Any] | None] = field(default_factory=dict)

    def root(self, node: Any) -> Any:
        """The quantised node that this one is a function of."""
        if node not in self.roots:
            sources = self.sources_of(node.args[0])
            one = next(iter(sources)) if sources and len(sources) == 1 else node
            self.roots[node] = one if _shape(one) == _shape(node) else node
        return self.roots[node]

    def sources_of(self, node: Any) -> frozenset[Any] | None:
        if node not in self.sources:
            self.sources[node] = self._find_sources(node)
        return self.sources[node]

    def _find_sources(self, node: Any) -> frozenset[Any] | None:
        if self.constant(node) is not None:
            return frozenset()
        if _is_int8(node, DEQUANTIZE):
            quantized = node.args[0]
            return frozenset([self.root(quantized) if _is_int8(quantized, QUANTIZE) else quantized])
        if not _is_pointwise(node):
            return None
        found: frozenset[Any] = frozenset()
        for operand in node.all_input_nodes:
            sources = self.sources_of(operand)
            if sources is None:
                return None
            found |= sources
        return found

    def constant(self, node: Any) -> Any:
        """The value of a node that holds one number for all inputs, else None."""
        import torch

        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            return None
        if node.op == "placeholder":
            return _stored(self.exported, node)
        operands = (
            [self.constant(operand) for operand in node.all_input_nodes] if node.op == "call_function" else [None]
        )
        if any(operand is None for operand in operands):
            return None
        if not operands and operator_of(node) not in ("aten::full", "aten::scalar_tensor"):
            return None
        return _call(node, dict(zip(node.all_input_nodes, operands, strict=True)))

    def lookup(self, node: Any, root: Any, table: Any) -> Any:
        """A node that looks the values of `node` up, given those of `root`."""
        from executorch.backends.transforms.utils import create_constant_placeholder
        from torch.export.graph_signature import InputKind

        graph = node.graph
        with graph.inserting_before(next(iter(graph.nodes))):
            constant = create_constant_placeholder(
                self.exported, graph, f"{node.name}_table", InputKind.PARAMETER, table
            )
        with graph.inserting_before(node):
            lookup = graph.call_function(lookup_stand_in(), (root, constant))
        computed = node if _is_int8(node.args[0], DEQUANTIZE) else node.args[0]
        lookup.meta = {**computed.meta, "val": node.meta["val"]}
        return lookup

    def table(self, node: Any, root: Any) -> Any:
        """int8 (256,): the value of `node` for each value of `root` from -128 on."""
        import torch

        values = {root: torch.arange(-128, 128, dtype=torch.int8)}
        with torch.no_grad():
            exact = self._evaluate(node.args[0], values)
            return _call(node, {node.args[0]: _continued(exact)})

    def _evaluate(self, node: Any, values: dict[Any, Any]) -> Any:
        if node not in values:
            constant = self.constant(node)
            if constant is None:
                constant = _call(node, {operand: self._evaluate(operand, values) for operand in node.all_input_nodes})
            values[node] = constant.reshape(()) if constant.numel() == 1 else constant
        return values[node]


def _is_identity(table: Any) -> bool:
    import torch

    return bool(torch.equal(table, torch.arange(-128, 128, dtype=torch.int8)))


def _continued(values: Any) -> Any:
    """NaN (the logarithm of a negative number) becomes the value at the nearest input that has one."""
    import torch

    defined = torch.nonzero(~torch.isnan(values)).flatten()
    if len(defined) == 0:
        return torch.zeros_like(values)
    positions = torch.arange(len(values))
    return values[defined[(positions[:, None] - defined[None, :]).abs().argmin(1)]]


def _call(node: Any, values: dict[Any, Any]) -> Any:
    """What a node computes for given values of its operands."""
    from torch.fx.node import map_arg

    args, kwargs = map_arg((node.args, node.kwargs), lambda operand: values[operand])
    return getattr(node.target, "_op", node.target)(*args, **kwargs)


def _is_pointwise(node: Any) -> bool:
    import torch

    operator = getattr(node.target, "_op", None)
    if node.op != "call_function" or not isinstance(operator, torch._ops.OpOverload):
        return False
    if torch.Tag.nondeterministic_seeded in operator.tags or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    if torch.Tag.pointwise in operator.tags or operator_of(node) in _POINTWISE:
        return True
    return _is_int8(node, QUANTIZE) or _is_int8(node, DEQUANTIZE)


def _is_int8(node: Any, operator: str) -> bool:
    """A conversion from or to int8 with one scale for the whole tensor, given as a number."""
    import torch

    return operator_of(node) == operator and node.target._schema.overload_name == "" and node.args[5] == torch.int8


def _shape(node: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in node.meta["val"].shape)


def _stored(exported: Any, node: Any) -> Any:
    """The tensor behind a placeholder for a constant, None for an input."""
    signature = exported.graph_signature
    for names, store in (
        (signature.inputs_to_parameters, exported.state_dict),
        (signature.inputs_to_buffers, {**exported.state_dict, **exported.constants}),
        (signature.inputs_to_lifted_tensor_constants, exported.constants),
    ):
        if node.name in names and names[node.name] not in signature.buffers_to_mutate.values():
            return store[names[node.name]].detach()
    return None
