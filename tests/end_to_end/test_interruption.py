"""A command that ends, however it ends, leaves no process and no half-written file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import GOLDEN

COMMAND = [sys.executable, "-c", "from toolkit.cli import main; main()"]


def emulators_of(project):
    """Ids of QEMU processes that run an image of this project."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"qemu" in words[0] and any(str(project).encode() in word for word in words):
                found.append(int(folder.name))
    return found


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.parametrize(("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_the_emulator_never_outlives_the_command(tmp_path, signum, status):
    model = GOLDEN / "mbv1"
    words = [model / "mbv1.pte", "--board", "qemu-m33", "--input", model / "input.npy", "--layers"]
    process = subprocess.Popen([*COMMAND, *map(str, words)], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: emulators_of(tmp_path) or process.poll() is not None)
    assert process.poll() is None, process.stderr.read()
    os.kill(process.pid, signum)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == status
    assert "Traceback" not in stderr
    wait_for(lambda: not emulators_of(tmp_path), seconds=5)


def test_an_interrupted_job_is_completed_by_the_next(tmp_path, deploy):
    """Stopped at several moments while rendering and building, then run to the end."""
    model = GOLDEN / "dae"
    words = [model / "dae.pte", "--board", "qemu-m33", "--input", model / "input.npy", "--output", "out.npz"]
    cache = {"DEPLOY_CACHE_DIR": str(tmp_path / "cache")}
    for delay in (0.2, 0.4, 0.6, 0.8, 1.1):
        process = subprocess.Popen(
            [*COMMAND, *map(str, words)], cwd=tmp_path, stderr=subprocess.PIPE, env=os.environ | cache
        )
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
        assert process.returncode in (0, 130), stderr
        assert b"Traceback" not in stderr
    result = deploy(*words, "--json", **cache)
    assert result.status == 0, result.stderr
    assert result.json["verified"] is True
    leftovers = [path for path in tmp_path.rglob("*") if ".part" in path.name]
    assert leftovers == []
