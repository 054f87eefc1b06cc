"""The way of the data with ExecuTorch's interpreter as the engine: `--engine executorch`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from toolkit.board import Board
from toolkit.cli import job
from toolkit.cli.progress import Stages
from toolkit.cli.settings import chosen_model
from toolkit.errors import UsageError
from toolkit.interpreter import (
    ENGINE,
    VARIABLE,
    InterpreterPlan,
    find_installation,
    is_interpreted,
    make_interpreter_plan,
    render_interpreter,
    render_interpreter_sketch,
    require_installation,
)
from toolkit.planning.cmsis_nn import compiled_isa, quirk_of
from toolkit.program import Program
from toolkit.rendering.face import Numbers
from toolkit.rendering.names import safe_text
from toolkit.rendering.sketch import Rendered

OWN_ENGINE = "deploy"


def check_words(
    engine: str,
    executorch: Path | None,
    *,
    place: str = "auto",
    kernels: str = "auto",
    cmsis_nn: str | None = None,
    layers: bool = False,
    library: bool = False,
) -> None:
    """Raise a UsageError when words are given that the engine has no use for."""
    if engine == OWN_ENGINE:
        if executorch is not None:
            raise UsageError("--executorch names an ExecuTorch that nothing uses", hint=f"Add --engine {ENGINE}.")
        return
    if place != "auto":
        raise UsageError("--place moves code and weights of the default engine; ExecuTorch's stay in flash")
    if kernels != "auto" or cmsis_nn is not None:
        raise UsageError(
            "the interpreter's kernels are those that ExecuTorch was built with",
            hint="Leave out --kernels and --cmsis-nn.",
        )
    if library:
        raise UsageError(
            "an Arduino library cannot bring ExecuTorch along: what compiles it has to be told where that is",
            hint=f"Leave out --library, or --engine {ENGINE}.",
        )
    if layers:
        raise UsageError(
            "the interpreter shows no layers",
            hint=f"The default engine does: leave out --engine {ENGINE}.",
        )


def project_folder(out: Path | None, model: str, board: Board) -> Path:
    """Where a project with the interpreter goes when `--out` does not say it."""
    return (out or Path("build") / f"{safe_text(model)}-{board.name}-{ENGINE}").resolve()


def plan(
    lowered: job.Lowered, board: Board, stages: Stages, executorch: Path | None, *, program: Program | None = None
) -> InterpreterPlan:
    """Plan a program for the interpreter.

    Args:
        lowered: the program.
        board: what it will run on.
        stages: told what is being done.
        executorch: where ExecuTorch is installed; None for EXECUTORCH_PATH.
        program: what the program computes, when it will be run: then an installation is required. None when it is only
            rendered: then an installation is used where one is named.
    """
    with stages.stage("plan") as stage:
        make = functools.partial(make_interpreter_plan, lowered.pte, board, model=lowered.name, source=lowered.source)
        planned = make()
        if program is None:
            installation = find_installation(executorch, board)
        else:
            installation = require_installation(executorch, board, planned.contents.operators)
        if installation is not None:
            planned = make(installation=installation)
        pools = planned.pools
        stage.detail = (
            f"{len(lowered.pte):,} bytes of program, {sum(pools.planned):,} of planned memory, "
            f"{pools.method + pools.temporary:,} for the method"
        )
        if board.sizes_from:
            stage.detail += f"; sizes of {board.sizes_from}"
    if installation is None:
        stages.warn(f"no ExecuTorch is named (--executorch, {VARIABLE}): its operators are checked when it is built")
    for operator in program.operators if program else ():
        # Portable operators are none of CMSIS-NN's.
        quirk = quirk_of(operator, compiled_isa(board)) if operator.name.startswith("cortex_m::") else ""
        if quirk:
            stages.warn(f"operator {operator.index} ({operator.name}): {quirk}")
    return planned


def render(planned: InterpreterPlan, folder: Path, stages: Stages, class_names: Sequence[str] = ()) -> None:
    if planned.board.arduino is not None:
        render_arduino(planned, folder, stages, class_names=class_names)
        return
    with stages.stage("render") as stage:
        render_interpreter(planned, folder)
        stage.detail = str(folder)


def render_arduino(
    planned: InterpreterPlan,
    folder: Path,
    stages: Stages,
    *,
    class_names: Sequence[str] = (),
    numbers: Numbers = Numbers.PROGRAM,
) -> Rendered:
    with stages.stage("render") as stage:
        rendered = render_interpreter_sketch(planned, folder, labels=class_names, numbers=numbers)
        stage.detail = job.rendered_detail(rendered)
    return rendered


def rendered(
    model: str | None,
    board: Board,
    out: Path | None,
    random_calibration: int | None,
    stages: Stages,
    executorch: Path | None,
) -> Path:
    """Lower, plan and render a model; the project's folder."""
    spec = chosen_model(model)
    lowered = job.lower(spec, board, stages, random_calibration=random_calibration, evaluate=False)
    planned = plan(lowered, board, stages, executorch)
    folder = project_folder(out, lowered.name, board)
    render(planned, folder, stages, lowered.class_names)
    return folder


def check_project(project: Path, engine: str) -> None:
    """Which engine a project has is decided when it is rendered: raise a UsageError when this one is wanted."""
    if engine == ENGINE and not is_interpreted(project):
        raise UsageError(
            "this project is rendered with the default engine",
            where=str(project),
            hint=f"Render it anew: deploy render MODEL --engine {ENGINE}.",
        )
