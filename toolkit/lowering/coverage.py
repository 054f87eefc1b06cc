"""Which operator each instruction of a lowered program is, which layer it came from, and what could not be lowered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.errors import LoweringError
from toolkit.lowering.source import installed, shown
from toolkit.lowering.standins import FUSED, QUANTIZE, operator_of
from toolkit.program.signatures import PORTABLE_INT8, SIGNATURES

_WHY = (
    "The firmware computes in int8 and has no kernels for these operators. Change the layers above, or leave them out "
    "of the model and do their work in the application."
)


@dataclass(frozen=True)
class Step:
    """One kernel instruction, or one that should have become one.

    Attributes:
        operator: the operator's name, `namespace::name`.
        layer: path of the layer in the user's module, empty for `forward` of the whole model and for what the lowering
            put in.
        kind: class of the layer ("LayerNorm"), empty where the layer is.
        line: file and line of the user's code, empty where unknown.
        code: what stands there.
        lowered: it runs on the device.
        hint: why it was not lowered, or what to write instead.
    """

    operator: str
    layer: str
    kind: str
    line: str
    code: str
    lowered: bool
    hint: str = ""


_VIEW = Step("executorch_prim::et_view", "", "", "", "", True)
"""The one instruction that the emitter makes of a node which calls no operator."""


def steps_of(program: Any) -> tuple[Step, ...]:
    """The kernel instructions of an `ExecutorchProgramManager`, in the order of the serialised chain."""
    plan = program.executorch_program.execution_plan[0]
    calls = [
        plan.operators[instruction.instr_args.op_index].name
        for instruction in plan.chains[0].instructions
        if hasattr(instruction.instr_args, "op_index")
    ]
    nodes = iter([node for node in program.exported_program().graph.nodes if operator_of(node) in set(calls)])
    return tuple(_VIEW if call == _VIEW.operator else _step(next(nodes)) for call in calls)


def check_coverage(steps: Sequence[Step], where: str) -> None:
    """Refuse a program of which something would stay in float.

    Raises:
        LoweringError: names each layer with its operators, its line and what to do about it.
    """
    left: dict[tuple[str, str, str], list[Step]] = {}
    for step in steps:
        if not step.lowered:
            left.setdefault((step.layer, step.kind, "" if step.layer else step.line), []).append(step)
    if not left:
        return
    lines = []
    for (layer, kind, _), group in left.items():
        operators = Counter(step.operator.rpartition("::")[2] for step in group)
        names = ", ".join(name if n == 1 else f"{name} ({n} times)" for name, n in operators.most_common(4))
        names += f" and {len(operators) - 4} more" if len(operators) > 4 else ""
        title = f"{layer} ({kind})" if layer else "in forward()"
        lines.append(f"    {title}: {names}" + (f", at {group[0].line}: {group[0].code}" if group[0].line else ""))
        lines.extend(f"        {hint}" for hint in dict.fromkeys(step.hint for step in group if step.hint))
    number = "one part of the model" if len(left) == 1 else f"{len(left)} parts of the model"
    raise LoweringError(
        "\n".join([f"{number} cannot be lowered to int8 Cortex-M operators:", *lines]), where=where, hint=_WHY
    )


def obstacles(edge: Any) -> tuple[Step, ...]:
    """What in an edge program, before the Cortex-M passes, was not quantised or has no Cortex-M operator to become."""
    return tuple(_step(node, hint) for node, hint in _obstacles(edge.graph))


def _obstacles(graph: Any) -> Iterator[tuple[Any, str]]:
    for node in graph.nodes:
        name = operator_of(node)
        if not name.startswith("aten::"):
            continue
        reason = ""
        if name == "aten::convolution":
            reason = _convolution_obstacle(node)
        elif name == "aten::avg_pool2d":
            reason = "divisor_override is not supported." if len(node.args) > 6 and node.args[6] is not None else ""
        elif name in ("aten::max_pool2d", "aten::max_pool2d_with_indices"):
            reason = _max_pool_obstacle(node)
        if reason or name in _NEVER or not _ends_quantized(node):
            yield node, reason or _hint(name, _layer(node)[1])


_NEVER = (
    *("aten::_adaptive_avg_pool2d", "aten::adaptive_max_pool2d", "aten::native_layer_norm", "aten::_log_softmax"),
    *("aten::upsample_nearest2d", "aten::upsample_bilinear2d"),
)
"""Some of what no pass lowers although its result is quantised, so that an early stop names them too."""


def _ends_quantized(node: Any) -> bool:
    """The result is quantised, at once or behind the activation that is computed with it."""
    users = list(node.users)
    if any(operator_of(user) == QUANTIZE for user in users):
        return True
    return any(operator_of(user) in FUSED or "getitem" in str(user.target) for user in users) and any(
        _ends_quantized(user) for user in users
    )


def _convolution_obstacle(node: Any) -> str:
    _, _, _, _, _, dilation, transposed, output_padding, groups = node.args
    rank = node.meta["val"].dim()
    if rank != 4 and not (rank == 3 and not transposed):
        return f"Only {'two' if transposed else 'one- and two'}-dimensional convolutions are supported."
    if transposed and groups != 1:
        return "A transposed convolution cannot have groups."
    if transposed and any(output_padding):
        return "A transposed convolution cannot have output_padding; choose kernel and padding that do without."
    if transposed and any(d != 1 for d in dilation):
        return "A transposed convolution cannot be dilated."
    return ""


def _max_pool_obstacle(node: Any) -> str:
    if len(node.args) > 5 and node.args[5]:
        return "ceil_mode is not supported: pad the input instead."
    if len(node.args) > 4 and any(d != 1 for d in node.args[4]):
        return "A dilated pooling is not supported."
    users = [user.args[1] for user in node.users if "getitem" in str(user.target)]
    return "The indices of a max pooling are not available." if any(users) else ""


def _step(node: Any, obstacle: str = "") -> Step:
    operator = operator_of(node)
    lowered = _runs(node, operator) and not obstacle
    layer, kind = _layer(node)
    hint = "" if lowered else obstacle or _hint(operator, kind)
    return Step(operator, layer, kind, *line_of(node), lowered, hint)


def _runs(node: Any, operator: str) -> bool:
    """The later rooms know the operator, and in the type it is used with here."""
    import torch

    if operator not in SIGNATURES:
        return False
    if operator in PORTABLE_INT8 and operator != "aten::clamp":
        return bool(node.meta["val"].dtype == torch.int8)
    if operator == "dim_order_ops::_to_dim_order_copy":
        return bool(node.meta["val"].dtype == node.args[0].meta["val"].dtype)
    return True


def _layer(node: Any) -> tuple[str, str]:
    """Path and class of the innermost module of the user's that a node was traced in."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path, kind = stack[-1] if stack else ("", "")
    kind = kind if isinstance(kind, str) else kind.__name__
    return (path, kind.rpartition(".")[2]) if path else ("", "")


def line_of(node: Any) -> tuple[str, str]:
    """The line of the user's code a node was traced from, and what stands there; empty where unknown."""
    frames = re.findall(r'File "([^"]+)", line (\d+), in .*\n\s*(.*)', node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if not installed(frame[0])]
    return (f"{shown(own[-1][0])}:{own[-1][1]}", own[-1][2].strip()) if own else ("", "")


def _hint(operator: str, kind: str) -> str:
    for pattern, text in _HINTS:
        if re.search(pattern, f"{operator} {kind}"):
            return text
    return (
        "What does lower: convolutions, linear layers, BatchNorm, average and max pooling, softmax, sums and products, "
        "slices and concatenations, and any function of the single elements of one tensor."
    )


_HINTS = (
    (r" (LSTM|GRU|RNN)(Cell)?$", "Recurrent layers stay in float. Use Conv1d layers over a window of samples instead."),
    (r" (Multihead|Transformer)|scaled_dot_product", "Attention stays in float."),
    (r"layer_norm|group_norm|instance_norm", "Use BatchNorm: its numbers are constants when the model runs."),
    (r"::convolution\b", "A convolution must have a batch dimension and constant weights."),
    (r"::_?log_softmax\b", "Leave it out: the largest output is the same without it."),
    (r"::_?softmax\b", "Softmax lowers over the last dimension only. Often the application does not need it."),
    (r"::argmax\b", "Return the outputs and take their argmax in the application."),
    (r"adaptive_(avg|max)_pool", "The output size must divide the input size."),
    (r"::mean\b", "Only the mean over all of height and width, or over the samples of a signal, lowers."),
    (r"::copy_", "A model that keeps state between calls is not supported: make the state an input and an output."),
    (r"upsample", "Upsampling lowers where it repeats samples (nearest) a whole number of times."),
    (r"::(index\w*|gather|scatter\w*)\b", "Indices that are computed are not supported; slices are."),
)
