"""The sketch folder of an Arduino board with the stock interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolkit.interpreter.planner import InterpreterPlan
from toolkit.interpreter.project import ENGINE, manifest, template_context
from toolkit.rendering.face import Numbers, plain_face
from toolkit.rendering.sketch import Inside, Rendered, filled, write_sketch
from toolkit.resources import resource

_MODEL = ("model.cpp", "program.c", "program.h")
_INTERPRETER = ("interpreter.cpp", "interpreter.h")


def render_interpreter_sketch(
    plan: InterpreterPlan, folder: Path, *, labels: Sequence[str] = (), numbers: Numbers = Numbers.PROGRAM
) -> Rendered:
    """Write a plan as an Arduino sketch. The same plan gives the same bytes.

    The interpreter runs the program as a whole, so inputs and outputs are the program's own.

    Args:
        plan: for a board that has an `[arduino]` table.
        folder: its name becomes the sketch's.
        labels: names of the classes, in the order of the only output; empty where unknown.
        numbers: what the sketch's inputs shall be.

    Raises:
        UsageError: the board is none that Arduino knows, or the folder's name is none Arduino takes.
        ModelError: the program takes other numbers.
        DeployError: the folder holds something else, or cannot be written.
    """
    contents = plan.contents
    face = plain_face(plan.model, contents.inputs, contents.outputs, numbers, labels)
    return write_sketch(_inside(plan), face, folder)


def _inside(plan: InterpreterPlan) -> Inside:
    """The program, its memory, and the interpreter."""
    engine = resource("firmware") / "engines" / ENGINE
    templates = {name: f"engines/{ENGINE}/templates/{name}.j2" for name in _MODEL}
    context = template_context(plan)
    files = filled({"model.h": "templates/model.h.j2", **templates}, context)
    files |= {name: (engine / "engine" / name).read_bytes() for name in _INTERPRETER}
    return Inside(plan.board, context, files, manifest(plan))
