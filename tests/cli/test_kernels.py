"""The words that choose the kernel library, and mistakes in them."""

import json
from pathlib import Path

import pytest

from tests.cmsis_nn import tree
from tests.conftest import GOLDEN
from toolkit.cli.app import run

DAE = str(GOLDEN / "dae" / "dae.pte")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CMSIS_NN_PATH", raising=False)


@pytest.fixture
def copy(tmp_path):
    """An installed library with an empty archive: enough to be chosen."""
    folder = tmp_path / "cmsis-nn"
    tree.headers(folder / "include")
    (folder / "lib").mkdir()
    (folder / "lib" / "libcmsis-nn.a").write_bytes(b"!<arch>\n")
    return folder


def render(*words):
    """Renders for the host; the project's model.h."""
    assert run(["render", DAE, "--board", "host", "--out", "project", *map(str, words)]) == 0
    return Path("project/model.h").read_text()


def failure(capsys, *words):
    assert run([str(word) for word in words]) == 1
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return " ".join(captured.err.split())


@pytest.mark.parametrize("command", ["render", "build", "deploy"])
def test_commands_that_take_them(capsys, command):
    assert run([command, "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "--kernels [auto|deploy|cmsis-nn]" in out
    assert "--cmsis-nn PATH" in out
    assert "[default: $CMSIS_NN_PATH]" in out


def test_without_a_copy_our_kernels_are_taken():
    assert '#define MODEL_KERNELS "deploy kernels"' in render()
    assert '#define MODEL_KERNELS "deploy kernels"' in render("--kernels", "deploy")


@pytest.mark.parametrize("kernels", ["auto", "cmsis-nn"])
def test_a_copy_that_is_named_is_taken(copy, kernels):
    assert '"Arm CMSIS-NN (header V.18.0.0): 10 of 12 layers, ours for 2"' in render(
        "--kernels", kernels, "--cmsis-nn", copy
    )


def test_the_environment_names_one(copy, monkeypatch):
    monkeypatch.setenv("CMSIS_NN_PATH", str(copy))
    assert "Arm CMSIS-NN" in render()
    assert '"deploy kernels"' in render("--kernels", "deploy")


def test_a_copy_is_wanted_and_none_is_named(capsys):
    message = failure(capsys, "render", DAE, "--board", "host", "--kernels", "cmsis-nn")
    assert "no Arm CMSIS-NN is named: neither --cmsis-nn nor CMSIS_NN_PATH is set" in message
    assert "release 7.0.0 or newer" in message


@pytest.mark.parametrize("kernels", ["auto", "cmsis-nn"])
def test_a_copy_that_is_not_there_is_never_passed_over(capsys, monkeypatch, tmp_path, kernels):
    monkeypatch.setenv("CMSIS_NN_PATH", str(tmp_path / "gone"))
    message = failure(capsys, "render", DAE, "--board", "host", "--kernels", kernels).replace("- ", "-")
    assert "gone: there is no such folder, and so no CMSIS-NN" in message


def test_a_copy_is_named_that_is_not_used(capsys, copy):
    message = failure(capsys, "render", DAE, "--board", "host", "--kernels", "deploy", "--cmsis-nn", copy)
    assert "--cmsis-nn names a library that --kernels deploy does not use" in message


def test_a_project_of_ours_is_not_built_with_arms(capsys, copy):
    render()
    message = failure(capsys, "build", "project", "--cmsis-nn", copy)
    assert "this project is rendered with --kernels deploy" in message
    assert "deploy render MODEL --kernels cmsis-nn" in message


def test_a_new_release_is_warned_of(capsys, copy):
    (copy / "ARM.CMSIS-NN.pdsc").write_text('<release version="9.1.0">')
    assert '"Arm CMSIS-NN 9.1.0: ' in render("--cmsis-nn", copy)
    assert "Arm CMSIS-NN 9.1.0 is newer than 8.0.0" in " ".join(capsys.readouterr().err.split())


def doctors_row(capsys):
    status = run(["doctor", "--json"])
    (row,) = [row for row in json.loads(capsys.readouterr().out) if row["tool"] == "CMSIS-NN"]
    return status, row


def test_doctor_does_not_miss_it(capsys):
    status, row = doctors_row(capsys)
    assert status == 0
    assert (row["path"], row["hint"]) == ("", "")
    assert "CMSIS_NN_PATH" in row["note"]


def test_doctor_shows_it(capsys, monkeypatch, copy):
    monkeypatch.setenv("CMSIS_NN_PATH", str(copy))
    status, row = doctors_row(capsys)
    assert (status, row["version"], row["path"]) == (0, "V.18.0.0", str(copy))


def test_doctor_shows_what_is_wrong_with_it(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("CMSIS_NN_PATH", str(tmp_path))
    status, row = doctors_row(capsys)
    assert status == 1
    assert "there is no CMSIS-NN here" in row["hint"]
