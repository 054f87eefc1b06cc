"""The four golden models, from `.pte` to a verified run, against figures that come from elsewhere."""

import json
from pathlib import Path

import numpy as np
import pytest

from .conftest import GOLDEN, MODELS

# Bytes of flash (code and constants) and of RAM (arena, static, deepest stack) that a model may take on qemu-m33.
MOST_FLASH = {"ds_cnn": 46_000, "resnet8": 100_000, "mbv1": 250_000, "dae": 290_000}
MOST_RAM = {"ds_cnn": 21_000, "resnet8": 56_000, "mbv1": 144_000, "dae": 9_000}
# Instructions per inference of the stock stack (interpreter and CMSIS-NN, -O2).
STOCK_INSTRUCTIONS = {"ds_cnn": 8_272_843, "resnet8": 30_002_272, "mbv1": 24_468_384, "dae": 598_224}

KEYS = {
    *("board", "model", "verified", "samples", "bytes_compared", "max_abs_diff_lsb", "accuracy"),
    *("instructions_per_inference", "latency_us", "kernels", "flash", "ram", "stages_s", "image", "project"),
}


def run(deploy, name, tmp_path, *words):
    output = tmp_path / "out.npz"
    folder = GOLDEN / name
    result = deploy(
        folder / f"{name}.pte", *words, "--input", folder / "input.npy", "--output", output, "--layers", "--json"
    )
    assert result.status == 0, result.stderr
    return result.json, np.load(output)


def assert_golden(name, answers):
    """Output and every instruction's result, byte for byte."""
    golden = np.load(GOLDEN / name / "output.npy")
    assert answers["output0"].dtype == golden.dtype
    assert answers["output0"].tobytes() == golden.tobytes()
    with np.load(GOLDEN / name / "intermediates.npz") as intermediates:
        assert set(answers.files) == {"output0", *intermediates.files}
        for key in intermediates.files:
            assert answers[key].shape == intermediates[key].shape, key
            assert answers[key].tobytes() == intermediates[key].tobytes(), key


@pytest.mark.parametrize("name", MODELS)
def test_on_the_virtual_board(deploy, tmp_path, name):
    report, answers = run(deploy, name, tmp_path, "--board", "qemu-m33")
    assert_golden(name, answers)
    assert set(report) == KEYS
    assert report["verified"] is True
    assert report["max_abs_diff_lsb"] == 0
    assert report["samples"] == 1
    assert report["bytes_compared"] == answers["output0"].nbytes
    assert report["flash"]["total"] == report["flash"]["code"] + report["flash"]["constants"] <= MOST_FLASH[name]
    ram = report["ram"]
    assert ram["total"] == ram["arena"] + ram["static"] + ram["stack"] <= MOST_RAM[name]
    assert 0 < ram["stack"] < 4096
    assert 0 < report["instructions_per_inference"] <= STOCK_INSTRUCTIONS[name]
    assert set(report["stages_s"]) == {"read", "plan", "render", "build", "flash", "verify"}


@pytest.mark.parametrize("name", MODELS)
def test_on_this_computer_under_sanitizers(deploy, tmp_path, name):
    report, answers = run(deploy, name, tmp_path, "--board", "host", "--sanitize")
    assert_golden(name, answers)
    assert report["verified"] is True
    assert report["instructions_per_inference"] is None
    assert report["latency_us"] > 0


def test_the_cost_of_every_layer_is_kept(deploy, tmp_path):
    report, _ = run(deploy, "ds_cnn", tmp_path, "--board", "qemu-m33")
    saved = json.loads((Path(report["project"]) / "build" / "report.json").read_text())
    assert saved | report == saved  # the same, and more
    layers = saved["layers"]
    assert [layer["macs"] for layer in layers[1:4]] == [320_000, 72_000, 512_000]
    assert layers[1]["kernel"] == "arm_depthwise_conv_wrapper_s8"
    total = sum(layer["instructions"] for layer in layers)
    assert total == pytest.approx(report["instructions_per_inference"], rel=0.01)


def test_counting_instructions_repeats_exactly(deploy, tmp_path):
    counts = {run(deploy, "dae", tmp_path, "--board", "qemu-m33")[0]["instructions_per_inference"] for _ in range(2)}
    assert len(counts) == 1
