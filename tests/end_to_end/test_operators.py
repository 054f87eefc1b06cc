"""Every operator of the Cortex-M backend, lowered from an `nn.Module`, planned, rendered, built and run."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from toolkit import flashing
from toolkit.board import load_board
from toolkit.building import build
from toolkit.device import Device, Transport
from toolkit.planning import make_plan
from toolkit.program import read_program
from toolkit.reference import Reference
from toolkit.rendering import render
from toolkit.verification import fetch_layers, first_wrong_layer, verify

# One program there is for the reader to refuse: its convolutions stayed in float.
REFUSED = "convolutions_in_float"
LOWERED = Path(__file__).parents[1] / "program" / "lowered"
MODELS = sorted(path.stem for path in LOWERED.glob("*.pte") if path.stem != REFUSED)


@pytest.mark.parametrize("board_name", ["qemu-m33", "host"])
@pytest.mark.parametrize("name", MODELS)
def test_a_lowered_model_runs_right(name, board_name, tmp_path):
    board = load_board(board_name)
    program = read_program((LOWERED / f"{name}.pte").read_bytes(), source=name)
    plan = make_plan(program, board, model=name)
    render(plan, tmp_path / "project")
    image = build(tmp_path / "project", board, sanitize=board_name == "host")
    source = np.random.default_rng(11)
    shapes = [program.tensors[id] for id in program.inputs]
    samples = [tuple((source.normal(size=t.shape) * 3).astype(t.dtype.value) for t in shapes) for _ in range(3)]
    with flashing.flash(image, board) as running, Transport(running.port) as transport:
        device = Device(transport, stopped=running.stopped)
        runs = fetch_layers(device, plan, samples[0])
        wrong = first_wrong_layer(runs, plan, Reference(program).run(samples[0]))
        assert wrong is None, plan.steps[wrong]
        verdict = verify(device, plan, samples)
    assert verdict.verified, verdict.difference


def operators_of_the_backend():
    """Names in executorch's own list, in both layouts."""
    package = importlib.util.find_spec("executorch").submodule_search_locations[0]
    text = (Path(package) / "backends" / "cortex_m" / "ops" / "operators.yaml").read_text()
    return set(re.findall(r"func: (cortex_m::\w+)\.out", text))


def test_no_operator_of_the_backend_is_left_out():
    run = set()
    for name in MODELS:
        program = read_program((LOWERED / f"{name}.pte").read_bytes(), source=name)
        run |= {op.name.removesuffix(".out") for op in program.operators}
    assert len(operators_of_the_backend()) > 20
    assert operators_of_the_backend() - run == set()
