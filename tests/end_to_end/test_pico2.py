"""The virtual Pico 2: the same UF2, through touch, drive, re-enumeration and USB serial."""

import json
from pathlib import Path

import numpy as np
import pytest

from toolkit.building.pico_sdk import fetch_pico_sdk

from .conftest import GOLDEN, MODELS, ROOT


@pytest.fixture(scope="module", autouse=True)
def sdk():
    """The SDK, fetched on the first run."""
    return fetch_pico_sdk()


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """One folder for all: a change of model or board rebuilds only what it touches."""
    return tmp_path_factory.mktemp("pico2") / "project"


@pytest.fixture
def run(deploy, tmp_path, project):
    """Deploys a golden model; the result, and the file with the board's answer."""

    def call(name, board, *words):
        output = tmp_path / "answer.npz"
        files = ("--input", GOLDEN / name / "input.npy", "--output", output)
        out = ("--out", project) if "--virtual" in words else ()
        return deploy(GOLDEN / name / f"{name}.pte", "--board", board, *words, *files, *out, "--json"), output

    return call


@pytest.mark.parametrize("name", MODELS)
def test_golden_models_give_golden_outputs_and_count_as_on_qemu(run, name):
    counts = {}
    for board, *words in (("pico2", "--virtual"), ("qemu-m33",)):
        result, output = run(name, board, *words)
        assert result.status == 0, result.stderr
        assert result.json["verified"] is True
        assert np.load(output)["output0"].tobytes() == np.load(GOLDEN / name / "output.npy").tobytes()
        counts[board] = result.json["instructions_per_inference"]
    assert counts["pico2"] == pytest.approx(counts["qemu-m33"], rel=0.01)


def test_the_digits_example(deploy, project):
    result = deploy(ROOT / "examples" / "digits.py", "--board", "pico2", "--virtual", "--json", "--out", project)
    assert result.status == 0, result.stderr
    report = result.json
    assert report["verified"] is True
    assert report["samples"] >= 360
    assert report["bytes_compared"] == report["samples"] * 40
    assert report["max_abs_diff_lsb"] == 0
    assert report["accuracy"]["device"] == report["accuracy"]["host"] >= 0.97


def test_what_is_placed_in_ram_runs_the_same(run):
    """Instructions do not change with the place; where code and weights are does."""
    reports = {}
    for place in ("ram", "flash"):
        result, _ = run("ds_cnn", "pico2", "--virtual", "--place", place)
        assert result.status == 0, result.stderr
        reports[place] = result.json
    assert reports["ram"]["ram"]["static"] - reports["flash"]["ram"]["static"] > 25_904
    assert reports["ram"]["instructions_per_inference"] == pytest.approx(
        reports["flash"]["instructions_per_inference"], rel=0.005
    )
    saved = json.loads((Path(reports["flash"]["project"]) / "build" / "report.json").read_text())
    assert saved["placement"] == "deploy kernels"


@pytest.mark.parametrize("board", ["pico2_w", "feather-rp2350", "xiao-rp2350"])
def test_boards_of_the_same_family_are_data_only(run, board):
    result, _ = run("dae", board, "--virtual")
    assert result.status == 0, result.stderr
    assert result.json["verified"] is True


def test_what_does_not_fit_is_refused_before_anything_is_built(run, tmp_path):
    # 112 KB: the float image of the input alone takes 108.
    small = (ROOT / "boards" / "pico2.toml").read_text().replace("size = 0x82000", "size = 0x1C000")
    (tmp_path / "small.toml").write_text(small)
    result, _ = run("mbv1", tmp_path / "small.toml", "--virtual", "--place", "flash")
    assert result.status == 1
    assert "does not fit the ram of small" in result.stderr
    assert "110,592" in result.stderr
    assert "take a larger board" in result.stderr
    assert "build" not in result.stderr
