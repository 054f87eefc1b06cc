"""Running the command line as a user does."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "models"
MODELS = ("ds_cnn", "resnet8", "mbv1", "dae")


@dataclass(frozen=True)
class Result:
    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.stdout)


@pytest.fixture
def deploy(tmp_path):
    """Calls `deploy` in an empty folder."""

    def call(*words: str | Path, cwd: Path = tmp_path, **environment: str) -> Result:
        command = [sys.executable, "-c", "from toolkit.cli import main; main()", *map(str, words)]
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=600, env=os.environ | environment, check=False
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return call
