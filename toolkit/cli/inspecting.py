"""What is in a model: operators, tensors, constants, memory."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from toolkit.board import Board, load_board
from toolkit.building import with_core_limits
from toolkit.cli import job
from toolkit.cli.progress import Stages
from toolkit.cli.settings import chosen_model, read_settings
from toolkit.planning import Plan, parts
from toolkit.program import Program
from toolkit.program.types import Tensor
from toolkit.rendering.names import operator_title

_DEFAULT_BOARD = "qemu-m33"


def inspect(model: str | None, board: str | None, random_calibration: int | None) -> None:
    stages = Stages(Console(stderr=True))
    chosen = with_core_limits(load_board(board or read_settings().board or _DEFAULT_BOARD))
    lowered = job.lower(chosen_model(model), chosen, stages, random_calibration=random_calibration, evaluate=False)
    program = job.read(lowered, stages)
    console = Console()
    console.print(_operators(program, lowered.layer_names), highlight=False)
    planned = job.plan(lowered, program, chosen, stages)
    console.print(_memory(planned), highlight=False)
    console.print(_parts(planned, chosen), highlight=False)


def _operators(program: Program, layer_names: tuple[str, ...]) -> Table:
    table = Table(title="operators", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("#", justify="right")
    table.add_column("operator")
    table.add_column("layer")
    table.add_column("result")
    table.add_column("constants", justify="right")
    for op in program.operators:
        constants = sum(program.tensors[id].nbytes for id in op.inputs if program.tensors[id].constant is not None)
        layer = layer_names[op.index] if op.index < len(layer_names) else ""
        result = _type(program.tensors[op.output])
        table.add_row(f"{op.index:02d}", operator_title(op), layer, result, f"{constants:,}" if constants else "")
    return table


def _memory(plan: Plan) -> Table:
    table = Table(title="arena", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("tensor", "bytes", "at", "from layer", "to layer"):
        table.add_column(name, justify="left" if name == "tensor" else "right")
    last = len(plan.steps)
    for id, placement in sorted(plan.activations.items(), key=lambda item: item[1].first):
        table.add_row(
            _type(plan.tensor(id)),
            f"{placement.span.nbytes:,}",
            f"{placement.span.offset:,}",
            "input" if placement.first < 0 else f"{placement.first:02d}",
            "output" if placement.last == last else f"{placement.last:02d}",
        )
    for position, step in enumerate(plan.steps):
        if step.scratch:
            number = f"{position:02d}"
            table.add_row("scratch", f"{step.scratch.nbytes:,}", f"{step.scratch.offset:,}", number, number)
    return table


def _parts(plan: Plan, board: Board) -> Table:
    table = Table(title=f"memory of {board.name}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("memory", "part", "bytes"):
        table.add_column(name, justify="right" if name == "bytes" else "left")
    for part in parts(plan):
        table.add_row(part.memory, part.name, f"{part.nbytes:,}")
    for memory, size in (("flash", board.flash.size), ("ram", board.ram.size)):
        table.add_row(memory, "size", f"{size:,}")
    if board.sizes_from:
        table.caption = f"The sizes are those of {board.sizes_from}."
    return table


def _type(tensor: Tensor) -> str:
    return f"{tensor.dtype.name.lower()} ({', '.join(map(str, tensor.shape))})"
