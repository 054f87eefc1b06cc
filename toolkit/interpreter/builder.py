"""From a project with the stock interpreter to an image, linked with the user's ExecuTorch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolkit.board import Board
from toolkit.building.builder import build_runner, require_project
from toolkit.building.image import Image
from toolkit.errors import BuildError
from toolkit.interpreter.archive import registered_operators
from toolkit.interpreter.installation import require_installation
from toolkit.interpreter.project import ENGINE
from toolkit.rendering import MANIFEST


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
        project: folder that `render_interpreter` wrote.
        board: the board it was rendered for.
        executorch: where ExecuTorch is installed; None for EXECUTORCH_PATH.
        sanitize: with address and undefined-behaviour sanitizers (board `host`).
        progress: told what is being done, a few words at a time.

    Raises:
        ToolError: no ExecuTorch for this board is named, or a tool is missing.
        PlanError: the installation does not register an operator of the program.
        BuildError: configuring, compiling or linking failed, or the image lacks an operator after all.
    """
    require_project(project)
    operators = _operators(project)
    progress("looking at the installed ExecuTorch")
    installation = require_installation(executorch, board, operators)
    libraries = installation.libraries_for(operators)
    progress("compiling the runner")
    definitions = [
        f"-DEXECUTORCH_PATH={installation.path}",
        f"-DEXECUTORCH_OPERATOR_LIBRARIES={';'.join(libraries)}",
    ]
    image = build_runner(project, board, definitions, sanitize=sanitize)
    missing = sorted(set(operators) - registered_operators(image.elf))
    if missing:
        raise BuildError(
            f"the linker left out what registers {', '.join(missing)}",
            where=str(image.elf),
            hint=f"Link {', '.join(libraries)} as a whole: see engine/executorch.cmake in the project.",
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
