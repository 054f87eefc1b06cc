"""The steps of the way as commands of their own."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from toolkit import building, flashing
from toolkit.board import Board, load_board
from toolkit.cli import interpreting, job
from toolkit.cli.progress import Stages
from toolkit.cli.settings import chosen_board, chosen_model
from toolkit.device import Device, DeviceTensor, Transport
from toolkit.errors import BuildError, DeployError, ModelError, UsageError
from toolkit.interpreter import ENGINE
from toolkit.planning import KernelLibrary
from toolkit.rendering import MANIFEST
from toolkit.rendering.names import safe_text


def project_folder(out: Path | None, model: str, board: Board) -> Path:
    """Where the project of a model goes when `--out` does not say it."""
    return (out or Path("build") / f"{safe_text(model)}-{board.name}").resolve()


def export(model: str | None, board: str | None, output: Path | None, random_calibration: int | None) -> None:
    stages = Stages(Console(stderr=True))
    chosen = load_board(chosen_board(board))
    spec = chosen_model(model)
    if spec.endswith(".pte"):
        raise ModelError("this program is lowered already", where=spec)
    lowered = job.lower(spec, chosen, stages, random_calibration=random_calibration, evaluate=False)
    job.read(lowered, stages)  # a program that cannot be deployed is not worth a file
    path = output or Path(f"{safe_text(lowered.name)}.pte")
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(lowered.pte)
        part.replace(path)
    except OSError as error:
        raise ModelError(f"the program cannot be written: {error.strerror}", where=str(path)) from None
    print(path)


def render(
    model: str | None,
    board: str | None,
    out: Path | None,
    random_calibration: int | None,
    place: str,
    kernels: str,
    cmsis_nn: str | None,
    engine: str,
    executorch: Path | None,
) -> None:
    stages = Stages(Console(stderr=True))
    chosen = building.with_core_limits(load_board(chosen_board(board)))
    interpreting.check_words(engine, executorch, place=place, kernels=kernels, cmsis_nn=cmsis_nn)
    if engine == ENGINE:
        print(interpreting.rendered(model, chosen, out, random_calibration, stages, executorch))
        return
    library = job.kernel_library(kernels, cmsis_nn, chosen, stages)
    print(_rendered(model, chosen, out, random_calibration, stages, place, library))


def build(
    model: str | None,
    board: str | None,
    out: Path | None,
    random_calibration: int | None,
    sanitize: bool,
    place: str,
    kernels: str,
    cmsis_nn: str | None,
    engine: str,
    executorch: Path | None,
) -> None:
    stages = Stages(Console(stderr=True))
    if model and Path(model).is_dir():
        project = Path(model).resolve()
        chosen = load_board(board or board_of(project))
        interpreting.check_project(project, engine)
        _check_kernels(project, kernels, cmsis_nn)
    elif engine == ENGINE:
        interpreting.check_words(engine, executorch, place=place, kernels=kernels, cmsis_nn=cmsis_nn)
        chosen = building.with_core_limits(load_board(chosen_board(board)))
        project = interpreting.rendered(model, chosen, out, random_calibration, stages, executorch)
    else:
        interpreting.check_words(engine, executorch)
        chosen = building.with_core_limits(load_board(chosen_board(board)))
        library = job.kernel_library(kernels, cmsis_nn, chosen, stages)
        project = _rendered(model, chosen, out, random_calibration, stages, place, library)
    image = job.build_image(project, chosen, stages, sanitize=sanitize, cmsis_nn=cmsis_nn, executorch=executorch)
    flash, ram = image.flash, image.ram
    stages.console.print(
        f"flash {flash.total:,} bytes ({flash.code:,} code, {flash.constants:,} constants), "
        f"RAM {ram.arena + ram.static:,} bytes ({ram.arena:,} arena, {ram.static:,} static) and the stack",
        highlight=False,
    )
    print(image.elf)


def _rendered(
    model: str | None,
    board: Board,
    out: Path | None,
    random_calibration: int | None,
    stages: Stages,
    place: str,
    library: KernelLibrary,
) -> Path:
    job.check_place(place, board)
    lowered = job.lower(chosen_model(model), board, stages, random_calibration=random_calibration, evaluate=False)
    planned = job.plan(lowered, job.read(lowered, stages), board, stages, place, library)
    folder = project_folder(out, lowered.name, board)
    job.render_project(planned, folder, stages, lowered.class_names)
    return folder


def _check_kernels(project: Path, kernels: str, cmsis_nn: str | None) -> None:
    """Which library computes the layers is decided when a project is rendered: raise a UsageError on another wish."""
    rendered = "cmsis-nn" if _manifest(project).get("cmsis_nn") else "deploy"
    wanted = "cmsis-nn" if cmsis_nn is not None and kernels == "auto" else kernels
    if wanted not in ("auto", rendered):
        raise UsageError(
            f"this project is rendered with --kernels {rendered}",
            where=str(project),
            hint=f"Render it anew: deploy render MODEL --kernels {wanted}.",
        )


def board_of(project: Path) -> str:
    """The board that a rendered project is for.

    Raises:
        BuildError: the folder holds no rendered project.
    """
    return str(_manifest(project)["board"])


def _manifest(project: Path) -> dict[str, Any]:
    """What a rendered project says of itself; raises BuildError when the folder holds none."""
    try:
        about = json.loads((project / MANIFEST).read_text(encoding="utf-8"))
        return dict(about) | {"board": about["board"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise BuildError(
            "this folder holds no rendered project",
            where=str(project),
            hint="Make one: deploy render MODEL --board BOARD.",
        ) from None


def flash_project(project: Path, virtual: bool, port: str | None, serial_number: str | None) -> None:
    """Flash a built project; a virtual board runs until Ctrl-C."""
    board = load_board(board_of(project))
    if virtual:
        board = board.virtual()
    image = building.built_image(project, board)
    console = Console(stderr=True)
    wanted = flashing.Wanted(port, serial_number)
    with flashing.flash(image, board, wanted=wanted, say=lambda text: console.print(text, highlight=False)) as running:
        print(running.port, flush=True)
        if board.emulator is not None:
            console.print(f"{board.name} runs on {running.port}; Ctrl-C stops it.", highlight=False)
            while (ended := running.stopped()) is None:
                time.sleep(0.2)
            raise DeployError(f"the virtual board {ended}", where=board.name)


def run_port(port: str, input_file: Path | None, output: Path | None) -> None:
    """Run an input on a board that is already flashed, or show what it runs."""
    console = Console(stderr=True)
    with Transport(port, log=lambda line: console.print(line, highlight=False, markup=False)) as transport:
        device = Device(transport)
        hello = device.hello
        console.print(f"{hello.model} on {hello.board} ({hello.kernels}), program {hello.sha256[:12]}", highlight=False)
        for direction, tensors in (("input", device.inputs), ("output", device.outputs)):
            for index, tensor in enumerate(tensors):
                console.print(f"{direction} {index}: {_describe(tensor)}", highlight=False)
        if input_file is None:
            return
        arrays = job.load_arrays(input_file)
        if [array.size for array in arrays] != [int(np.prod(tensor.shape)) for tensor in device.inputs]:
            raise ModelError(
                f"the arrays have {[array.size for array in arrays]} elements; see the inputs above",
                where=str(input_file),
                hint="Elements go to the board in the order of the arrays, which must be that of the board's memory.",
            )
        device.write_inputs(arrays)
        ticks = device.invoke()
        outputs = device.read_outputs()
    console.print(f"{ticks * 1e6 / hello.ticks_per_s:,.1f} µs", highlight=False)
    if output:
        np.savez(output, **{f"output{index}": array for index, array in enumerate(outputs)})
    else:
        for index, array in enumerate(outputs):
            print(f"output{index} {array.reshape(-1).tolist()}")


def _describe(tensor: DeviceTensor) -> str:
    return f"{tensor.dtype.name.lower()} ({', '.join(map(str, tensor.shape))})"
