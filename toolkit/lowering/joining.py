"""Cutting, joining and repeating tensors, spelled with a slice, a concatenation and an expansion.

These three move elements and compute nothing, so they run on int8 tensors as they are. PyTorch has many more names for
them, and sums and products that repeat the smaller operand on the way; the quantiser knows operands of one shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.lowering.affine import call


def split(node: Any) -> None:
    """`split`, `chunk`, `unbind`: a slice for every part that is used. The node itself dies as dead code."""
    from torch.ops import aten

    source, axis = node.args[0], _axis(node)
    unbound = "unbind" in str(node.target)
    start = 0
    for position, part in enumerate(node.meta["val"]):
        size = 1 if unbound else int(part.shape[axis])
        for user in [user for user in node.users if user.args[1] == position]:
            piece = call(user, aten.slice.Tensor, source, axis, start, start + size)
            user.replace_all_uses_with(call(user, aten.squeeze.dim, piece, axis) if unbound else piece)
        start += size


def select(node: Any) -> Any:
    """One element of an axis."""
    from torch.ops import aten

    source, axis, index = node.args[:3]
    size = int(source.meta["val"].shape[axis])
    start = index + size if index < 0 else index
    return call(node, aten.squeeze.dim, call(node, aten.slice.Tensor, source, axis, start, start + 1), axis)


def narrow(node: Any) -> Any:
    """`length` elements of an axis from `start` on."""
    from torch.ops import aten

    source, axis, start, length = node.args
    first = start + int(source.meta["val"].shape[axis]) if start < 0 else start
    return call(node, aten.slice.Tensor, source, axis, first, first + length)


def stack(node: Any) -> Any:
    """Tensors behind one another along a new axis."""
    axis = (node.args[1] if len(node.args) > 1 else 0) % node.meta["val"].dim()
    parts = [_unsqueezed(node, part, axis) for part in node.args[0]]
    return _cat(node, parts, axis)


def concatenate(node: Any) -> Any:
    """`torch.concat` and its other names."""
    return _cat(node, node.args[0], node.args[1] if len(node.args) > 1 else 0)


def upsample_nearest(node: Any) -> Any:
    """Every sample several times along height and width (or the samples of a signal), where these are whole times."""
    source = node.args[0]
    before, after = ([int(size) for size in one.meta["val"].shape] for one in (source, node))
    if any(large % small for small, large in zip(before, after, strict=True)):
        return None
    return _each_repeated(
        node, source, [large // small for small, large in zip(before, after, strict=True)], inner=True
    )


def repeat(node: Any) -> Any:
    """A tensor several times behind itself."""
    source, times = node.args
    missing = len(times) - source.meta["val"].dim()
    for _ in range(missing):
        source = _unsqueezed(node, source, 0)
    return _each_repeated(node, source, times, inner=False)


def _each_repeated(node: Any, source: Any, times: Sequence[int], *, inner: bool) -> Any:
    """Along every axis: each element so many times (`inner`), or the whole axis so many times."""
    from torch.ops import aten

    shape = [int(size) for size in source.meta["val"].shape]
    whole: list[int] = []
    for size, count in zip(shape, times, strict=True):
        if count != 1:
            source = _unsqueezed(node, source, len(whole) + (1 if inner else 0))
        whole += [size] if count == 1 else [size, count] if inner else [count, size]
    if len(whole) == len(shape):
        return None
    spread = call(node, aten.expand.default, source, whole)
    return call(node, aten.reshape.default, spread, [size * count for size, count in zip(shape, times, strict=True)])


def _unsqueezed(node: Any, source: Any, axis: int) -> Any:
    from torch.ops import aten

    return call(node, aten.unsqueeze.default, source, axis)


def repeat_operands(node: Any) -> Any:
    """A sum, difference, product or quotient of two tensors of which one is repeated: written out."""
    if len(node.args) != 2 or node.kwargs or not all(hasattr(_value(operand), "shape") for operand in node.args):
        return None
    shape = node.meta["val"].shape
    operands = [operand if operand.meta["val"].shape == shape else _expanded(node, operand) for operand in node.args]
    if None in operands or operands == list(node.args):
        return None
    return call(node, node.target, *operands)


def _value(operand: Any) -> Any:
    """The tensor (without elements) or number that an operand stands for."""
    return operand.meta.get("val") if hasattr(operand, "meta") else operand


def _expanded(node: Any, operand: Any) -> Any:
    """An operand repeated to the shape of a result; None for a single number, which everything takes."""
    from torch.ops import aten

    value, shape = operand.meta["val"], [int(size) for size in node.meta["val"].shape]
    if value.numel() == 1:
        return None
    missing = len(shape) - value.dim()
    for _ in range(missing):
        operand = _unsqueezed(node, operand, 0)
    return call(node, aten.expand.default, operand, shape)


def _cat(node: Any, parts: Sequence[Any], axis: int) -> Any:
    from torch.ops import aten

    with node.graph.inserting_before(node):
        joined = node.graph.call_function(aten.cat.default, (list(parts), axis))
    joined.meta = dict(node.meta)
    return joined


def _axis(node: Any) -> int:
    """The axis of a split: the last argument, or `dim`."""
    given = 0
    for position, argument in enumerate(node.target._schema.arguments):
        if argument.name == "dim":
            given = node.args[position] if position < len(node.args) else node.kwargs.get("dim", argument.default_value)
    return int(given % node.args[0].meta["val"].dim())
