"""From a plan to a project folder that builds by itself."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from toolkit import __version__
from toolkit.planning.types import Plan
from toolkit.program.types import DType, Tensor
from toolkit.rendering.calls import Call, say
from toolkit.rendering.folder import write_project
from toolkit.rendering.names import constant_symbols, operator_title, quantisation_title, safe_text
from toolkit.resources import resource

C_TYPES = {
    DType.FLOAT32: "float",
    DType.INT8: "int8_t",
    DType.UINT8: "uint8_t",
    DType.INT16: "int16_t",
    DType.INT32: "int32_t",
    DType.INT64: "int64_t",
    DType.BOOL: "uint8_t",
}

_COLUMNS = 110


@dataclass(frozen=True, slots=True)
class _Layer:
    """What the template says of one step."""

    position: int
    symbol: str
    title: str
    name: str
    types: str
    quantisation: str
    statements: tuple[str, ...]
    returns_status: bool
    counts: tuple[int, ...]
    call: str
    result: Any


def render(plan: Plan, folder: Path) -> None:
    """Write the project of a plan into a folder: model, runtime, port, kernels and build files.

    Files that are already as they should be are not touched, so that a build repeats only what changed; files of an
    earlier rendering that are no longer needed are removed, and no others.

    Raises:
        DeployError: the folder holds something else, or cannot be written.
    """
    write_project(_texts(plan) | _copies(plan), folder, _about(plan))


def _about(plan: Plan) -> dict[str, Any]:
    """What building needs to know of a project besides its files."""
    return {
        "board": plan.board.name,
        "kernels_in_ram": plan.regions.code_in_ram,
        "cmsis_nn": str(plan.library.folder) if plan.library.folder else None,
    }


def _texts(plan: Plan) -> dict[str, bytes]:
    """Files made from templates, by path in the project."""
    environment = template_environment()
    context = template_context(plan)
    targets = {path.stem: f"templates/{path.name}" for path in (resource("firmware") / "templates").glob("*.j2")}
    for path in (resource("firmware") / "ports" / plan.board.port).glob("*.j2"):
        # A port may bring a project file of its own; everything else of it goes into its folder.
        target = path.stem if path.stem in targets else f"port/{path.stem}"
        targets[target] = f"ports/{plan.board.port}/{path.name}"
    return {target: environment.get_template(template).render(context).encode() for target, template in targets.items()}


def _copies(plan: Plan) -> dict[str, bytes]:
    """Files that are copied as they are, by path in the project."""
    firmware = resource("firmware")
    sources = {
        "runtime": firmware / "runtime",
        "port": firmware / "ports" / plan.board.port,
        "kernels": firmware / "kernels",
    }
    files = {
        f"{name}/{path.relative_to(folder)}": path.read_bytes()
        for name, folder in sources.items()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".j2"
    }
    modules = ["kernels.cmake"]
    if plan.board.toolchain == "arm-none-eabi":
        modules.append("arm-none-eabi.cmake")
    if plan.library.folder is not None:
        modules.append("FindCmsisNN.cmake")
    return files | {f"cmake/{name}": (resource("cmake") / name).read_bytes() for name in modules}


def template_environment() -> jinja2.Environment:
    """What finds and fills the templates in `firmware`."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(resource("firmware")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def template_context(plan: Plan) -> dict[str, Any]:
    """What the templates of a model say of its plan."""
    symbols = constant_symbols(plan)
    return {
        "version": __version__,
        "model": safe_text(plan.model),
        "board": plan.board,
        "kernels": plan.kernels,
        "cmsis_nn": str(plan.library.folder) if plan.library.folder else "",
        "ours_beside": any(step.kernel.function.startswith("deploy_arm_") for step in plan.steps),
        "summary": f"{plan.program.macs:,} multiply-accumulates per inference, "
        f"{plan.constant_bytes:,} bytes of constants",
        "arena": plan.arena,
        "code_in_ram": plan.regions.code_in_ram,
        "sha256": [f"0x{byte:02x}" for byte in bytes.fromhex(plan.program.sha256)],
        "layers": [_layer(plan, position, symbols) for position in range(len(plan.steps))],
        "inputs": [_face(plan, id, f"input_{i}") for i, id in enumerate(plan.inputs)],
        "outputs": [_face(plan, id, f"output_{i}") for i, id in enumerate(plan.outputs)],
        "constants": _constants(plan, symbols),
    }


def _layer(plan: Plan, position: int, symbols: dict[int, str]) -> _Layer:
    step = plan.steps[position]
    op = step.operator
    call = say(step, plan, symbols)
    reads = [_type(plan.tensor(id)) for id in op.inputs if id in plan.activations]
    return _Layer(
        position=position,
        symbol=f"layer_{position:02d}",
        title=operator_title(op),
        name=safe_text(step.layer) if step.layer else "",
        types=f"{', '.join(reads)} -> {_type(plan.tensor(op.output))}",
        quantisation=quantisation_title(op),
        statements=call.statements,
        returns_status=call.returns_status,
        counts=call.counts,
        call=_expression(step.kernel.function, call),
        result=plan.activations[op.output].span,
    )


def _expression(function: str, call: Call) -> str:
    """The call itself, broken between arguments where the line would be too long."""
    text = f"{function}({', '.join(call.arguments)})"
    start = "    return failed(" if call.returns_status else "    "
    if 4 * len(call.counts) + len(start) + len(text) + len(");") <= _COLUMNS:
        return text
    wrapped = textwrap.wrap(", ".join(call.arguments), _COLUMNS - 8, break_long_words=False)
    return f"{function}(\n        " + "\n        ".join(wrapped) + ")"


def _type(tensor: Tensor) -> str:
    return f"{tensor.dtype.name.lower()} {_shape(tensor.physical_shape)}"


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def _face(plan: Plan, id: int, symbol: str) -> dict[str, Any]:
    """An input or output as the outside sees it."""
    tensor = plan.tensor(id)
    return {
        "symbol": symbol,
        "type": f"MODEL_{tensor.dtype.name}",
        "c_type": C_TYPES[tensor.dtype],
        "dims": list(tensor.physical_shape),
        "size": tensor.size,
        "bytes": tensor.nbytes,
        "offset": plan.activations[id].span.offset,
    }


def _constants(plan: Plan, symbols: dict[int, str]) -> list[dict[str, Any]]:
    owners: dict[str, int] = {}
    for id in plan.constants:
        owners.setdefault(symbols[id], id)
    constants = []
    for symbol, id in owners.items():
        tensor = plan.tensor(id)
        readers = [position for position, step in enumerate(plan.steps) if id in (read for _, read in step.reads)]
        title = f"layer {readers[0]:02d}, {symbol.split('_', 3)[3]}: {_type(tensor)}"
        values = np.frombuffer(tensor.constant or b"", dtype=tensor.dtype.value).tolist()
        constants.append(
            {
                "symbol": symbol,
                "c_type": C_TYPES[tensor.dtype],
                "size": tensor.size,
                "title": title,
                "rows": _rows(values),
                "in_ram": id in plan.regions.constants_in_ram,
            }
        )
    return constants


def _rows(values: list[int]) -> str:
    """Numbers in rows of equal count, as wide as the column limit allows."""
    # INT32_MIN has no literal of its own type in C.
    words = ["(-2147483647 - 1)" if value == -(2**31) else str(value) for value in values]
    width = max(map(len, words))
    per_row = max(1, (_COLUMNS - 4) // (width + 2))
    rows = (words[start : start + per_row] for start in range(0, len(words), per_row))
    return "\n".join(f"    {', '.join(word.rjust(width) for word in row)}," for row in rows)
