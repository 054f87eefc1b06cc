"""Whether a plan fits its board, judged before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolkit.board import Board
from toolkit.errors import PlanError
from toolkit.planning.types import Plan


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of one memory that something takes."""

    memory: str
    name: str
    nbytes: int


def parts(plan: Plan) -> tuple[Part, ...]:
    """What takes how much of the board's flash and RAM; code and static data are the board file's estimates."""
    board = plan.board
    return (
        Part("flash", "code (estimate)", board.reserved_flash),
        Part("flash", "constants", plan.constant_bytes),
        Part("ram", "arena", plan.arena),
        Part("ram", "static (estimate)", board.reserved_ram - board.reserved_heap),
        *heap_part(board),
        Part("ram", "stack", board.stack),
    )


def heap_part(board: Board) -> tuple[Part, ...]:
    """What a core's heap and other stacks take, where there are any."""
    return (Part("ram", "heap, other stacks", board.reserved_heap),) if board.reserved_heap else ()


def check_fit(plan: Plan) -> None:
    """Raise a PlanError with a table of what takes how much when the plan needs more than the board has."""
    require_fit(parts(plan), plan.board, plan.model, lambda memory: _advice(plan, memory))


def require_fit(all_parts: tuple[Part, ...], board: Board, model: str, advice: Callable[[str], str]) -> None:
    """Raise a PlanError with a table of these parts when they are more than the board has.

    Args:
        all_parts: what takes how much.
        board: what it is for.
        model: name of the model, for the error.
        advice: what to do about a memory that is too small.
    """
    sizes = {"flash": board.flash.size, "ram": board.ram.size}
    over = [memory for memory, size in sizes.items() if _total(all_parts, memory) > size]
    if not over:
        return
    lines = []
    for memory, size in sizes.items():
        lines += [f"{memory:<6} {part.name:<18} {part.nbytes:>10,}" for part in all_parts if part.memory == memory]
        total = _total(all_parts, memory)
        verdict = f"{total - size:,} too many" if total > size else "fits"
        lines.append(f"{memory:<6} {'in all':<18} {total:>10,} of {size:,} bytes: {verdict}")
    if board.sizes_from:
        lines.append(f"The sizes of flash and RAM are those of {board.sizes_from}.")
    raise PlanError(
        f"the model does not fit the {' and the '.join(over)} of {board.name}",
        where=model,
        hint="\n  ".join([*lines, *map(advice, over)]),
    )


def _advice(plan: Plan, memory: str) -> str:
    if memory == "flash":
        largest = max(plan.constants, key=lambda id: plan.tensor(id).nbytes)
        readers = [step for step in plan.steps if largest in (id for _, id in step.reads)]
        layer = readers[0].layer or f"operator {readers[0].operator.index}"
        nbytes = plan.tensor(largest).nbytes
        return (
            f"The largest constant is {nbytes:,} bytes, in {layer}: make that layer narrower, or take a larger board."
        )
    position = _peak(plan)
    step = plan.steps[position]
    layer = step.layer or f"operator {step.operator.index} ({type(step.operator).__name__})"
    return (
        f"The arena is fullest in {layer}: a smaller input, fewer channels there, or an earlier stride or pooling "
        "makes it smaller; or take a larger board."
    )


def _peak(plan: Plan) -> int:
    """Position of the step during which most bytes are live."""

    def live(position: int) -> int:
        held = sum(p.span.nbytes for p in plan.activations.values() if p.first <= position <= p.last)
        scratch = plan.steps[position].scratch
        return held + (scratch.nbytes if scratch else 0)

    return max(range(len(plan.steps)), key=live)


def _total(all_parts: tuple[Part, ...], memory: str) -> int:
    return sum(part.nbytes for part in all_parts if part.memory == memory)
