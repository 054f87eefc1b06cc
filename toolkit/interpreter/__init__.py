"""ExecuTorch's own interpreter as an engine: the `.pte` goes into the image as it is, and the runtime runs it there.

The same noun goes in as for this toolkit's own engine, a `.pte`, and the same come out: a project, and an image.
"""

from toolkit.interpreter.builder import build_interpreter, is_interpreted
from toolkit.interpreter.installation import (
    VARIABLE,
    Installation,
    find_installation,
    read_installation,
    require_installation,
)
from toolkit.interpreter.planner import InterpreterPlan, make_interpreter_plan, verifiable
from toolkit.interpreter.project import ENGINE, render_interpreter
from toolkit.interpreter.sketch import render_interpreter_sketch

__all__ = [
    "ENGINE",
    "VARIABLE",
    "Installation",
    "InterpreterPlan",
    "build_interpreter",
    "find_installation",
    "is_interpreted",
    "make_interpreter_plan",
    "read_installation",
    "render_interpreter",
    "render_interpreter_sketch",
    "require_installation",
    "verifiable",
]
