"""The main job."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console

from toolkit.board import load_board
from toolkit.building import Image
from toolkit.cli import job
from toolkit.cli.progress import Stages
from toolkit.cli.report import make_report, print_report, save_report
from toolkit.cli.settings import chosen_board, chosen_model
from toolkit.cli.steps import project_folder
from toolkit.device import Device, Transport
from toolkit.errors import ModelError, UsageError, VerificationError
from toolkit.flashing import flash
from toolkit.planning import Plan
from toolkit.reference import Reference
from toolkit.rendering.names import operator_title
from toolkit.verification import Verdict, by_instruction, checked_sample, fetch_layers, verify
from toolkit.verification.layout import to_memory


def deploy(
    model: str | None,
    board: str | None,
    input_file: Path | None,
    output: Path | None,
    layers: bool,
    as_json: bool,
    out: Path | None,
    random_calibration: int | None,
    sanitize: bool,
) -> int:
    """The whole way; the exit status."""
    chosen = load_board(chosen_board(board))
    _check_words(output, sanitize, chosen.toolchain)
    stages = Stages(Console(stderr=True))
    lowered = job.lower(
        chosen_model(model), chosen, stages, random_calibration=random_calibration, evaluate=input_file is None
    )
    program = job.read(lowered, stages)
    planned = job.plan(lowered, program, chosen, stages)
    samples = job.load_inputs(input_file, program) if input_file else lowered.samples
    if not samples:
        raise UsageError(
            "there is nothing to verify: a .pte brings no inputs of its own",
            where=lowered.source,
            hint="Add --input FILE.npy, or build it without running: deploy build.",
        )
    if input_file:
        lowered = _without_labels(lowered)
    project = project_folder(out, lowered.name, chosen)
    job.render_project(planned, project, stages)
    image = job.build_image(project, chosen, stages, sanitize=sanitize)
    verdict, fetched = _on_the_board(image, planned, samples, stages, layers)
    report = make_report(lowered, planned, chosen, image, verdict, stages.seconds)
    save_report(report, image.elf.parent)
    if output:
        _save(output, verdict, fetched)
    if as_json:
        print(json.dumps(report.data))
    else:
        print_report(report, Console())
    if verdict.difference is not None:
        raise _failure(verdict, planned)
    return 0


def _check_words(output: Path | None, sanitize: bool, toolchain: str) -> None:
    if output and output.suffix != ".npz":
        raise UsageError(f"--output writes .npz, not {output.suffix or 'a file without an ending'}", where=str(output))
    if output and not output.parent.is_dir():
        raise UsageError("there is no such folder", where=str(output.parent))
    if sanitize and toolchain != "host":
        raise UsageError("sanitizers need an operating system", hint="Use --board host with --sanitize.")


def _without_labels(lowered: job.Lowered) -> job.Lowered:
    return job.Lowered(lowered.name, lowered.source, lowered.pte, lowered.layer_names)


def _on_the_board(
    image: Image, planned: Plan, samples: Sequence[job.Sample], stages: Stages, layers: bool
) -> tuple[Verdict, dict[int, npt.NDArray[Any]]]:
    """Flash and verify; the verdict, and every instruction's result for the first sample when asked for."""
    with contextlib.ExitStack() as stack:
        with stages.stage("flash") as stage:
            running = stack.enter_context(flash(image, planned.board))
            transport = stack.enter_context(Transport(running.port))
            device = Device(transport, stopped=running.stopped)
            stage.detail = f"{device.hello.model} on {device.hello.board}, port {running.port}"
        with stages.stage("verify") as stage:
            total = len(samples)
            fetched = _compare_layers(device, planned, samples[0]) if layers else {}
            verdict = verify(device, planned, samples, progress=lambda done: stage.doing(f"sample {done} of {total}"))
            stage.detail = f"{verdict.samples} samples, {verdict.bytes_compared:,} bytes"
    return verdict, fetched


def _compare_layers(device: Device, planned: Plan, sample: job.Sample) -> dict[int, npt.NDArray[Any]]:
    """Every instruction's result on the device; raises VerificationError when one differs from the reference."""
    inputs = checked_sample(sample, planned, 0)
    expected = Reference(planned.program).run(inputs)
    results = fetch_layers(device, planned, inputs)
    for position, (step, layer) in enumerate(zip(planned.steps, results, strict=True)):
        id = step.operator.output
        right = to_memory(expected.tensors[id], planned.tensor(id)).view(np.uint8).reshape(-1)
        if not np.array_equal(right, layer):
            count = int((right != layer).sum())
            raise VerificationError(f"{count} bytes of the result differ", where=_layer_title(planned, position))
    return by_instruction(results, planned, inputs)


def _layer_title(planned: Plan, position: int) -> str:
    step = planned.steps[position]
    name = f' "{step.layer}"' if step.layer else ""
    return f"layer {position:02d} ({operator_title(step.operator)}{name}, {step.kernel.function})"


def _save(path: Path, verdict: Verdict, fetched: dict[int, npt.NDArray[Any]]) -> None:
    """Outputs as `output0`, … (several samples: stacked), results of instructions as `00`, `01`, …"""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for index in range(len(verdict.device[0])):
        answers = [outputs[index] for outputs in verdict.device]
        arrays[f"output{index}"] = answers[0] if len(answers) == 1 else np.stack(answers)
    arrays |= {f"{index:02d}": array for index, array in fetched.items()}
    part = path.with_name(f".{path.name}.part.npz")
    try:
        np.savez(part, **arrays)
        part.replace(path)
    except OSError as error:
        raise ModelError(f"the output cannot be written: {error.strerror}", where=str(path)) from None


def _failure(verdict: Verdict, planned: Plan) -> VerificationError:
    difference = verdict.difference
    assert difference is not None
    element = ", ".join(map(str, difference.element))
    if difference.layer is None:
        hint = "Run alone, every layer gives the right result: the runs disturb each other. Please report this."
    else:
        hint = f"The first layer whose result differs is {_layer_title(planned, difference.layer)}."
    return VerificationError(
        f"the device answers {difference.got!r} where {difference.expected!r} is right "
        f"(sample {difference.sample}, output {difference.output}, element [{element}]; "
        f"largest difference {verdict.max_abs_diff_lsb} LSB)",
        where=f"{planned.model} on {planned.board.name}",
        hint=hint,
    )
