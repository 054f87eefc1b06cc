"""Writing what the quantiser does not know as what it does: operators with the same values under another name.

PyTorch has several spellings of one computation (`F.relu6` and `nn.ReLU6`, `padding="same"` and its numbers, a pooling
over one or over two dimensions); the Cortex-M quantiser matches one of each. Every rule here replaces a node of an
exported graph by nodes that compute exactly the same, before anything is quantised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.errors import LoweringError
from toolkit.lowering.affine import arithmetic, batch_norm, call
from toolkit.lowering.coverage import line_of
from toolkit.lowering.joining import (
    concatenate,
    narrow,
    repeat,
    repeat_operands,
    select,
    split,
    stack,
    upsample_nearest,
)

_HEIGHT = -2  # where a signal (batch, channels, samples) gets its dimension of one to become an image


def respell(module: Any, where: str) -> Any:
    """Apply every rule to the graph of an exported module, in place.

    Args:
        module: a `torch.fx.GraphModule` with shapes in its nodes' meta data.
        where: the user's file, for the errors.

    Raises:
        LoweringError: a dropout is active.
    """
    rules = _rules()
    for node in list(module.graph.nodes):
        rule = rules.get(str(node.target)) if node.op == "call_function" else None
        if rule is None:
            continue
        try:
            replacement = rule(node)
        except _ActiveDropoutError:
            raise LoweringError(
                "this dropout is active although the model is in eval mode",
                where=line_of(node)[0] or where,
                hint="Write F.dropout(x, p, training=self.training), or use nn.Dropout.",
            ) from None
        if replacement is not None:
            node.replace_all_uses_with(replacement)
            module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


class _ActiveDropoutError(Exception):
    """A dropout node that would drop."""


def _rules() -> dict[str, Callable[[Any], Any]]:
    """Name of an operator: what to put in its place, None to leave it."""
    return {
        "aten.relu6.default": _relu6,
        "aten.relu6_.default": _relu6,
        "aten.dropout.default": _dropout,
        "aten.feature_dropout.default": _dropout,
        "aten.alpha_dropout.default": _dropout,
        "aten.to.dtype_layout": _memory_format,
        "aten.contiguous.default": _memory_format,
        "aten.conv1d.padding": _named_padding,
        "aten.conv2d.padding": _named_padding,
        "aten.max_pool1d.default": _max_pool1d,
        "aten.avg_pool1d.default": _avg_pool1d,
        "aten.adaptive_avg_pool1d.default": _adaptive_pool,
        "aten.adaptive_avg_pool2d.default": _adaptive_pool,
        "aten.adaptive_max_pool1d.default": _adaptive_pool,
        "aten.adaptive_max_pool2d.default": _adaptive_pool,
        "aten.mean.dim": _mean_over_samples,
        "aten.batch_norm.default": batch_norm,
        "aten.add.Tensor": _arithmetic,
        "aten.sub.Tensor": _arithmetic,
        "aten.mul.Tensor": _arithmetic,
        "aten.div.Tensor": _arithmetic,
        "aten.split.Tensor": split,
        "aten.split_with_sizes.default": split,
        "aten.chunk.default": split,
        "aten.unbind.int": split,
        "aten.select.int": select,
        "aten.narrow.default": narrow,
        "aten.stack.default": stack,
        "aten.repeat.default": repeat,
        "aten.upsample_nearest1d.vec": upsample_nearest,
        "aten.upsample_nearest2d.vec": upsample_nearest,
        "aten.upsample_nearest1d.default": upsample_nearest,
        "aten.upsample_nearest2d.default": upsample_nearest,
        "aten.concat.default": concatenate,
        "aten.concatenate.default": concatenate,
    }


def _arguments(node: Any) -> dict[str, Any]:
    """All arguments of a node by name, defaults filled in."""
    arguments = {}
    for i, argument in enumerate(node.target._schema.arguments):
        given = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
        arguments[argument.name] = given
    return arguments


def _relu6(node: Any) -> Any:
    from torch.ops import aten

    in_place = node.target is aten.relu6_.default
    return call(node, (aten.hardtanh_ if in_place else aten.hardtanh).default, node.args[0], 0.0, 6.0)


def _arithmetic(node: Any) -> Any:
    replacement = arithmetic(node)
    return repeat_operands(node) if replacement is None else replacement


def _dropout(node: Any) -> Any:
    if _arguments(node)["train"]:
        raise _ActiveDropoutError
    return node.args[0]


def _memory_format(node: Any) -> Any:
    """A change of strides alone: the layout is decided by the lowering. A copy, as in-place operators may follow."""
    from torch.ops import aten

    source = node.args[0]
    if node.kwargs.get("memory_format") is None or node.meta["val"].dtype != source.meta["val"].dtype:
        return None
    clone = call(node, aten.clone.default, source)
    clone.meta["val"] = source.meta["val"].clone()
    return clone


def _named_padding(node: Any) -> Any:
    """`padding="same"` or `"valid"` in numbers; where the two sides differ, the input is padded by an operator."""
    from torch.ops import aten

    a = _arguments(node)
    rank = node.meta["val"].dim() - 2
    stride, dilation, kernel = _each(a["stride"], rank), _each(a["dilation"], rank), a["weight"].meta["val"].shape[2:]
    total = [d * (k - 1) if a["padding"] == "same" else 0 for d, k in zip(dilation, kernel, strict=True)]
    padding, source = [t // 2 for t in total], a["input"]
    if any(t % 2 for t in total):
        ends = [end for t in reversed(total) for end in (t // 2, t - t // 2)]
        source, padding = call(node, aten.pad.default, source, ends), [0] * rank
    target = (aten.conv1d if rank == 1 else aten.conv2d).default
    return call(node, target, source, a["weight"], a["bias"], stride, padding, dilation, a["groups"])


def _max_pool1d(node: Any) -> Any:
    from torch.ops import aten

    a = _arguments(node)
    kernel, padding, dilation = _each(a["kernel_size"], 1), _each(a["padding"], 1), _each(a["dilation"], 1)
    stride = _each(a["stride"], 1) or kernel
    image = call(node, aten.unsqueeze.default, a["self"], _HEIGHT)
    shape = [[1, *kernel], [1, *stride], [0, *padding], [1, *dilation]]
    return call(node, aten.squeeze.dim, call(node, aten.max_pool2d.default, image, *shape, a["ceil_mode"]), _HEIGHT)


def _avg_pool1d(node: Any) -> Any:
    from torch.ops import aten

    a = _arguments(node)
    kernel, padding = _each(a["kernel_size"], 1), _each(a["padding"], 1)
    stride = _each(a["stride"], 1) or kernel
    image = call(node, aten.unsqueeze.default, a["self"], _HEIGHT)
    shape = [[1, *kernel], [1, *stride], [0, *padding]]
    pooled = call(node, aten.avg_pool2d.default, image, *shape, a["ceil_mode"], a["count_include_pad"])
    return call(node, aten.squeeze.dim, pooled, _HEIGHT)


def _adaptive_pool(node: Any) -> Any:
    """A pooling given by its output size, where that divides the input size: windows of one size, side by side."""
    from torch.ops import aten

    maximum = "max" in str(node.target)
    values = [user for user in node.users if "getitem" in str(user.target)] if maximum else [node]
    if maximum and any(user.args[1] != 0 and user.users for user in values):
        return None  # the indices of the maxima are wanted
    source, sizes = node.args[0], node.args[1]
    shape = [int(size) for size in source.meta["val"].shape[-len(sizes) :]]
    if source.meta["val"].dim() != len(sizes) + 2 or any(i % o for i, o in zip(shape, sizes, strict=True)):
        return None
    kernel = [i // o for i, o in zip(shape, sizes, strict=True)]
    if len(sizes) == 1:
        source, kernel = call(values[0], aten.unsqueeze.default, source, _HEIGHT), [1, *kernel]
    if maximum:
        pooled = call(values[0], aten.max_pool2d.default, source, kernel, kernel)
    else:
        pooled = _average(values[0], source, kernel)
    if len(sizes) == 1:
        pooled = call(values[0], aten.squeeze.dim, pooled, _HEIGHT)
    if not maximum:
        return pooled
    for user in values:
        user.replace_all_uses_with(pooled)
    return None  # the old node has no users left, and dies as dead code


def _mean_over_samples(node: Any) -> Any:
    """The mean of a signal (batch, channels, samples) over its samples, as a pooling."""
    from torch.ops import aten

    a = _arguments(node)
    source = a["self"]
    value = source.meta["val"]
    if value.dim() != 3 or [int(d) % 3 for d in a["dim"] or ()] != [2] or a["dtype"] is not None:
        return None
    image = call(node, aten.unsqueeze.default, source, _HEIGHT)
    kernel = [1, int(value.shape[2])]
    pooled = call(node, aten.squeeze.dim, _average(node, image, kernel), _HEIGHT)
    return pooled if a["keepdim"] else call(node, aten.squeeze.dim, pooled, -1)


def _average(node: Any, image: Any, kernel: list[int]) -> Any:
    """Averages over windows side by side. Without padding, `count_include_pad` would only add an empty padding."""
    from torch.ops import aten

    return call(node, aten.avg_pool2d.default, image, kernel, kernel, [0, 0], False, False)


def _each(value: Any, rank: int) -> list[int]:
    """An argument of a convolution or pooling as one number per dimension."""
    numbers = [int(number) for number in value] if isinstance(value, list | tuple) else [int(value)]
    return numbers * rank if len(numbers) == 1 else numbers
