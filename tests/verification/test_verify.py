"""A board that answers wrong is found out."""

import shutil

import numpy as np
import pytest

from tests.conftest import golden_input, golden_plan
from toolkit import emulation
from toolkit.building import build
from toolkit.device import Device, Transport
from toolkit.errors import DeviceError, ModelError
from toolkit.program.types import DType, Tensor
from toolkit.verification import checked_sample, verify
from toolkit.verification.layout import from_memory, to_memory


def verdict_of(plan, image):
    with emulation.start(image, plan.board) as virtual, Transport(virtual.port) as transport:
        return verify(Device(transport), plan, [(golden_input("dae"),), (golden_input("dae") * 0.5,)])


def test_a_right_board(built):
    verdict = verdict_of(*built("dae", "host"))
    assert verdict.verified
    assert (verdict.samples, verdict.bytes_compared, verdict.max_abs_diff_lsb) == (2, 2 * 640 * 4, 0)


def test_wrong_weights_are_found_in_their_layer(built, tmp_path):
    plan, image = built("dae", "host")
    project = shutil.copytree(image.project, tmp_path / "p", ignore=shutil.ignore_patterns("build"))
    data = project / "model_data.c"
    before, symbol, after = data.read_text().partition("model_data_06_weight[1024] = {\n")
    weights, end, rest = after.partition("};")
    data.write_text(before + symbol + weights.replace("-", "") + end + rest)
    verdict = verdict_of(plan, build(project, plan.board))
    assert not verdict.verified
    assert verdict.max_abs_diff_lsb >= 1
    assert (verdict.difference.sample, verdict.difference.layer) == (0, 6)


def test_a_board_that_runs_another_program_is_refused(built):
    _, image = built("dae", "host")
    other = golden_plan("ds_cnn", "host")
    with emulation.start(image, other.board) as virtual, Transport(virtual.port) as transport:
        device = Device(transport)
        with pytest.raises(DeviceError, match="runs another program"):
            verify(device, other, [(golden_input("ds_cnn"),)])


def test_nothing_run_is_not_verified(built):
    plan, image = built("dae", "host")
    with emulation.start(image, plan.board) as virtual, Transport(virtual.port) as transport:
        assert not verify(Device(transport), plan, []).verified


def test_samples_are_checked():
    plan = golden_plan("dae", "host")
    with pytest.raises(ModelError, match="has 2 inputs; the model takes 1"):
        checked_sample((np.zeros(3), np.zeros(3)), plan, 0)
    with pytest.raises(ModelError, match=r"has shape \(640,\); the model takes \(1, 640\)"):
        checked_sample((np.zeros(640),), plan, 0)
    (array,) = checked_sample((np.zeros((1, 640), np.float64),), plan, 0)
    assert array.dtype == np.float32


@pytest.mark.parametrize("dim_order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)])
def test_memory_order_and_back(dim_order):
    tensor = Tensor(0, (2, 3, 4, 5), DType.INT8, dim_order)
    array = np.arange(120, dtype=np.int8).reshape(2, 3, 4, 5)
    memory = to_memory(array, tensor)
    assert memory.shape == tensor.physical_shape
    assert memory[1, 2, 0, 1] == array[tuple(np.array([1, 2, 0, 1])[np.argsort(dim_order)])]
    assert np.array_equal(from_memory(memory.reshape(-1), tensor), array)
