"""Loops around an elementwise kernel that takes operands of one shape, for operands that broadcast."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from toolkit.program.types import Shape


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop: how often it runs, and by how many elements each operand moves on."""

    count: int
    input_step: int
    other_step: int
    output_step: int


def loops_of(input_shape: Shape, other_shape: Shape, output_shape: Shape) -> tuple[tuple[Loop, ...], int]:
    """The loops, outermost first, around a kernel that works on a block, and the elements of that block.

    Shapes are physical and broadcast as numpy's do. Neighbouring axes that both operands step through alike are one
    loop; the innermost axes that no operand repeats are the block.
    """
    rank = len(output_shape)
    first = (1,) * (rank - len(input_shape)) + tuple(input_shape)
    second = (1,) * (rank - len(other_shape)) + tuple(other_shape)
    # (size, whether the first operand moves, whether the second does), axes of size 1 left out
    axes = [(size, first[axis] == size, second[axis] == size) for axis, size in enumerate(output_shape) if size != 1]
    merged: list[tuple[int, bool, bool]] = []
    for size, moves_first, moves_second in axes:
        if merged and merged[-1][1:] == (moves_first, moves_second):
            merged[-1] = (merged[-1][0] * size, moves_first, moves_second)
        else:
            merged.append((size, moves_first, moves_second))
    block = 1
    if merged and merged[-1][1:] == (True, True):
        block = merged.pop()[0]
    loops = []
    for position, (count, moves_first, moves_second) in enumerate(merged):
        inner = merged[position + 1 :]
        loops.append(
            Loop(
                count=count,
                input_step=block * prod(size for size, moves, _ in inner if moves) if moves_first else 0,
                other_step=block * prod(size for size, _, moves in inner if moves) if moves_second else 0,
                output_step=block * prod(size for size, _, _ in inner),
            )
        )
    return tuple(loops), block
