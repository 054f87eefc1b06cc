"""What is kept in RAM on boards whose flash is slow: hot code first, then the constants that are read most.

A Raspberry Pi Pico 2 for example reads its flash over a serial line through a small cache; a model whose weights do not
stay in that cache is limited by the line and not by the core.
"""

from __future__ import annotations

from enum import Enum
from math import prod

from toolkit.board import Board
from toolkit.errors import PlanError
from toolkit.planning.types import Plan, Regions
from toolkit.program.types import Conv2d, DepthwiseConv2d, Operator, TransposeConv2d

HOT_CODE = 16 * 1024
"""Bytes of kernels that run from RAM, an upper estimate for the kernels of one model."""

HOT_CODE_OF_CMSIS_NN = 48 * 1024
"""The same for Arm's library, which is compiled for speed alone."""

_MARGIN = 2 * 1024


class Place(Enum):
    """Where the user wants hot code and constants."""

    AUTO = "auto"
    RAM = "ram"
    FLASH = "flash"


def choose_regions(plan: Plan, place: Place) -> Regions:
    """What goes to RAM.

    Args:
        plan: with its arena.
        place: `AUTO` takes what fits, and only where flash is slow; `RAM` takes everything; `FLASH` nothing.

    Raises:
        PlanError: everything was asked for, and it does not fit.
    """
    if place is Place.FLASH or (place is Place.AUTO and not plan.board.flash.slow):
        return Regions()
    room = _room(plan.board, plan.arena)
    hot_code = HOT_CODE if plan.library.folder is None else HOT_CODE_OF_CMSIS_NN
    if place is Place.RAM:
        needed = hot_code + plan.constant_bytes
        if needed > room:
            raise PlanError(
                f"kernels and constants take {needed:,} bytes of RAM; beside the arena {max(room, 0):,} are free",
                where=f"{plan.model} on {plan.board.name}",
                hint="With `--place auto` the parts that matter most go to RAM, as far as they fit.",
            )
        return Regions(code_in_ram=True, constants_in_ram=frozenset(plan.constants))
    room -= _MARGIN
    if room < hot_code:
        return Regions()
    room -= hot_code
    chosen: set[int] = set()
    for id in sorted(plan.constants, key=lambda id: (-_reads_per_byte(plan, id), plan.tensor(id).nbytes)):
        if plan.tensor(id).nbytes <= room:
            chosen.add(id)
            room -= plan.tensor(id).nbytes
    return Regions(code_in_ram=True, constants_in_ram=_with_equals(plan, chosen))


def _room(board: Board, arena: int) -> int:
    return board.ram.size - board.reserved_ram - board.stack - arena


def _reads_per_byte(plan: Plan, id: int) -> float:
    """How often one inference reads each byte of a constant, roughly: weights once per pixel of the output."""
    reads = 0.0
    for step in plan.steps:
        if id in (read for _, read in step.reads):
            reads += _positions(step.operator) if id == getattr(step.operator, "weight", None) else 1.0
    return reads


def _positions(op: Operator) -> float:
    if isinstance(op, Conv2d | DepthwiseConv2d | TransposeConv2d):
        return float(prod(op.output_shape[:3]))
    return 1.0


def _with_equals(plan: Plan, chosen: set[int]) -> frozenset[int]:
    """Constants with the same bytes are one array: where one of them goes, all go."""
    contents = {plan.tensor(id).constant for id in chosen}
    return frozenset(id for id in plan.constants if plan.tensor(id).constant in contents)
