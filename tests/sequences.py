"""Random sequences of faults on a board, each followed by a run without any: what the rooms that flash share."""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tests.processes import children, open_lines
from toolkit.errors import DeployError

Faults = TypeVar("Faults")


class Bed(Protocol):
    """One board for two runs."""

    def run(self) -> str:
        """The run with the faults; how it ended, as `ending_of` says it."""

    def repair(self) -> str:
        """What is wrong after a run without faults, on the board as the first has left it; empty when all is well."""


@dataclass(frozen=True)
class Trial(Generic[Faults]):
    """A kind of sequence.

    Attributes:
        draw: the faults of one.
        bed: a board with these.
        endings: how a run with faults may end.
        longest_s: what it may take.
    """

    draw: Callable[[random.Random], Faults]
    bed: Callable[[Faults], AbstractContextManager[Bed]]
    endings: tuple[str, ...]
    longest_s: float


def ending_of(action: Callable[[], object], good: str) -> str:
    """`good`, or the class of an error, which says what to do next."""
    try:
        action()
    except DeployError as error:
        return type(error).__name__ if error.hint else f"an error without a next step: {error}"
    return good


def run_sequences(trial: Trial[Faults], count: int, seed: int) -> Counter[str]:
    """How `count` faulty runs ended; raises AssertionError at the first that ends otherwise than it may."""
    source = random.Random(seed)
    endings: Counter[str] = Counter()
    for number in range(count):
        faults = trial.draw(source)
        before = children(), open_lines()
        with trial.bed(faults) as bed:
            started = time.monotonic()
            ending = bed.run()
            assert time.monotonic() - started < trial.longest_s, (number, faults, ending)
            assert ending in trial.endings, (number, faults, ending)
            endings[ending] += 1
            wrong = bed.repair()
            assert not wrong, (number, faults, ending, wrong)
        assert (children(), open_lines()) == before, (number, faults, ending)
    return endings


def main(description: str | None, run: Callable[[int, int], Counter[str]]) -> None:
    """A command line around `run(count, seed)`, which prints how the runs ended."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    started = time.monotonic()
    endings = run(words.count, words.seed)
    print(f"{words.count} sequences in {time.monotonic() - started:.0f} s: {dict(endings)}")
