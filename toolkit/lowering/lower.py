"""From a loaded model to a `.pte`: quantise, lower to the Cortex-M operators, serialise.

Nothing is left to a library's default that decides what runs on the board: inputs are contiguous and the layout
explicit, the target is the board's CPU, and the `to_edge` configuration is the one the Cortex-M passes ask for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.errors import LoweringError
from toolkit.lowering.activations import separate
from toolkit.lowering.coverage import Step, check_coverage, obstacles, steps_of
from toolkit.lowering.layout import sink_transposes
from toolkit.lowering.model import Model
from toolkit.lowering.quiet import quiet
from toolkit.lowering.reference import inference_copy
from toolkit.lowering.source import first_lines, installed, shown
from toolkit.lowering.spelling import respell
from toolkit.lowering.standins import hold_int8, settle
from toolkit.lowering.tables import tabulate

if TYPE_CHECKING:
    from executorch.backends.cortex_m.target_config import CortexMTargetConfig


@dataclass(frozen=True, eq=False)
class Lowered:
    """A lowered program and what it was made of.

    Attributes:
        pte: the serialised program.
        cpu: the CPU it was lowered for ("cortex-m33").
        layer_names: one per kernel instruction of the program's chain, the path of the layer in the user's module
            ("features.0.conv"); empty where an instruction belongs to no layer, or to `forward` of the whole model.
        coverage: one per kernel instruction: operator, layer, and where in the user's code it comes from.
        quantized_module: the quantised model in float arithmetic, a `torch.fx.GraphModule`; see `quantized_outputs`.
    """

    pte: bytes
    cpu: str
    layer_names: tuple[str, ...]
    coverage: tuple[Step, ...]
    quantized_module: Any


def lower(model: Model, cpu: str, *, progress: Callable[[str], None] = lambda _: None) -> Lowered:
    """Quantise a model to int8 and lower all of it to Cortex-M operators. The model's module is left as it is.

    Args:
        model: a loaded model.
        cpu: the CPU of the board, as ExecuTorch spells it ("cortex-m0plus", "cortex-m33", "cortex-m55").
        progress: called with a few words before each step that takes seconds.

    Raises:
        LoweringError: torch cannot export the model, a layer has no int8 operator, or the CPU is unknown.
    """
    where = shown(model.source)
    progress("importing ExecuTorch")
    with quiet():
        target = _target(cpu)
    progress("exporting the model")
    with quiet():
        exported = _export(inference_copy(model.module), model.example_inputs, where)
    progress(f"calibrating on {len(model.calibration)} inputs")
    with quiet():
        quantized = _quantize(exported, model, where)
    progress(f"lowering for {cpu}")
    with quiet():
        program = _lower(quantized, model, target, where)
        coverage = steps_of(program)
    check_coverage(coverage, where)
    return Lowered(bytes(program.buffer), cpu, tuple(step.layer for step in coverage), coverage, quantized)


def _target(cpu: str) -> CortexMTargetConfig:
    # The passes come first: importing the operators before them fails on a circular import inside executorch.
    import executorch.backends.cortex_m.passes.cortex_m_pass_manager  # noqa: F401
    from executorch.backends.cortex_m.target_config import CortexMTargetConfig

    try:
        target = CortexMTargetConfig.from_target_string(cpu)
        target.backend  # noqa: B018 - resolves the instruction set now, where the CPU can be named
    except ValueError as error:
        raise LoweringError(f"the CPU {cpu!r} is unknown to the Cortex-M backend", hint=str(error)) from error
    return target


def _export(module: Any, inputs: tuple[Any, ...], where: str) -> Any:
    import torch

    try:
        return torch.export.export(module, inputs, strict=True)
    except Exception as error:
        raise _export_error(error, where) from error


def _quantize(exported: Any, model: Model, where: str) -> Any:
    """The program with observers put in, run on the calibration data, and converted to quantise/dequantise pairs."""
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    try:
        module = respell(exported.module(check_guards=False), where)
        prepared = prepare_pt2e(module, CortexMQuantizer(use_explicit_layout=True))
        for number, sample in enumerate(model.calibration):
            _observe(prepared, sample, number, where)
        return convert_pt2e(prepared)
    except LoweringError:
        raise
    except Exception as error:
        raise _step_error("quantising the model failed", error, where) from error


def _observe(prepared: Any, sample: tuple[Any, ...], number: int, where: str) -> None:
    """Run the observed program on one calibration input."""
    import torch
    from torch.utils import _pytree

    try:
        with torch.no_grad():
            outputs = prepared(*(tensor.clone() for tensor in sample))  # in-place layers write into their inputs
        finite = all(bool(torch.isfinite(output).all()) for output in _pytree.tree_leaves(outputs))
    except RuntimeError as error:
        if "not finite" not in str(error):  # what an observer says of the range it has seen
            raise
        finite = False
    if not finite:
        raise LoweringError(
            f"the model computes NaN or infinity for calibration input {number}",
            where=where,
            hint="Look for logarithms and roots of negative numbers, and divisions by zero.",
        )


def _lower(quantized: Any, model: Model, target: CortexMTargetConfig, where: str) -> Any:
    """The quantised program as an `ExecutorchProgramManager`."""
    import torch
    from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
    from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
    from executorch.exir import EdgeProgramManager, to_edge

    try:
        exported = torch.export.export(quantized, model.example_inputs, strict=True)
        edge = to_edge(exported, compile_config=cortex_m_edge_compile_config())
        program = hold_int8(tabulate(separate(edge.exported_program())))
    except Exception as error:
        raise _step_error("lowering the quantised model failed", error, where) from error
    left = obstacles(program)
    try:
        passes = CortexMPassManager(program, target_config=target, use_explicit_layout=True)
        program = sink_transposes(settle(passes.transform()))
        return EdgeProgramManager(program, compile_config=cortex_m_edge_compile_config()).to_executorch()
    except Exception as error:
        # The passes stop at the first such layer without naming it.
        check_coverage(left, where)
        raise _step_error("lowering to Cortex-M operators failed", error, where) from error


_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in .*\n\s*(?P<code>.*)')


def _export_error(error: BaseException, where: str) -> LoweringError:
    """What torch's exporter says, cut down to its reason and the line of the user's code."""
    text = str(error)
    reason = first_lines(re.split(r"\n\s*(?:Explanation|from user code|Developer debug)", text)[0])
    explanation = re.search(r"Explanation: (.*)", text)
    if explanation:
        reason = f"{reason}: {explanation[1].strip()}"
    place, code = _user_line(text, where)
    return LoweringError(
        f"torch cannot export the model: {reason or type(error).__name__}",
        where=place,
        hint=f"{code}\n  The shapes and the path through forward() must not depend on the data.".strip(),
    )


def _step_error(what: str, error: BaseException, where: str) -> LoweringError:
    """A step that failed inside the libraries: the innermost cause, and the user's line where it is known."""
    text = str(error)
    while error.__cause__ is not None:
        error = error.__cause__
    place, code = _user_line(f"{text}\n{error}", where)
    return LoweringError(f"{what}: {first_lines(str(error)) or type(error).__name__}", where=place, hint=code)


def _user_line(text: str, where: str) -> tuple[str, str]:
    """The last line of user code that a message of torch's quotes, and where it is."""
    frames = [match for match in _FRAME.finditer(text) if not installed(match["file"])]
    if not frames:
        return where, ""
    return f"{shown(frames[-1]['file'])}:{frames[-1]['line']}", frames[-1]["code"].strip()
