"""The way of the data, stage by stage: lower, read, plan, render, build, flash, verify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.board import Board
from toolkit.building import Image, build, find_cmsis_nn, require_cmsis_nn
from toolkit.cli.progress import Stages
from toolkit.errors import ModelError, UsageError
from toolkit.interpreter import build_interpreter, is_interpreted
from toolkit.planning import OUR_KERNELS, KernelLibrary, Place, Plan, make_plan
from toolkit.program import Program, read_program
from toolkit.rendering import render
from toolkit.rendering.face import Numbers
from toolkit.rendering.sketch import Form, Rendered, render_sketch

Sample = tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A program on its way, and what is known of the model it came from.

    Attributes:
        name: of the model.
        source: the file or module it was read from.
        pte: the program's bytes.
        layer_names: of the user's layers, by instruction; empty for a `.pte`.
        samples: what is verified; empty for a `.pte`.
        labels: class per sample, None when there are none.
        float_outputs: first output of the float model per sample; None for a `.pte`.
        class_names: in the order of the outputs; empty where unknown.
    """

    name: str
    source: str
    pte: bytes
    layer_names: tuple[str, ...] = ()
    samples: tuple[Sample, ...] = ()
    labels: npt.NDArray[Any] | None = None
    float_outputs: tuple[npt.NDArray[Any], ...] | None = None
    class_names: tuple[str, ...] = ()


def lower(spec: str, board: Board, stages: Stages, *, random_calibration: int | None, evaluate: bool) -> Lowered:
    """The `.pte` of a model; a model that is one already is taken as it is, without importing torch.

    Args:
        evaluate: also run the float model on the samples that will be verified.
    """
    if spec.endswith(".pte"):
        path = Path(spec)
        try:
            return Lowered(path.stem, spec, path.read_bytes())
        except OSError as error:
            raise ModelError(
                f"the program cannot be read: {error.strerror}", where=spec, hint="Check the path."
            ) from None
    with stages.stage("lower") as stage:
        stage.doing("importing torch and executorch")
        from toolkit import lowering  # takes seconds: only who lowers pays for it

        model = lowering.load_model(spec, random_calibration=random_calibration, warn=stages.warn)
        lowered = lowering.lower(model, board.cpu, progress=stage.doing)
        outputs = None
        if evaluate:
            stage.doing("running the float model")
            outputs = tuple(answers[0] for answers in lowering.float_outputs(model, model.evaluation))
        stage.detail = f"{len(lowered.layer_names)} operators, {len(lowered.pte):,} bytes, for {board.cpu}"
    return Lowered(
        name=model.name,
        source=str(model.source),
        pte=lowered.pte,
        layer_names=lowered.layer_names,
        samples=tuple(model.evaluation),
        labels=model.labels,
        float_outputs=outputs,
        class_names=model.class_names or (),
    )


def read(lowered: Lowered, stages: Stages) -> Program:
    with stages.stage("read") as stage:
        program = read_program(lowered.pte, source=lowered.source)
        stage.detail = f"{len(program.operators)} operators, {program.macs:,} multiply-accumulates"
    return program


def kernel_library(kernels: str, named: str | None, board: Board, stages: Stages) -> KernelLibrary:
    """What computes the layers.

    Args:
        kernels: `deploy`, `cmsis-nn`, or `auto` for Arm's library where a copy is named.
        named: folder of Arm's library, None for that of CMSIS_NN_PATH.

    Raises:
        ToolError: the copy is missing or not usable.
        UsageError: the words contradict each other.
    """
    if board.arduino is not None:
        if kernels == "cmsis-nn" or named is not None:
            raise UsageError(f"sketches for {board.name} bring our kernels along", hint="Use --kernels deploy.")
        return OUR_KERNELS
    if kernels == "deploy":
        if named is not None:
            raise UsageError("--cmsis-nn names a library that --kernels deploy does not use", hint="Leave one out.")
        return OUR_KERNELS
    found = require_cmsis_nn(named) if kernels == "cmsis-nn" else find_cmsis_nn(named)
    if found is None:
        return OUR_KERNELS
    if found.warning:
        stages.warn(found.warning)
    return KernelLibrary(found.title, found.path)


def check_place(place: str, board: Board) -> None:
    """Raise a UsageError where kernels and constants cannot be brought to RAM on request."""
    if board.arduino is not None and Place(place) is Place.RAM:
        raise UsageError(
            "in a sketch, kernels and weights stay in flash: whether code may run from RAM differs from core to core, "
            "and Mbed OS forbids it",
            where=board.name,
            hint="Leave out --place ram. A Raspberry Pi Pico 2 can have them in RAM without Arduino: --board pico2.",
        )


def plan(
    lowered: Lowered,
    program: Program,
    board: Board,
    stages: Stages,
    place: str = "auto",
    library: KernelLibrary = OUR_KERNELS,
) -> Plan:
    with stages.stage("plan") as stage:
        planned = make_plan(
            program,
            board,
            model=lowered.name,
            layer_names=lowered.layer_names,
            place=Place(place),
            library=library,
        )
        stage.detail = (
            f"{len(planned.steps)} steps, {planned.constant_bytes:,} bytes of constants, {planned.arena:,} of arena"
        )
        if board.sizes_from:
            stage.detail += f"; sizes of {board.sizes_from}"
    return planned


def render_project(planned: Plan, folder: Path, stages: Stages, class_names: Sequence[str] = ()) -> None:
    if planned.board.arduino is not None:
        render_arduino(planned, folder, stages, class_names=class_names)
        return
    with stages.stage("render") as stage:
        render(planned, folder)
        stage.detail = str(folder)


def render_arduino(
    planned: Plan,
    folder: Path,
    stages: Stages,
    *,
    form: Form = Form.SKETCH,
    class_names: Sequence[str] = (),
    numbers: Numbers = Numbers.PROGRAM,
) -> Rendered:
    with stages.stage("render") as stage:
        rendered = render_sketch(planned, folder, form=form, labels=class_names, numbers=numbers)
        stage.detail = rendered_detail(rendered)
    return rendered


def rendered_detail(rendered: Rendered) -> str:
    """Where a sketch was written, and whether the user's own was kept."""
    kept = f", your {rendered.sketch.name} kept" if rendered.kept else ""
    return f"{rendered.folder}{kept}"


def build_image(
    project: Path,
    board: Board,
    stages: Stages,
    *,
    sanitize: bool = False,
    cmsis_nn: str | None = None,
    executorch: Path | None = None,
) -> Image:
    with stages.stage("build") as stage:
        if is_interpreted(project):
            image = build_interpreter(project, board, executorch=executorch, sanitize=sanitize, progress=stage.doing)
        else:
            image = build(project, board, sanitize=sanitize, cmsis_nn=cmsis_nn, progress=stage.doing)
        stage.detail = f"{image.flash.total:,} bytes of flash"
    return image


def load_inputs(path: Path, program: Program) -> tuple[Sample, ...]:
    """Samples from a `.npy` (the only input) or `.npz` (one array per input: by name in sorted order).

    An array with one axis more than the input holds several samples.

    Raises:
        ModelError: the file cannot be read, or its arrays do not fit.
    """
    arrays = load_arrays(path)
    tensors = [program.tensors[id] for id in program.inputs]
    if len(arrays) != len(tensors):
        raise ModelError(f"the file holds {len(arrays)} arrays; the model takes {len(tensors)} inputs", where=str(path))
    stacked = all(array.ndim == len(tensor.shape) + 1 for array, tensor in zip(arrays, tensors, strict=True))
    if not stacked:
        return (tuple(arrays),)
    counts = {len(array) for array in arrays}
    if len(counts) != 1:
        raise ModelError(f"the arrays hold different numbers of samples: {sorted(counts)}", where=str(path))
    return tuple(zip(*arrays, strict=True))


def load_arrays(path: Path) -> Sequence[npt.NDArray[Any]]:
    """Arrays of a `.npy` or `.npz`, by name in sorted order; raises ModelError when it cannot be read."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return [loaded]
        with loaded:
            return [loaded[name] for name in sorted(loaded.files)]
    except (OSError, ValueError, EOFError) as error:
        raise ModelError(
            f"the input cannot be read: {error}", where=str(path), hint="Save it with numpy.save or numpy.savez."
        ) from None
