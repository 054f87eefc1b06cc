"""From a plan to an Arduino sketch folder, or to a library, that the Arduino IDE compiles as it is."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from toolkit.board import Arduino, Board, board_names, load_board
from toolkit.errors import DeployError, UsageError
from toolkit.planning.types import Plan, Regions
from toolkit.rendering.face import Face, Numbers, face_of
from toolkit.rendering.folder import MANIFEST, write_project
from toolkit.rendering.names import safe_text
from toolkit.rendering.renderer import template_context, template_environment
from toolkit.resources import resource

INTERNAL = "src/internal"
"""Where everything lies that a sketch does not include itself: one folder, so that files find each other."""

_TEMPLATES = "ports/arduino"
_MODEL = ("model.cpp", "model.h", "model_data.c", "model_data.h")
_RUNTIME = ("frame.cpp", "frame.h", "port.h", "server.cpp", "server.h", "stack.cpp", "stack.h")
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)

_KERNEL_HEADING = b'#pragma GCC optimize("O2") /* the cores compile for size; the model\'s time is spent here */\n'


class Form(Enum):
    """What is written: a sketch, or a library with the sketch as its example."""

    SKETCH = "sketch"
    LIBRARY = "library"


@dataclass(frozen=True, slots=True)
class Inside:
    """What an engine puts into a sketch.

    Attributes:
        board: what the sketch is for.
        context: what the templates say of the model.
        files: the model and what computes it, by name in `src/internal`.
        about: what the manifest says of the engine.
    """

    board: Board
    context: Mapping[str, Any]
    files: Mapping[str, bytes]
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rendered:
    """What was written.

    Attributes:
        folder: of the sketch or library.
        sketch: the `.ino`.
        kept: whether the `.ino` is the user's own and was left as it is.
        archive: the `.zip` of a library, None for a sketch.
    """

    folder: Path
    sketch: Path
    kept: bool
    archive: Path | None = None


def render_sketch(
    plan: Plan,
    folder: Path,
    *,
    form: Form = Form.SKETCH,
    labels: Sequence[str] = (),
    numbers: Numbers = Numbers.PROGRAM,
) -> Rendered:
    """Write a plan as an Arduino sketch or library. The same plan gives the same bytes.

    Args:
        plan: for a board that has an `[arduino]` table, computed by our own kernels.
        folder: its name becomes the sketch's and the library's; for a library, a `.zip` is written beside it.
        form: sketch or library.
        labels: names of the classes, in the order of the only output; empty where unknown.
        numbers: what the sketch's inputs and outputs are.

    Raises:
        UsageError: the board is none that Arduino knows, or the folder's name is none Arduino takes.
        DeployError: the folder holds something else, or cannot be written.
    """
    require_arduino(plan.board)
    if plan.regions != Regions():
        raise UsageError(
            "in a sketch, kernels and weights stay where the board's core puts them", hint="Leave --place ram away."
        )
    return write_sketch(_inside(plan), face_of(plan, numbers, labels), folder, form)


def write_sketch(inside: Inside, face: Face, folder: Path, form: Form = Form.SKETCH) -> Rendered:
    """Write what an engine puts into a sketch, and everything around it that is the same for every engine.

    Raises:
        UsageError: the board is none that Arduino knows, or the folder's name is none Arduino takes.
        DeployError: the folder holds something else, or cannot be written.
    """
    name = _checked_name(folder)
    require_arduino(inside.board)
    example = f"examples/{name}/{name}.ino" if form is Form.LIBRARY else f"{name}.ino"
    files, sketch = _files(inside, face, name, form)
    ours = _hash_of_last_sketch(folder)
    about = {"board": inside.board.name, **inside.about, "sketch_sha256": hashlib.sha256(sketch).hexdigest()}
    write_project(files, folder, about)
    path, kept = _write_sketch(folder / example, sketch, ours)
    archive = _write_archive(folder, files | {example: sketch}) if form is Form.LIBRARY else None
    return Rendered(folder, path, kept, archive)


def require_arduino(board: Board) -> Arduino:
    """How the Arduino tools see a board; raises a UsageError when they do not know it."""
    if board.arduino is None:
        names = [name for name in board_names() if load_board(name).arduino is not None]
        raise UsageError(f"{board.name} is not an Arduino board", hint=f"Arduino boards: {', '.join(names)}.")
    return board.arduino


def _checked_name(folder: Path) -> str:
    name = folder.resolve().name
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}", name) or name.endswith("."):
        raise UsageError(
            f"{name!r} is not a name that Arduino takes for a sketch",
            where=str(folder),
            hint="At most 63 letters, digits, `_`, `.` and `-`, beginning with a letter, a digit or `_`.",
        )
    return name


def _inside(plan: Plan) -> Inside:
    """The model as C++, and our kernels."""
    context = template_context(plan)
    firmware = resource("firmware")
    kernels = [*(firmware / "kernels" / "include").iterdir(), *(firmware / "kernels" / "source").iterdir()]
    copies = sorted(path for path in kernels if path.suffix in (".c", ".h", ".S") and path.name != "prefix.h")
    files = {path.name: (_KERNEL_HEADING if path.suffix == ".c" else b"") + path.read_bytes() for path in copies}
    return Inside(plan.board, context, filled({name: f"templates/{name}.j2" for name in _MODEL}, context) | files)


def filled(templates: Mapping[str, str], context: Mapping[str, Any]) -> dict[str, bytes]:
    """Files made from templates.

    Args:
        templates: path in `firmware` by name of the file.
        context: what they say.
    """
    environment = template_environment()
    return {name: environment.get_template(path).render(context).encode() for name, path in templates.items()}


def _files(inside: Inside, face: Face, name: str, form: Form) -> tuple[dict[str, bytes], bytes]:
    """All files but the sketch by path, and the sketch."""
    header = f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}.h"
    include = f"<{header}>" if form is Form.LIBRARY else f'"src/{header}"'
    context = {**inside.context, "face": _words(face, header, include, name)}
    templates = {f"src/{header}": f"{_TEMPLATES}/face.h.j2", f"{INTERNAL}/face.cpp": f"{_TEMPLATES}/face.cpp.j2"}
    beside = ("library.properties", "keywords.txt") if form is Form.LIBRARY else ("sketch.yaml",)
    templates |= {target: f"{_TEMPLATES}/{target}.j2" for target in beside}
    files = filled(templates, context)
    files |= {f"{INTERNAL}/{target}": content for target, content in {**inside.files, **_runtime()}.items()}
    (sketch,) = filled({f"{name}.ino": f"{_TEMPLATES}/sketch.ino.j2"}, context).values()
    return files, sketch


def _runtime() -> dict[str, bytes]:
    """Runtime and port, by name."""
    firmware = resource("firmware")
    sources = [firmware / "runtime" / name for name in _RUNTIME]
    sources += [firmware / "ports" / "arduino" / name for name in ("arduino_port.cpp", "arduino_port.h")]
    return {path.name: path.read_bytes() for path in sources}


def _words(face: Face, header: str, include: str, title: str) -> dict[str, Any]:
    """What the templates say of the face."""
    return {
        "inputs": face.inputs,
        "outputs": face.outputs,
        "skipped": face.skipped,
        "labels": face.labels,
        "header": header,
        "include": include,
        "title": safe_text(title),
    }


def _hash_of_last_sketch(folder: Path) -> str:
    """Of the `.ino` that the last rendering had; empty when nothing is known of it."""
    try:
        return str(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["sketch_sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _write_sketch(path: Path, content: bytes, ours: str) -> tuple[Path, bool]:
    """Write the `.ino` unless there is one that is not as we left it; where it is, and whether it was kept."""
    try:
        if path.is_file():
            present = path.read_bytes()
            if present != content and hashlib.sha256(present).hexdigest() != ours:
                return path, True
        elif others := sorted(path.parent.glob("*.ino")):
            return others[0], True  # the folder was renamed: the sketch in it is the user's
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise DeployError(f"cannot write the sketch: {error.strerror}", where=str(path)) from None
    return path, False


def _write_archive(folder: Path, files: Mapping[str, bytes]) -> Path:
    """The library as the `.zip` that the IDE adds: one folder of its name, nothing in it that changes by itself."""
    path = folder.with_name(f"{folder.name}.zip")
    part = path.with_name(f".{path.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, content in sorted(files.items()):
                entry = zipfile.ZipInfo(f"{folder.name}/{name}", _ZIP_TIME)
                entry.create_system = 3
                entry.external_attr = 0o100644 << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
        part.replace(path)
    except OSError as error:
        raise DeployError(f"cannot write the library's archive: {error.strerror}", where=str(path)) from None
    return path
