"""Mutated programs: refused, or planned and written without a stumble."""

import time
from collections import Counter

import numpy as np
import pytest

from tests.interpreter.conftest import PROGRAMS
from tests.program import document
from tests.program.mutate import BYTE_MUTATIONS, LONGEST_S, mutate_document
from toolkit.board import load_board
from toolkit.errors import PlanError, ProgramError
from toolkit.interpreter import make_interpreter_plan
from toolkit.interpreter.project import contents_of_project

MUTANTS = 300


@pytest.mark.parametrize("name", ["linears_m33", "convolutions_explicit", "gate_legacy"])
def test_mutants_are_refused_or_planned(name):
    data = PROGRAMS[name].read_bytes()
    original = document.load(data)
    rng = np.random.default_rng(1)
    board = load_board("host")
    endings = Counter()
    for number in range(MUTANTS):
        mutation = BYTE_MUTATIONS[int(rng.integers(len(BYTE_MUTATIONS)))]
        mutant = mutate_document(original, rng) if number % 4 == 3 else mutation(data, rng)
        start = time.process_time()
        try:
            plan = make_interpreter_plan(mutant, board, model="mutant", source="mutant.pte")
            assert all(text.isascii() for text in contents_of_project(plan).values())
            endings["planned"] += 1
        except (ProgramError, PlanError):
            endings["refused"] += 1
        assert time.process_time() - start < LONGEST_S
    assert endings["refused"] > MUTANTS / 4
    assert endings["planned"] > MUTANTS / 20
