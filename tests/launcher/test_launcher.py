"""The launcher: what it checks, what it says, and that it hands over."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ("sh", "dirname", "cat", "cksum", "id", "mv", "rm", "printf", "env", "grep")


def launch(launcher, *words, **environment):
    done = subprocess.run(
        [launcher, *words], env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def checkout(tmp_path):
    """A folder with the launcher and the project's metadata, under a name that needs quoting."""
    folder = tmp_path / "a check out"
    folder.mkdir()
    for name in ("deploy", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def bare_path(tmp_path):
    """A PATH with nothing on it but the core utilities."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in CORE:
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return str(folder)


def pretend_set_up(checkout, extras):
    """A virtual environment whose programs show their words, with the mark that set-up leaves when it is done."""
    bin_folder = checkout / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    for name in ("deploy", "python"):
        program = bin_folder / name
        program.write_text('#!/bin/sh\nfor word in "$0" "$@"; do echo "[$word]"; done\nexit 7\n')
        program.chmod(0o755)
    summed = (checkout / "pyproject.toml").read_bytes() + (checkout / "deploy").read_bytes()
    total = subprocess.run(["cksum"], input=summed, capture_output=True, check=True).stdout.decode()
    (checkout / ".venv" / "deploy-setup").write_text(f"{total}{checkout}\n{extras}\n")
    return bin_folder


def test_it_hands_over_words_and_status(checkout):
    bin_folder = pretend_set_up(checkout, "examples,virtual")
    status, out, err = launch(checkout / "deploy", "my model.py", "--board", "x", PATH=os.environ["PATH"])
    assert (status, err) == (7, "")
    assert out.splitlines() == [f"[{bin_folder}/deploy]", "[my model.py]", "[--board]", "[x]"]


def test_test_runs_pytest_in_the_checkout(checkout):
    bin_folder = pretend_set_up(checkout, "test")
    _, out, _ = launch(checkout / "deploy", "test", "-k", "a b", PATH=os.environ["PATH"])
    assert out.splitlines() == [f"[{bin_folder}/python]", "[-m]", "[pytest]", "[-k]", "[a b]"]


def test_what_was_set_up_for_the_tests_serves_everything(checkout):
    pretend_set_up(checkout, "test")
    status, out, err = launch(checkout / "deploy", "--version", PATH=os.environ["PATH"])
    assert (status, err) == (7, "")
    assert "[--version]" in out


@pytest.mark.parametrize("changed", ["pyproject.toml", "deploy"])
def test_a_change_sets_up_again(checkout, bare_path, changed):
    pretend_set_up(checkout, "test")
    with (checkout / changed).open("a") as stream:
        stream.write("\n# changed\n")
    status, out, err = launch(checkout / "deploy", "--version", PATH=bare_path)
    assert status == 1
    assert out == ""
    assert "there is no python3" in err


def test_no_python_is_named_with_what_to_do(checkout, bare_path):
    status, out, err = launch(checkout / "deploy", "boards", PATH=bare_path)
    assert (status, out) == (1, "")
    assert "install Python 3.10 or newer (sudo apt-get install python3 python3-venv)" in err


def test_an_old_python_is_refused(checkout, tmp_path):
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\ncase "$1" in --version) echo Python 3.8.1;; *) exit 1;; esac\n')
    old.chmod(0o755)
    status, _, err = launch(checkout / "deploy", "boards", PATH=os.environ["PATH"], PYTHON=str(old))
    assert status == 1
    assert "Python 3.8.1 is too old" in err


def test_where_apt_may_not_run_it_says_the_command(checkout, bare_path, tmp_path):
    # A Python that is new enough and cannot make an environment: set-up ends there, after the tools were looked for.
    python = tmp_path / "python3"
    python.write_text(
        '#!/bin/sh\ncase "$2" in *version_info*) exit 0;; *"print("*) echo python3.11-venv;; *) exit 1;; esac\n'
    )
    python.chmod(0o755)
    status, _, err = launch(checkout / "deploy", "boards", PATH=bare_path, PYTHON=str(python), DEPLOY_APT="no")
    assert status == 1
    assert (
        "    sudo apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib "
        "qemu-system-arm gcc g++ libc6-dev\n"
    ) in err
