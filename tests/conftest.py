"""What tests of several rooms need: golden models, planned and built."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from toolkit.board import load_board
from toolkit.building import build
from toolkit.planning import make_plan
from toolkit.program import read_program
from toolkit.rendering import render

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would every command under test.
signal.signal(signal.SIGINT, signal.default_int_handler)
# cmake, ninja and the checkers are packages of the environment that runs the tests.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

GOLDEN = Path(__file__).parent / "golden" / "models"


def golden_plan(name, board):
    """Plan of a golden model for a board."""
    program = read_program((GOLDEN / name / f"{name}.pte").read_bytes(), source=f"{name}.pte")
    return make_plan(program, load_board(board), model=name)


def golden_input(name):
    """The golden model's only input, logical shape."""
    return np.load(GOLDEN / name / "input.npy")


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Builds a golden model for a board, once per session: (plan, image)."""
    images = {}

    def get(name, board):
        if (name, board) not in images:
            plan = golden_plan(name, board)
            folder = tmp_path_factory.mktemp(f"{name}-{board}") / "project"
            render(plan, folder)
            images[name, board] = plan, build(folder, plan.board)
        return images[name, board]

    return get
