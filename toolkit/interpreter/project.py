"""The project folder of a runner with the stock interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolkit import __version__
from toolkit.interpreter.contents import Boundary, Contents
from toolkit.interpreter.installation import RELEASE
from toolkit.interpreter.planner import KERNELS, InterpreterPlan, own_buffers
from toolkit.interpreter.pools import abi_of
from toolkit.rendering import write_project
from toolkit.rendering.names import safe_text
from toolkit.rendering.renderer import C_TYPES, template_environment
from toolkit.resources import resource

ENGINE = "executorch"
"""What a project's manifest says of its engine."""

_PER_ROW = 18


def render_interpreter(plan: InterpreterPlan, folder: Path) -> None:
    """Write the project of a plan into a folder: the program, the interpreter's memory, runtime, port, build files.

    Raises:
        DeployError: the folder holds something else, or cannot be written.
    """
    write_project(contents_of_project(plan), folder, {"board": plan.board.name, **manifest(plan)})


def manifest(plan: InterpreterPlan) -> dict[str, Any]:
    """What building needs to know of a project with the interpreter."""
    return {"engine": ENGINE, "operators": list(plan.contents.operators)}


def contents_of_project(plan: InterpreterPlan) -> dict[str, bytes]:
    """All files of the project of a plan, by path in it."""
    return _texts(plan) | _copies(plan)


def _texts(plan: InterpreterPlan) -> dict[str, bytes]:
    """Files made from templates, by path in the project."""
    firmware = resource("firmware")
    environment = template_environment()
    targets = {"model.h": "templates/model.h.j2"}
    for folder in (f"engines/{ENGINE}/templates", f"engines/{ENGINE}/ports/{plan.board.port}"):
        targets |= {path.stem: f"{folder}/{path.name}" for path in (firmware / folder).glob("*.j2")}
    for path in (firmware / "ports" / plan.board.port).glob("*.j2"):
        if path.stem not in targets:
            targets[f"port/{path.stem}"] = f"ports/{plan.board.port}/{path.name}"
    context = template_context(plan)
    return {target: environment.get_template(template).render(context).encode() for target, template in targets.items()}


def _copies(plan: InterpreterPlan) -> dict[str, bytes]:
    """Files that are copied as they are, by path in the project."""
    firmware = resource("firmware")
    engine = firmware / "engines" / ENGINE
    folders = (
        ("runtime", firmware / "runtime"),
        ("port", firmware / "ports" / plan.board.port),
        ("engine", engine / "engine"),
        ("engine", engine / "ports" / plan.board.port),
    )
    files = {
        f"{name}/{path.relative_to(folder)}": path.read_bytes()
        for name, folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".j2"
    }
    if plan.board.toolchain != "host":
        # The Pico SDK brings a toolchain file of its own; ExecuTorch can be built with this one for either.
        files["cmake/arm-none-eabi.cmake"] = (resource("cmake") / "arm-none-eabi.cmake").read_bytes()
    return files


def template_context(plan: InterpreterPlan) -> dict[str, Any]:
    """What the templates of the engine say of a plan."""
    contents = plan.contents
    faces = {
        side: [_face(tensor, f"{side}_{position}") for position, tensor in enumerate(tensors)]
        for side, tensors in (("input", contents.inputs), ("output", contents.outputs))
    }
    return {
        "version": __version__,
        "release": RELEASE,
        "model": safe_text(plan.model),
        "board": plan.board,
        "kernels": KERNELS,
        "summary": f"{len(plan.pte):,} bytes of program",
        "arena": plan.pools.total + own_buffers(contents),
        "sha256": [f"0x{byte:02x}" for byte in bytes.fromhex(contents.sha256)],
        "layers": [None],
        "method": contents.method,
        "program_bytes": len(plan.pte),
        "program_rows": _rows(plan.pte),
        "abi": abi_of(plan.board),
        "pools": plan.pools,
        "operators": _names(contents),
        "operator_libraries": plan.libraries,
        "sources": _sources(plan),
        "inputs": faces["input"],
        "outputs": faces["output"],
    }


def _names(contents: Contents) -> list[str]:
    """The operators, fit for a comment in C."""
    return ["::".join(safe_text(part) for part in name.split("::")) for name in contents.operators]


def _sources(plan: InterpreterPlan) -> list[str]:
    """The engine's own sources in the project, those of the port included."""
    port = resource("firmware") / "engines" / ENGINE / "ports" / plan.board.port
    extra = sorted(f"engine/{path.name}" for path in port.glob("*.cpp"))
    return ["model.cpp", "program.c", "engine/interpreter.cpp", *extra]


def _face(tensor: Boundary, symbol: str) -> dict[str, Any]:
    """An input or output as the templates see it."""
    place = f"model_arena_{symbol}"
    if tensor.memory is not None:
        place = f"model_arena_planned_{tensor.memory}" + (f" + {tensor.offset}" if tensor.offset else "")
    return {
        "symbol": symbol,
        "type": f"MODEL_{tensor.dtype.name}",
        "c_type": C_TYPES[tensor.dtype],
        "rank": len(tensor.shape),
        # Of a single value there is nothing to say, and C has no empty arrays.
        "dims": list(tensor.physical_shape) or [1],
        "size": tensor.size,
        "bytes": tensor.nbytes,
        "planned": tensor.memory is not None,
        "place": place,
    }


def _rows(data: bytes) -> str:
    """Bytes as rows of a C array."""
    rows = (data[start : start + _PER_ROW] for start in range(0, len(data), _PER_ROW))
    return "\n".join(f"    {', '.join(f'0x{byte:02x}' for byte in row)}," for row in rows)
