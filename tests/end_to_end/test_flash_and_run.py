"""A board that is flashed once and used by other commands."""

import re
import signal
import subprocess
import sys

import numpy as np

from .conftest import GOLDEN

COMMAND = [sys.executable, "-c", "from toolkit.cli import main; main()"]


def test_a_virtual_board_stays_until_it_is_stopped(tmp_path, deploy):
    dae = GOLDEN / "dae"
    built = deploy("build", dae / "dae.pte", "--board", "qemu-m33", "--out", "project")
    assert built.status == 0, built.stderr
    assert built.stdout.strip() == str(tmp_path / "project" / "build" / "runner.elf")
    board = subprocess.Popen([*COMMAND, "flash", "project"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        port = board.stdout.readline().strip()
        assert re.fullmatch(r"/dev/pts/\d+", port)
        shown = deploy("run", port)
        assert shown.status == 0, shown.stderr
        assert "dae on qemu-m33 (deploy kernels)" in shown.stderr
        assert "input 0: float32 (1, 640)" in shown.stderr
        for _ in range(2):
            ran = deploy("run", port, "--input", dae / "input.npy", "--output", "out.npz")
            assert ran.status == 0, ran.stderr
            answer = np.load(tmp_path / "out.npz")["output0"]
            assert answer.tobytes() == np.load(dae / "output.npy").tobytes()
        wrong = deploy("run", port, "--input", GOLDEN / "ds_cnn" / "input.npy")
        assert wrong.status == 1
        assert "the arrays have [490] elements" in wrong.stderr
    finally:
        board.send_signal(signal.SIGINT)
        assert board.wait(timeout=20) == 130


def test_a_project_that_is_not_built_says_how(deploy):
    rendered = deploy("render", GOLDEN / "dae" / "dae.pte", "--board", "host", "--out", "project")
    assert rendered.status == 0, rendered.stderr
    result = deploy("flash", "project")
    assert result.status == 1
    assert "the project is not built" in result.stderr
    assert "Build it: deploy build project" in result.stderr


def test_a_folder_that_is_no_project(deploy, tmp_path):
    (tmp_path / "mine").mkdir()
    for words in (("flash", "mine"), ("build", "mine")):
        result = deploy(*words)
        assert result.status == 1
        assert "this folder holds no rendered project" in result.stderr
