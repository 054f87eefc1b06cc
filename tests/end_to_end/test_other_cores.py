"""A program lowered for another core runs right on this one: nothing it precomputed for that core is trusted."""

import numpy as np
import pytest

from toolkit.program import read_program
from toolkit.program.types import Linear

MODEL = """
import torch
from torch import nn


def model():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=8, padding=1), nn.ReLU(),
        nn.AvgPool2d(4), nn.Flatten(), nn.Linear(32, 20), nn.ReLU(), nn.Linear(20, 5),
    )


def example_inputs():
    return (torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(1)),)


def calibration_inputs():
    source = torch.Generator().manual_seed(2)
    return [(torch.randn(1, 3, 8, 8, generator=source),) for _ in range(16)]
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """One model, lowered for three cores."""
    from toolkit import lowering

    path = tmp_path_factory.mktemp("model") / "small.py"
    path.write_text(MODEL)
    model = lowering.load_model(str(path), warn=print)
    return {cpu: lowering.lower(model, cpu).pte for cpu in ("cortex-m33", "cortex-m55", "cortex-m0plus")}


def test_the_core_shows_in_the_bytes(programs):
    assert len({bytes(pte) for pte in programs.values()}) >= 2


def test_every_one_runs_right_on_the_m33(programs, deploy, tmp_path):
    source = np.random.default_rng(5)
    np.save(tmp_path / "in.npy", source.normal(size=(20, 1, 3, 8, 8)).astype(np.float32))
    answers = {}
    for cpu, pte in programs.items():
        (tmp_path / f"{cpu}.pte").write_bytes(pte)
        words = ("--board", "qemu-m33", "--input", "in.npy", "--output", f"{cpu}.npz", "--json")
        result = deploy(f"{cpu}.pte", *words)
        assert result.status == 0, result.stderr
        assert result.json["verified"] is True
        answers[cpu] = np.load(tmp_path / f"{cpu}.npz")["output0"]
        assert answers[cpu].shape == (20, 1, 5)
    assert answers["cortex-m55"].tobytes() == answers["cortex-m33"].tobytes()
    assert answers["cortex-m0plus"].tobytes() == answers["cortex-m33"].tobytes()


def test_a_stored_kernel_sum_is_not_part_of_the_program(programs):
    program = read_program(programs["cortex-m55"], source="m55.pte")
    linears = [op for op in program.operators if isinstance(op, Linear)]
    assert len(linears) == 2
    for op in linears:
        assert op.bias is not None
        assert program.tensors[op.bias].nbytes == 4 * op.outputs
