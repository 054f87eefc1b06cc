"""The command line's words: defaults, help, and mistakes."""

import json

import numpy as np
import pytest

from tests.conftest import GOLDEN
from toolkit.cli.app import cli, run

DAE = str(GOLDEN / "dae" / "dae.pte")
DAE_INPUT = str(GOLDEN / "dae" / "input.npy")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def failure(capsys, *words):
    """Runs a command that must fail; what it says on standard error, in one line."""
    assert run(list(words)) != 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return " ".join(captured.err.split())


def test_help_names_every_command(capsys):
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    for command in ("export", "inspect", "render", "build", "flash", "run", "boards", "doctor"):
        assert f"\n  {command} " in out
    for option in ("--board", "--input", "--output", "--virtual", "--json"):
        assert option in out


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_command_explains_itself(capsys, command):
    assert run([command, "--help"]) == 0
    assert "Usage: deploy" in capsys.readouterr().out


def test_no_board(capsys):
    assert "no board is named" in failure(capsys, DAE)


def test_an_unknown_board_names_the_known_ones(capsys):
    assert "Known boards: feather-rp2350, giga-r1, host, nano-rp2040" in failure(capsys, DAE, "--board", "pico9")


def test_a_program_without_inputs_needs_one(capsys):
    assert "Add --input FILE.npy" in failure(capsys, DAE, "--board", "host")


def test_a_program_that_is_not_there(capsys):
    assert "No such file" in failure(capsys, "missing.pte", "--board", "host", "--input", DAE_INPUT)


def test_a_program_that_is_something_else(capsys, tmp_path):
    (tmp_path / "x.pte").write_bytes(b"PK\x03\x04" + bytes(1000))
    assert "x.pte" in failure(capsys, "x.pte", "--board", "host", "--input", DAE_INPUT)


def test_an_input_of_the_wrong_shape(capsys, tmp_path):
    np.save(tmp_path / "in.npy", np.zeros((1, 7), np.float32))
    assert "has shape (1, 7); the model takes (1, 640)" in failure(capsys, DAE, "--board", "host", "--input", "in.npy")


def test_an_input_of_the_wrong_type(capsys, tmp_path):
    np.save(tmp_path / "in.npy", np.zeros((1, 640), complex))
    assert "is complex128; the model takes float32" in failure(capsys, DAE, "--board", "host", "--input", "in.npy")


def test_an_input_that_is_no_array(capsys, tmp_path):
    (tmp_path / "in.npy").write_text("1, 2, 3")
    assert "the input cannot be read" in failure(capsys, DAE, "--board", "host", "--input", "in.npy")


def test_an_output_that_is_no_npz(capsys):
    words = (DAE, "--board", "host", "--input", DAE_INPUT, "--output", "out.csv")
    assert "--output writes .npz, not .csv" in failure(capsys, *words)


def test_an_output_folder_that_is_not_there(capsys):
    words = (DAE, "--board", "host", "--input", DAE_INPUT, "--output", "no/out.npz")
    assert "there is no such folder" in failure(capsys, *words)


def test_sanitizers_are_for_this_computer(capsys):
    assert "Use --board host" in failure(capsys, DAE, "--board", "qemu-m33", "--sanitize", "--input", DAE_INPUT)


def test_an_unknown_option(capsys):
    assert "No such option '--bord'" in failure(capsys, DAE, "--bord", "host")


def test_a_folder_that_holds_something_else_is_left_alone(capsys, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    message = failure(capsys, "render", DAE, "--board", "host", "--out", "mine")
    assert "not empty and was not rendered by deploy" in message
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_settings_name_model_and_board(capsys, tmp_path):
    (tmp_path / "deploy.toml").write_text(f'model = "{DAE}"\nboard = "host"\n')
    assert run(["--input", DAE_INPUT, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["model"], report["board"], report["verified"]) == ("dae", "host", True)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("bord = 'host'", "unknown key `bord`"),
        ("board = 4", "`board` should be a string"),
        ("board =", "not a TOML file"),
    ],
)
def test_a_mistake_in_the_settings_is_named(capsys, tmp_path, text, complaint):
    (tmp_path / "deploy.toml").write_text(text)
    message = failure(capsys, "--input", DAE_INPUT)
    assert complaint in message
    assert "deploy.toml" in message


def test_boards_as_data(capsys):
    assert run(["boards", "--json"]) == 0
    boards = {board["name"]: board for board in json.loads(capsys.readouterr().out)}
    assert boards["qemu-m33"]["cpu"] == "cortex-m33"
    assert boards["qemu-m33"]["virtual"] is True


def test_doctor_finds_every_tool_here(capsys):
    assert run(["doctor", "--json"]) == 0
    tools = {row["tool"]: row for row in json.loads(capsys.readouterr().out)}
    assert tools["qemu-system-arm"]["version"]
    assert tools["torch"]["version"].startswith("2.13.0")


def test_doctor_says_how_to_get_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["doctor"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "apt-get install qemu-system-arm" in out


def test_a_missing_compiler_names_the_package(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    message = failure(capsys, "build", DAE, "--board", "qemu-m33")
    assert "arm-none-eabi-g++ is not installed" in message
    assert "apt-get install gcc-arm-none-eabi" in message


def test_inspect_shows_operators_and_memory(capsys):
    assert run(["inspect", DAE, "--board", "qemu-m33"]) == 0
    out = capsys.readouterr().out
    assert "Linear" in out
    assert "int8 (1, 640)" in out
    assert "constants" in out
