"""Names that come from a user's model, made safe for C."""

from __future__ import annotations

import re

from toolkit.planning.types import Plan
from toolkit.program.types import Dequantize, Operator, Quantize

DATA_PREFIX = "model_data_"
"""Every constant's symbol begins with it: sizes by part are read off the symbol table."""

ARENA_SYMBOL = "model_arena"
"""The arena's symbol, in C++ with whatever the compiler puts around it."""

HEAP_SECTION = ".heap"
"""Where an SDK sets memory aside for a heap that a runner does not use."""

STACK_SECTION = ".stack"
STACK_SYMBOL = "runner_stack"
"""What sets memory aside for the stack: sections of the linker script, or an array where there is none."""


def safe_text(name: str) -> str:
    """A name that may stand in a C comment, string or macro: letters, digits, `_`, `.` and `-`; never empty."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:80] or "model"


def constant_symbols(plan: Plan) -> dict[int, str]:
    """C symbol of every constant; constants with equal bytes share one."""
    symbols: dict[int, str] = {}
    by_content: dict[tuple[str, bytes], str] = {}
    for position, step in enumerate(plan.steps):
        for operand, id in step.reads:
            if id in symbols or plan.tensor(id).constant is None:
                continue
            tensor = plan.tensor(id)
            content = (tensor.dtype.value, tensor.constant or b"")
            symbols[id] = by_content.setdefault(content, f"{DATA_PREFIX}{position:02d}_{operand}")
    return symbols


def operator_title(op: Operator) -> str:
    """Operator and what distinguishes it, as a person says it: `DepthwiseConv2d 3x3 stride 2`."""
    words = [type(op).__name__]
    if kernel := getattr(op, "kernel", None):
        words.append(f"{kernel[0]}x{kernel[1]}")
    stride = getattr(op, "stride", (1, 1))
    if stride != (1, 1):
        words.append(f"stride {stride[0]}" if stride[0] == stride[1] else f"stride {stride[0]}x{stride[1]}")
    return " ".join(words)


def quantisation_title(op: Operator) -> str:
    """How an operator reads and gives numbers: scales and zero points, empty where it does not change them."""
    if isinstance(op, Quantize | Dequantize):
        return f"scale {op.scale:.9g}, zero point {op.zero_point}"
    words = []
    for name, sign in (("input_offset", -1), ("input_zero_point", 1), ("other_zero_point", 1)):
        if (value := getattr(op, name, None)) is not None:
            words.append(f"{name.split('_')[0]} zero point {sign * value}")
    for name in ("output_offset", "output_zero_point"):
        if (value := getattr(op, name, None)) is not None:
            words.append(f"output zero point {value}")
    if (low := getattr(op, "activation_min", None)) is not None:
        high = getattr(op, "activation_max", None)
        words.append(f"clamped to {low}..{high}")
    return ", ".join(words)
