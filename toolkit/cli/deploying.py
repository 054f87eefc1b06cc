"""The main job."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console

from toolkit.board import Board, load_board
from toolkit.building import Image, with_core_limits
from toolkit.cli import interpreting, job
from toolkit.cli.progress import Stages
from toolkit.cli.report import Layers, make_report, print_report, save_report
from toolkit.cli.settings import chosen_board, chosen_model
from toolkit.cli.steps import project_folder
from toolkit.device import Device, Transport
from toolkit.errors import ModelError, UsageError, VerificationError
from toolkit.flashing import Wanted, flash
from toolkit.interpreter import ENGINE, verifiable
from toolkit.planning import OUR_KERNELS, Plan
from toolkit.reference import Reference
from toolkit.rendering.names import operator_title
from toolkit.verification import Verdict, by_instruction, checked_sample, fetch_layers, first_wrong_layer, verify


@dataclass(frozen=True, slots=True)
class Words:
    """The main job's words, as the command line names them."""

    model: str | None
    board: str | None
    input_file: Path | None
    output: Path | None
    layers: bool
    as_json: bool
    virtual: bool
    port: str | None
    serial_number: str | None
    place: str
    kernels: str
    cmsis_nn: str | None
    engine: str
    executorch: Path | None
    out: Path | None
    random_calibration: int | None
    sanitize: bool
    misbehave: tuple[str, ...]


def deploy(words: Words) -> int:
    """The whole way; the exit status."""
    chosen = load_board(chosen_board(words.board))
    chosen = chosen.virtual() if words.virtual else with_core_limits(chosen)
    _check_words(words, chosen)
    stages = Stages(Console(stderr=True))
    interpreted = words.engine == ENGINE
    library = OUR_KERNELS if interpreted else job.kernel_library(words.kernels, words.cmsis_nn, chosen, stages)
    lowered = job.lower(
        chosen_model(words.model),
        chosen,
        stages,
        random_calibration=words.random_calibration,
        evaluate=words.input_file is None,
    )
    program = job.read(lowered, stages)
    setup = interpreting.plan(lowered, chosen, stages, words.executorch, program=program) if interpreted else None
    planned = verifiable(setup, program) if setup else job.plan(lowered, program, chosen, stages, words.place, library)
    samples = job.load_inputs(words.input_file, program) if words.input_file else lowered.samples
    if not samples:
        raise UsageError(
            "there is nothing to verify: a .pte brings no inputs of its own",
            where=lowered.source,
            hint="Add --input FILE.npy, or build it without running: deploy build.",
        )
    samples = tuple(checked_sample(sample, planned, number) for number, sample in enumerate(samples))
    if words.input_file:
        lowered = _without_labels(lowered)
    if setup:
        project = interpreting.project_folder(words.out, lowered.name, chosen)
        interpreting.render(setup, project, stages, lowered.class_names)
    else:
        project = project_folder(words.out, lowered.name, chosen)
        job.render_project(planned, project, stages, lowered.class_names)
    image = job.build_image(project, chosen, stages, sanitize=words.sanitize, executorch=words.executorch)
    verdict, layers = _on_the_board(image, planned, samples, stages, words)
    report = make_report(lowered, planned, image, verdict, layers, stages.seconds)
    save_report(report, image.elf.parent)
    if words.output:
        _save(words.output, verdict, layers.results if layers else {})
    if words.as_json:
        print(json.dumps(report.data))
    else:
        print_report(report, Console())
    _raise_on_difference(verdict, layers, planned)
    return 0


def _check_words(words: Words, board: Board) -> None:
    interpreting.check_words(
        words.engine,
        words.executorch,
        place=words.place,
        kernels=words.kernels,
        cmsis_nn=words.cmsis_nn,
        layers=words.layers,
    )
    job.check_place(words.place, board)
    output = words.output
    if output and output.suffix != ".npz":
        raise UsageError(f"--output writes .npz, not {output.suffix or 'a file without an ending'}", where=str(output))
    if output and not output.parent.is_dir():
        raise UsageError("there is no such folder", where=str(output.parent))
    if words.sanitize and board.toolchain != "host":
        raise UsageError("sanitizers need an operating system", hint="Use --board host with --sanitize.")
    if board.emulator is not None and (words.port or words.serial_number):
        raise UsageError(f"{board.name} is a virtual board: --port and --serial-number name real ones")
    if words.misbehave and (board.emulator is None or board.emulator.kind != "rp2350"):
        raise UsageError("only virtual twins misbehave on request", hint="Add --virtual, with a board that has one.")


def _without_labels(lowered: job.Lowered) -> job.Lowered:
    return job.Lowered(lowered.name, lowered.source, lowered.pte, lowered.layer_names, class_names=lowered.class_names)


def _on_the_board(
    image: Image, planned: Plan, samples: Sequence[job.Sample], stages: Stages, words: Words
) -> tuple[Verdict, Layers | None]:
    """Flash and verify; the verdict, and what the layers gave for the first sample when asked for."""
    with contextlib.ExitStack() as stack:
        with stages.stage("flash") as stage:
            wanted = Wanted(words.port, words.serial_number)
            running = stack.enter_context(
                flash(image, planned.board, wanted=wanted, misbehave=words.misbehave, say=stage.say)
            )
            transport = stack.enter_context(Transport(running.port))
            device = Device(transport, stopped=running.stopped)
            stage.detail = f"{device.hello.model} on {device.hello.board}, port {running.port}"
        with stages.stage("verify") as stage:
            total = len(samples)
            layers = _run_layers(device, planned, samples[0]) if words.layers else None
            verdict = verify(device, planned, samples, progress=lambda done: stage.doing(f"sample {done} of {total}"))
            stage.detail = f"{verdict.samples} samples, {verdict.bytes_compared:,} bytes"
    return verdict, layers


def _run_layers(device: Device, planned: Plan, inputs: job.Sample) -> Layers:
    """Every layer by itself, compared with the reference."""
    runs = fetch_layers(device, planned, inputs)
    wrong = first_wrong_layer(runs, planned, Reference(planned.program).run(inputs))
    return Layers(tuple(run.ticks for run in runs), by_instruction(runs, planned, inputs), wrong)


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


def _raise_on_difference(verdict: Verdict, layers: Layers | None, planned: Plan) -> None:
    """Raise a VerificationError that names the first difference, when there is one."""
    where = f"{planned.model} on {planned.board.name}"
    difference = verdict.difference
    if difference is None:
        if layers is not None and layers.wrong is not None:
            raise VerificationError(
                f"the result of {_layer_title(planned, layers.wrong)} differs, although the outputs are right",
                where=where,
            )
        return
    element = ", ".join(map(str, difference.element))
    if not planned.steps:
        hint = f"The default engine finds the first wrong layer: leave out --engine {ENGINE}."
    elif difference.layer is None:
        hint = "Run alone, every layer gives the right result: the runs disturb each other. Please report this."
    else:
        hint = f"The first layer whose result differs is {_layer_title(planned, difference.layer)}."
    raise VerificationError(
        f"the device answers {difference.got!r} where {difference.expected!r} is right "
        f"(sample {difference.sample}, output {difference.output}, element [{element}]; "
        f"largest difference {verdict.max_abs_diff_lsb} LSB)",
        where=where,
        hint=hint,
    )
