"""Building: what a project takes, what a broken one says, and what the wheel carries."""

import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import golden_input, golden_plan
from toolkit.board import load_board
from toolkit.building import build
from toolkit.errors import BuildError, ToolError
from toolkit.rendering import render

ROOT = Path(__file__).parents[2]


def test_sizes_by_part(built):
    plan, image = built("dae", "qemu-m33")
    assert image.flash.constants == plan.constant_bytes
    assert image.ram.arena == plan.arena
    assert image.ram.stack == plan.board.stack
    assert 2000 < image.flash.code < plan.board.reserved_flash
    assert 1000 < image.ram.static < plan.board.reserved_ram


@pytest.mark.parametrize("name", ["ds_cnn", "resnet8", "mbv1"])
def test_the_boards_estimates_cover_what_a_model_takes(built, name):
    plan, image = built(name, "qemu-m33")
    assert image.flash.code <= plan.board.reserved_flash
    assert image.ram.static <= plan.board.reserved_ram


def test_the_kernel_library_is_built_once(tmp_path, monkeypatch):
    monkeypatch.setenv("DEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    plan = golden_plan("dae", "qemu-m33")
    said = []
    for folder in ("a", "b"):
        render(plan, tmp_path / folder)
        build(tmp_path / folder, plan.board, progress=said.append)
    assert said == ["compiling the kernels (once)", "compiling the runner", "compiling the runner"]
    assert [path.name for path in (tmp_path / "cache" / "kernels").rglob("*.a")] == ["libdeploy_kernels.a"]


def test_a_compilers_complaint_is_shown(tmp_path):
    plan = golden_plan("dae", "host")
    render(plan, tmp_path / "p")
    (tmp_path / "p" / "model.cpp").write_text("int x = nonsense;\n")
    with pytest.raises(BuildError, match="compiling failed") as caught:
        build(tmp_path / "p", plan.board)
    assert "nonsense" in caught.value.hint


def test_a_build_tree_from_elsewhere_is_begun_anew(tmp_path):
    plan = golden_plan("dae", "host")
    render(plan, tmp_path / "p")
    build(tmp_path / "p", plan.board)
    (tmp_path / "p").rename(tmp_path / "moved")
    assert build(tmp_path / "moved", plan.board).elf == tmp_path / "moved" / "build" / "runner"


def test_a_folder_without_a_project(tmp_path):
    with pytest.raises(BuildError, match="there is no project here"):
        build(tmp_path, load_board("host"))


def test_flags_the_compiler_does_not_know(tmp_path):
    plan = golden_plan("dae", "qemu-m33")
    board = replace(plan.board, flags=("-mcpu=cortex-m99",))
    render(replace(plan, board=board), tmp_path / "p")
    with pytest.raises(BuildError, match="failed") as caught:
        build(tmp_path / "p", board)
    assert "cortex-m99" in caught.value.hint


def test_a_missing_tool_says_how_to_get_it(tmp_path, monkeypatch):
    plan = golden_plan("dae", "qemu-m33")
    render(plan, tmp_path / "p")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"arm-none-eabi-g\+\+ is not installed") as caught:
        build(tmp_path / "p", plan.board)
    assert "apt-get install gcc-arm-none-eabi" in caught.value.hint


def test_the_wheel_carries_everything(tmp_path):
    """Built, unpacked where no checkout is, and used from there."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = (tmp_path / "dist").glob("mcu_deploy-*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        assert "toolkit/py.typed" in archive.namelist()
    numpy_file = tmp_path / "in.npy"
    np.save(numpy_file, golden_input("dae"))
    script = f"import sys; sys.path.insert(0, {str(site)!r}); import toolkit; print(toolkit.__file__); "
    words = [str(ROOT / "tests/golden/models/dae/dae.pte"), "--board", "host", "--input", str(numpy_file), "--json"]
    done = subprocess.run(
        [sys.executable, "-c", script + "from toolkit.cli import main; main()", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(site / "toolkit"))
    assert (site / "toolkit" / "resources" / "examples" / "digits.py").is_file()
