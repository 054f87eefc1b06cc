"""Where activations and scratch lie in the arena: lifetimes first, then offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 8
"""Bytes; enough for every kernel's widest load."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Bytes that must stay untouched from step `first` to step `last`, both included."""

    nbytes: int
    first: int
    last: int


def allocate(demands: Sequence[Demand]) -> tuple[list[int], int]:
    """Offsets for all demands, and the bytes of the arena that holds them.

    Greedy by size: the largest demand first, each at the lowest offset where it overlaps nothing that lives at the
    same time. (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, section 5.2.)
    """
    offsets = [0] * len(demands)
    placed: list[int] = []
    for index in sorted(range(len(demands)), key=lambda i: (-demands[i].nbytes, demands[i].first)):
        demand = demands[index]
        neighbours = sorted(
            (other for other in placed if _live_together(demands[other], demand)), key=lambda i: offsets[i]
        )
        offset = 0
        for other in neighbours:
            if offset + demand.nbytes <= offsets[other]:
                break
            offset = max(offset, _aligned(offsets[other] + demands[other].nbytes))
        offsets[index] = offset
        placed.append(index)
    arena = max((offsets[i] + demands[i].nbytes for i in placed), default=0)
    return offsets, _aligned(arena)


def _live_together(a: Demand, b: Demand) -> bool:
    return a.first <= b.last and b.first <= a.last


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
