"""Where activations and scratch lie in the arena: lifetimes first, then offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 8
"""Bytes; enough for every kernel's widest load."""


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes that must stay untouched from step `first` to step `last`, both included."""

    nbytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Demand:
    """Blocks that start at the same offset: one tensor, or tensors that are computed in place one after the other."""

    blocks: tuple[Block, ...]

    @property
    def nbytes(self) -> int:
        """Of its largest block."""
        return max(block.nbytes for block in self.blocks)


def allocate(demands: Sequence[Demand]) -> tuple[list[int], int]:
    """Offsets for all demands, and the bytes of the arena that holds them.

    Greedy by size: the largest demand first, each at the lowest offset where it overlaps nothing that lives at the
    same time. (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, section 5.2.)
    """
    offsets = [0] * len(demands)
    placed: list[tuple[int, Block]] = []
    for index in sorted(range(len(demands)), key=lambda i: (-demands[i].nbytes, demands[i].blocks[0].first)):
        blocks = demands[index].blocks
        candidates = sorted({0, *(_aligned(offset + other.nbytes) for offset, other in placed)})
        offset = next(
            at for at in candidates if not any(_clash(at, b, there, o) for b in blocks for there, o in placed)
        )
        offsets[index] = offset
        placed += [(offset, block) for block in blocks]
    arena = max((offset + block.nbytes for offset, block in placed), default=0)
    return offsets, _aligned(arena)


def _clash(a_offset: int, a: Block, b_offset: int, b: Block) -> bool:
    """Whether two blocks overlap in time and in memory."""
    together = a.first <= b.last and b.first <= a.last
    return together and a_offset < b_offset + b.nbytes and b_offset < a_offset + a.nbytes


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
