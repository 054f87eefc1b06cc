"""Building a sketch folder for a virtual board: against the small Arduino core of ours, with the board's own flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolkit.board import Board
from toolkit.errors import BuildError
from toolkit.resources import resource


def core_folder() -> Path:
    """The project that compiles a sketch for a virtual board."""
    return resource("firmware") / "ports" / "arduino-core"


def virtual_tree(project: Path) -> Path:
    """Where a sketch is built for a virtual board: a folder that the Arduino tools pass over."""
    return project / "build" / "virtual"


def require_sketch(project: Path) -> Path:
    """The `.ino` of a sketch folder; raises BuildError when there is none of the folder's name."""
    sketch = project / f"{project.name}.ino"
    if not sketch.is_file():
        raise BuildError(
            f"there is no {sketch.name} here",
            where=str(project),
            hint="Arduino wants a sketch to be named like its folder. Make one: deploy sketch MODEL --out DIR.",
        )
    return sketch


def ide_hint(project: Path, board: Board) -> str:
    """How a person goes on from a rendered sketch with the Arduino IDE."""
    title = board.arduino.board_manager if board.arduino else ""
    return (
        f"The sketch is ready. In the Arduino IDE: open {project / project.name}.ino, install {title!r} in the boards "
        "manager, choose board and port, upload; then `deploy run PORT` talks to it. Or put arduino-cli on PATH (or "
        "name it by ARDUINO_CLI) and run this again. With --virtual it is verified without hardware."
    )


def properties_hint(properties: Mapping[str, str]) -> str:
    """How a person goes on from a rendered sketch that needs properties of its core's build recipes."""
    lines = [f"    {name}={value}" for name, value in properties.items()]
    return "\n  ".join(
        [
            "The sketch is ready. Put arduino-cli on PATH (or name it by ARDUINO_CLI) and run this again. With",
            "--virtual it is verified without hardware. The Arduino IDE links it only with these",
            "lines in a file platform.local.txt beside the core's platform.txt:",
            *lines,
        ]
    )


def sketch_definitions(project: Path, board: Board) -> list[str]:
    """What `core_folder` needs to know of a sketch and of the virtual board.

    The memories are as large as those of the real board, so that what does not fit there does not link.
    """
    return [
        f"-DSKETCH={project}",
        f"-DDEPLOY_CPU_FLAGS={' '.join(board.flags)}",
        f"-DFLASH_ORIGIN={board.flash.origin:#x}",
        f"-DFLASH_SIZE={board.flash.size}",
        f"-DRAM_ORIGIN={board.ram.origin:#x}",
        f"-DRAM_SIZE={board.ram.size}",
        f"-DSTACK_SIZE={board.stack}",
    ]
