"""Chains of elementwise int8 operators on one tensor become one table lookup, or part of the layer before them.

Behind a layer, `hardswish` for example is lowered to a minimum with a constant and a product of that with the layer's
result. Each output byte depends on one input byte alone, so 256 bytes say it all; they are computed here with the
reference arithmetic, and the lookup is bit-exact by construction.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from toolkit.planning.simplify import Graph, drop_unused
from toolkit.program.types import (
    Activation,
    Add,
    Conv2d,
    DepthwiseConv2d,
    Div,
    DType,
    Linear,
    Maximum,
    MaxPool2d,
    Minimum,
    Mul,
    Operator,
    Program,
    Tensor,
    TransposeConv2d,
)
from toolkit.reference import execute

Elementwise = Activation | Add | Div | Maximum | Minimum | Mul
Clamping = Add | Conv2d | DepthwiseConv2d | Linear | MaxPool2d | TransposeConv2d
_VALUES = 256


@dataclass(frozen=True, slots=True)
class _Chain:
    """Operators that compute a tensor from one other tensor, element by element."""

    root: int
    operators: tuple[Elementwise, ...]


def fuse_tables(graph: Graph) -> Graph:
    """Replace every result that is a function of the elements of one int8 tensor by a lookup in a table."""
    chains: dict[int, _Chain] = {}
    tensors = dict(graph.tensors)
    operators: list[Operator] = []
    new_id = max(tensors) + 1
    for op in graph.operators:
        chain = _extended(op, chains, graph)
        if chain is not None and not (len(chain.operators) == 1 and isinstance(op, Activation)):
            chains[op.output] = chain
            tensors[new_id] = Tensor(new_id, (_VALUES,), DType.INT8, (0,), _table(chain, graph))
            op = Activation(index=op.index, name=op.name, output=op.output, input=chain.root, lut=new_id)
            new_id += 1
        elif chain is not None:
            chains[op.output] = chain
        operators.append(op)
    return drop_unused(replace(graph, operators=tuple(operators), tensors=tensors))


def fold_clamps(graph: Graph) -> Graph:
    """Let layers clamp what they compute, where a lookup behind them does nothing else."""
    readers = Counter(id for op in graph.operators for id in op.inputs) + Counter(graph.outputs)
    layers = {op.output: op for op in graph.operators if isinstance(op, Clamping)}
    folded: dict[int, Operator] = {}  # by the result of the layer: the layer with other bounds and the lookup's result
    gone: set[int] = set()
    for op in graph.operators:
        layer = layers.get(op.input) if isinstance(op, Activation) else None
        if layer is None or not isinstance(op, Activation) or readers[layer.output] != 1:
            continue
        bounds = _bounds_after(layer, np.frombuffer(graph.tensors[op.lut].constant or b"", np.int8))
        if bounds is not None:
            folded[layer.output] = replace(layer, output=op.output, activation_min=bounds[0], activation_max=bounds[1])
            gone.add(op.output)
    kept = (op for op in graph.operators if op.output not in gone)
    return replace(graph, operators=tuple(folded.get(op.output, op) for op in kept))


def _bounds_after(layer: Clamping, table: npt.NDArray[np.int8]) -> tuple[int, int] | None:
    """The bounds that make a lookup part of a layer, None when the lookup is no clamp of what the layer gives."""
    values = np.arange(layer.activation_min, layer.activation_max + 1)
    found = table[values + _VALUES // 2].astype(int)
    low, high = int(found[0]), int(found[-1])
    return (low, high) if low <= high and np.array_equal(found, np.clip(values, low, high)) else None


def _extended(op: Operator, chains: dict[int, _Chain], graph: Graph) -> _Chain | None:
    """The chain from a root to the result of an operator, None when it is not a function of one tensor's elements."""
    if not isinstance(op, Elementwise):
        return None
    size = graph.tensors[op.output].size
    roots = set()
    before: dict[int, Elementwise] = {}
    for id in op.inputs:
        tensor = graph.tensors[id]
        if tensor.dtype is not DType.INT8:
            return None
        if tensor.constant is not None:
            if tensor.size != 1 and not (isinstance(op, Activation) and id == op.lut):
                return None
            continue
        if tensor.size != size:
            return None
        chain = chains.get(id)
        roots.add(chain.root if chain else id)
        before |= {done.output: done for done in (chain.operators if chain else ())}
    if len(roots) != 1:
        return None
    return _Chain(roots.pop(), (*before.values(), op))


def _table(chain: _Chain, graph: Graph) -> bytes:
    """What the chain makes of each int8 value, from -128 to 127."""
    made = {chain.root, *(op.output for op in chain.operators)}
    flat = {id: Tensor(id, (_VALUES,), DType.INT8, (0,)) for id in made}
    constants = {id: _one_axis(graph.tensors[id]) for op in chain.operators for id in op.inputs if id not in made}
    program = Program(
        name="table",
        sha256="",
        tensors=flat | constants,
        operators=tuple(_flattened(op, made) for op in chain.operators),
        inputs=(chain.root,),
        outputs=(chain.operators[-1].output,),
    )
    return execute(program, [np.arange(-128, 128, dtype=np.int8)]).outputs[0].tobytes()


def _one_axis(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=(tensor.size,), dim_order=(0,))


def _flattened(op: Elementwise, made: set[int]) -> Elementwise:
    """The operator on all 256 values at once."""
    if isinstance(op, Activation | Div):
        return op
    shapes = {
        "input_shape": (_VALUES if op.input in made else 1,),
        "other_shape": (_VALUES if op.other in made else 1,),
        "output_shape": (_VALUES,),
    }
    return replace(op, **shapes)  # type: ignore[arg-type]
