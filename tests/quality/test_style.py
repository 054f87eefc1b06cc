"""Formatting and static checks are tools' work; here they run."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def check(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing():
    check(sys.executable, "-m", "ruff", "check", "--no-cache", ".")


def test_python_is_formatted():
    check(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", ".")


def test_mypy_is_content():
    check(sys.executable, "-m", "mypy", "--strict", "toolkit")


def test_c_and_cpp_are_formatted():
    sources = [str(path) for path in (ROOT / "firmware").rglob("*") if path.suffix in (".c", ".h", ".cpp")]
    assert len(sources) > 20
    clang_format = Path(sys.executable).with_name("clang-format")
    check(str(clang_format), "--dry-run", "--Werror", *sources)


@pytest.mark.parametrize("script", ["deploy", ".ci/run"])
def test_shell_scripts_parse(script):
    check("sh", "-n", script)


def test_no_part_of_the_product_is_left_unfinished():
    words = ("NotImplemented" + "Error", "TO" + "DO", "FIX" + "ME")
    for folder in ("toolkit", "firmware", "boards", "cmake"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                text = path.read_text(encoding="utf-8")
                assert not any(word in text for word in words), path
