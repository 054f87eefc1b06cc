"""From a project with the stock interpreter to an image, linked with the user's ExecuTorch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolkit.board import Board
from toolkit.building.arduino import require_sketch
from toolkit.building.builder import build_runner, build_sketch, require_project
from toolkit.building.image import Image
from toolkit.errors import BuildError
from toolkit.interpreter.archive import left_out
from toolkit.interpreter.arduino import LINKING, build_properties
from toolkit.interpreter.installation import require_installation
from toolkit.interpreter.project import ENGINE
from toolkit.rendering import MANIFEST

_MODULE = "see engine/executorch.cmake"


def is_interpreted(project: Path) -> bool:
    """Whether a rendered project has the stock interpreter."""
    return _about(project).get("engine") == ENGINE


def build_interpreter(
    project: Path,
    board: Board,
    *,
    executorch: Path | None = None,
    sanitize: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Image:
    """Build a rendered project with the stock interpreter.

    Args:
        project: folder that `render_interpreter` or `render_interpreter_sketch` wrote.
        board: the board it was rendered for.
        executorch: where ExecuTorch is installed; None for EXECUTORCH_PATH.
        sanitize: with address and undefined-behaviour sanitizers (board `host`).
        progress: told what is being done, a few words at a time.

    Raises:
        ToolError: no ExecuTorch for this board is named, or a tool is missing.
        PlanError: the installation does not register an operator of the program.
        BuildError: configuring, compiling or linking failed, or the image lacks an operator after all.
    """
    core = board.arduino is not None and board.emulator is None
    if board.arduino is None:
        require_project(project)
    else:
        require_sketch(project)
    operators = _operators(project)
    progress("looking at the installed ExecuTorch")
    installation = require_installation(executorch, board, operators)
    libraries = installation.libraries_for(operators)
    definitions = [
        f"-DEXECUTORCH_PATH={installation.path}",
        f"-DEXECUTORCH_OPERATOR_LIBRARIES={';'.join(libraries)}",
    ]
    if board.arduino is None:
        progress("compiling the runner")
        image = build_runner(project, board, definitions, sanitize=sanitize)
    else:
        properties = build_properties(installation, libraries, board.arduino) if core else {}
        image = build_sketch(project, board, definitions=definitions, properties=properties, progress=progress)
    missing = left_out(image.elf, operators)
    if missing:
        raise BuildError(
            f"the linker left out what registers {', '.join(missing)}",
            where=str(image.elf),
            hint=f"Link {', '.join(libraries)} as a whole: {'the core has to take ' + LINKING if core else _MODULE}.",
        )
    return image


def _operators(project: Path) -> tuple[str, ...]:
    try:
        return tuple(str(name) for name in _about(project)["operators"])
    except (KeyError, TypeError):
        raise BuildError(
            "the list of the program's operators is damaged",
            where=str(project / MANIFEST),
            hint=f"Render it anew: deploy render MODEL --engine {ENGINE}.",
        ) from None


def _about(project: Path) -> dict[str, Any]:
    try:
        about = json.loads((project / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}
