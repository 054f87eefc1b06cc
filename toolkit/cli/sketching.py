"""`deploy sketch`: a model as an Arduino sketch folder, or as a library."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from toolkit.board import load_board
from toolkit.building import with_core_limits
from toolkit.cli import interpreting, job
from toolkit.cli.progress import Stages
from toolkit.cli.settings import chosen_board, chosen_model
from toolkit.cli.steps import project_folder
from toolkit.interpreter import ENGINE
from toolkit.rendering.face import Numbers
from toolkit.rendering.sketch import Form, require_arduino


def sketch(
    model: str | None,
    board: str | None,
    out: Path | None,
    library: bool,
    input_type: str | None,
    random_calibration: int | None,
    engine: str,
    executorch: Path | None,
) -> None:
    """Render, print the folder (or a library's `.zip`), and say how to go on."""
    stages = Stages(Console(stderr=True))
    chosen = with_core_limits(load_board(chosen_board(board)))
    arduino = require_arduino(chosen)
    interpreting.check_words(engine, executorch, library=library)
    lowered = job.lower(chosen_model(model), chosen, stages, random_calibration=random_calibration, evaluate=False)
    numbers = Numbers(input_type or "program")
    if engine == ENGINE:
        setup = interpreting.plan(lowered, chosen, stages, executorch)
        folder = interpreting.project_folder(out, lowered.name, chosen)
        rendered = interpreting.render_arduino(setup, folder, stages, class_names=lowered.class_names, numbers=numbers)
        print(rendered.folder)
        stages.console.print(
            f"Build it with arduino-cli and the core {arduino.board_manager!r} installed: "
            f"deploy build {rendered.folder} --executorch PATH",
            highlight=False,
            soft_wrap=True,
        )
        return
    planned = job.plan(lowered, job.read(lowered, stages), chosen, stages)
    rendered = job.render_arduino(
        planned,
        project_folder(out, lowered.name, chosen),
        stages,
        form=Form.LIBRARY if library else Form.SKETCH,
        class_names=lowered.class_names,
        numbers=numbers,
    )
    if rendered.archive is not None:
        print(rendered.archive)
        stages.console.print(
            f"In the Arduino IDE: Sketch > Include Library > Add .ZIP Library; then File > Examples > "
            f"{rendered.folder.name}.",
            highlight=False,
            soft_wrap=True,
        )
    else:
        print(rendered.folder)
        stages.console.print(
            f"Open {rendered.sketch.name} in the Arduino IDE with the core {arduino.board_manager!r} installed, "
            f"or: arduino-cli compile {rendered.folder}",
            highlight=False,
            soft_wrap=True,
        )
