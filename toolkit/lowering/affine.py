"""A scale and a shift per channel as a depthwise convolution.

BatchNorm that does not follow a convolution directly, `(x - mean) / std` with a number per colour, a learned scale: the
quantiser has no pattern for them, but a depthwise convolution with kernels of one element computes just that.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

_FOLDS_INTO = {  # operator before a BatchNorm, and ranks of its result
    "aten.conv1d.default": (2, 3),
    "aten.conv2d.default": (3, 4),
    "aten.conv_transpose2d.input": (3, 4),
    "aten.linear.default": (2,),  # over more dimensions, the normalised one is not the one of the outputs
}
_AFFINE = "deploy_affine"  # key in a node's meta data: (source, scale, shift) of a convolution put in here


def batch_norm(node: Any) -> Any:
    """`aten.batch_norm` in eval mode, unless the quantiser will fold it into the layer before it."""
    import torch

    source, weight, bias, mean, variance, training, _, eps = node.args[:8]
    folds = source.meta["val"].dim() in _FOLDS_INTO.get(str(source.target), ()) and len(source.users) == 1
    if training or folds:
        return None
    scale = torch.rsqrt(_value(variance) + eps)
    scale = scale if weight is None else scale * _value(weight)
    shift = -_value(mean) * scale
    return _depthwise(node, source, scale, shift if bias is None else shift + _value(bias))


def arithmetic(node: Any) -> Any:
    """`aten.add`, `sub`, `mul` or `div` of a tensor and a constant with one number per channel."""
    import torch

    name = str(node.target).split(".")[1]
    left, right = node.args
    if node.kwargs:
        return None
    swapped = _per_channel(left, node) is not None
    constant = _per_channel(left if swapped else right, node)
    source = right if swapped else left
    if constant is None or not hasattr(source, "meta") or source.meta["val"].shape != node.meta["val"].shape:
        return None
    one, zero = torch.ones_like(constant), torch.zeros_like(constant)
    if name == "add":
        return _depthwise(node, source, one, constant)
    if name == "mul":
        return _depthwise(node, source, constant, zero)
    if name == "sub":
        return _depthwise(node, source, -one if swapped else one, constant if swapped else -constant)
    return None if swapped else _depthwise(node, source, 1 / constant, zero)


def _per_channel(operand: Any, node: Any) -> Any:
    """The values of a constant that broadcasts along the channels of a result and nothing else, else None."""
    shape = node.meta["val"].shape
    if getattr(operand, "op", "") != "get_attr" or len(shape) not in (3, 4):
        return None
    value = _value(operand)
    aligned = (1,) * (len(shape) - value.dim()) + tuple(value.shape)
    if value.numel() == 1 or aligned != (1, shape[1], *(1,) * (len(shape) - 2)):
        return None
    return value.flatten()


def _depthwise(node: Any, source: Any, scale: Any, shift: Any) -> Any:
    """A convolution with one kernel element per channel, joined with one directly before it."""
    from torch.ops import aten

    before = source.meta.get(_AFFINE) if len(source.users) == 1 else None
    if before is not None:
        source, shift, scale = before[0], shift + scale * before[2], scale * before[1]
    rank = source.meta["val"].dim()
    if rank not in (2, 3, 4):
        return None
    channels, spatial = len(scale), max(rank - 2, 1)
    signal = source if rank > 2 else call(node, aten.unsqueeze.default, source, -1)
    weight = _constant(node, "scale", scale.reshape(channels, 1, *(1,) * spatial))
    bias = _constant(node, "shift", shift)
    target = (aten.conv1d if spatial == 1 else aten.conv2d).default
    shape = [[1] * spatial, [0] * spatial, [1] * spatial]
    result = call(node, target, signal, weight, bias, *shape, channels)
    if rank == 2:
        return call(node, aten.squeeze.dim, result, -1)
    result.meta[_AFFINE] = (source, scale, shift)
    return result


def call(before: Any, target: Any, *args: Any) -> Any:
    """A new node in front of another, of the same layer and line of the user's code."""
    with before.graph.inserting_before(before):
        node = before.graph.call_function(target, args)
    node.meta = dict(before.meta)
    node.meta["val"] = target(*(arg.meta["val"] if hasattr(arg, "meta") else arg for arg in args))
    return node


def _constant(node: Any, name: str, value: Any) -> Any:
    """A new constant of the module, and a node that reads it."""
    module = node.graph.owning_module
    target = f"{node.name}_{name}"
    module.register_buffer(target, value.detach().clone())
    with node.graph.inserting_before(node):
        constant = node.graph.get_attr(target)
    constant.meta["val"] = node.meta["val"].fake_mode.from_tensor(getattr(module, target), static_shapes=True)
    return constant


def _value(node: Any) -> Any:
    """The tensor that a node reads from the module."""
    return reduce(getattr, node.target.split("."), node.graph.owning_module).detach()
