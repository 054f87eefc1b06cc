"""Every Arduino board's sketch on its virtual twin: golden models give golden bytes, the digits are read."""

import re

import numpy as np
import pytest

from tests.conftest import GOLDEN
from tests.end_to_end.conftest import MODELS
from tests.end_to_end.conftest import deploy as deploy
from toolkit.board import board_names, load_board
from toolkit.building import build
from toolkit.device import Device, Transport
from toolkit.emulation import start
from toolkit.lowering import load_model, lower
from toolkit.planning import make_plan
from toolkit.program import read_program
from toolkit.rendering.sketch import render_sketch
from toolkit.resources import resource
from toolkit.verification import verify

BOARDS = [name for name in board_names() if load_board(name).arduino is not None]
SMALL = ("uno-r4-minima", "uno-r4-wifi")
"""32 KB of RAM and 256 KB of flash: the digits fit, no golden model does."""


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("board", [name for name in BOARDS if name not in SMALL])
def test_golden_models_give_golden_bytes(deploy, tmp_path, board, model):
    folder = GOLDEN / model
    words = ("--board", board, "--virtual", "--input", folder / "input.npy", "--output", "out.npz", "--layers")
    result = deploy(folder / f"{model}.pte", *words, "--json")
    assert result.status == 0, result.stderr
    assert result.json["verified"] is True
    assert result.json["max_abs_diff_lsb"] == 0
    answer = np.load(tmp_path / "out.npz")["output0"]
    assert answer.tobytes() == np.load(folder / "output.npy").tobytes()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("board", SMALL)
def test_a_model_that_is_too_large_is_refused_with_a_table_and_leaves_no_folder(deploy, tmp_path, board, model):
    folder = GOLDEN / model
    result = deploy(folder / f"{model}.pte", "--board", board, "--virtual", "--input", folder / "input.npy")
    assert result.status == 1
    assert re.search(rf"does not fit the .* of {board}", result.stderr)
    assert re.search(r"flash +constants +[\d,]+\n", result.stderr)
    assert re.search(r"ram +arena +[\d,]+\n", result.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The bundled example and its program, trained and lowered once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEPLOY_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        spec = load_model(str(resource("examples") / "digits.py"), warn=pytest.fail)
        return spec, read_program(lower(spec, "cortex-m4").pte, source="digits.pte")


@pytest.mark.parametrize("board", BOARDS)
def test_digits_are_read_as_the_reference_reads_them(digits, tmp_path, board):
    spec, program = digits
    plan = make_plan(program, load_board(board), model="digits")
    folder = render_sketch(plan, tmp_path / "Digits", labels=spec.class_names).folder
    assert "model.label(best)" in (folder / "Digits.ino").read_text()
    virtual = plan.board.virtual()
    with start(build(folder, virtual), virtual) as running, Transport(running.port) as transport:
        verdict = verify(Device(transport, stopped=running.stopped), plan, spec.evaluation)
    assert (verdict.samples, verdict.bytes_compared) == (450, 18_000)
    assert verdict.max_abs_diff_lsb == 0
    assert verdict.verified
    best = np.array([outputs[0].argmax() for outputs in verdict.device])
    assert (best == spec.labels).mean() > 0.98
