"""`deploy doctor` on what real Arduino boards need, which no other board does."""

import json

import pytest

from tests.arduino.cores import Cli, platforms
from toolkit.cli.app import run


@pytest.fixture
def cli(tmp_path, monkeypatch):
    double = Cli(tmp_path / "bin")
    monkeypatch.setenv("ARDUINO_CLI", str(double.path))
    return double


def row_of(capsys, tool):
    """The exit status, and what the doctor says of a tool."""
    status = run(["doctor", "--json"])
    (row,) = [row for row in json.loads(capsys.readouterr().out) if row["tool"] == tool]
    return status, row


def test_arduino_cli_and_its_cores(cli, capsys):
    cli.answer(cores=platforms(arduino__renesas_uno="1.4.1", arduino__mbed_nano="4.2.1"))
    status, row = row_of(capsys, "arduino-cli")
    assert (status, row["version"], row["path"], row["hint"]) == (0, "1.2.2", str(cli.path), "")
    there, missing = row["note"].split("; ")
    assert there == "cores: arduino:mbed_nano 4.2.1, arduino:renesas_uno 1.4.1"
    assert "arduino:mbed_giga (giga-r1)" in missing
    assert "nano33ble" not in missing


def test_cores_as_versions_before_1_list_them(cli, capsys):
    listed = [{"id": "arduino:zephyr", "installed": "0.53.0", "latest": "0.53.1", "name": "Arduino UNO Q Board"}]
    cli.answer(cores=listed, version={"Application": "arduino-cli", "VersionString": "0.35.3"})
    status, row = row_of(capsys, "arduino-cli")
    assert (status, row["version"]) == (0, "0.35.3")
    assert row["note"].startswith("cores: arduino:zephyr 0.53.0; ")


@pytest.mark.parametrize("cores", [platforms(), [], {"platforms": None}, {"platforms": [{}, 3]}])
def test_without_any_core(cli, capsys, cores):
    cli.answer(cores=cores)
    status, row = row_of(capsys, "arduino-cli")
    assert status == 0
    assert row["note"].startswith("cores: none; `arduino-cli core install` brings arduino:mbed_giga (giga-r1), ")


def test_without_arduino_cli_nothing_is_wrong(capsys, monkeypatch):
    monkeypatch.delenv("ARDUINO_CLI", raising=False)
    status, row = row_of(capsys, "arduino-cli")
    assert (status, row["version"], row["path"], row["hint"]) == (0, "", "", "")
    assert row["note"] == "only for real Arduino boards: put it on PATH, or name it by ARDUINO_CLI"


def test_an_arduino_cli_that_is_named_and_does_not_work(cli, capsys, monkeypatch):
    cli.path.write_text("#!/bin/sh\nexit 1\n")
    status, row = row_of(capsys, "arduino-cli")
    assert (status, row["hint"]) == (1, f"{cli.path}: arduino-cli gave no JSON")
    monkeypatch.setenv("ARDUINO_CLI", "/nonexistent/cli")
    status, row = row_of(capsys, "arduino-cli")
    assert (status, row["hint"]) == (1, "/nonexistent/cli: ARDUINO_CLI names no program")


UPLOADERS = [
    ("bossac", "--help", "Basic Open Source SAM-BA Application (BOSSA) Version 1.9.1", "1.9.1", "nano33ble"),
    ("dfu-util", "--version", "dfu-util 0.11", "0.11", "giga-r1"),
]


@pytest.mark.parametrize(("tool", "option", "says", "version", "board"), UPLOADERS)
def test_what_uploads(capsys, monkeypatch, tmp_path, tool, option, says, version, board):
    program = tmp_path / tool
    program.write_text(f'#!/bin/sh\n[ "$*" = "{option}" ] || exit 1\necho "{says}"\n')
    program.chmod(0o755)
    variable = tool.upper().replace("-", "_")
    monkeypatch.setenv(variable, str(program))
    status, row = row_of(capsys, tool)
    assert (status, row["version"], row["path"], row["hint"]) == (0, version, str(program), "")
    assert row["note"].startswith("uploads to ")
    assert board in row["note"]
    monkeypatch.setenv(variable, "/nonexistent/program")
    status, row = row_of(capsys, tool)
    assert (status, row["hint"]) == (1, f"{variable} names no program: /nonexistent/program")


@pytest.mark.parametrize(("tool", "package"), [("bossac", "bossa-cli"), ("dfu-util", "dfu-util")])
def test_without_what_uploads_nothing_is_wrong(capsys, monkeypatch, tmp_path, tool, package):
    monkeypatch.delenv(tool.upper().replace("-", "_"), raising=False)
    monkeypatch.setenv("ARDUINO_DIRECTORIES_DATA", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    _, row = row_of(capsys, tool)
    assert (row["version"], row["path"], row["hint"]) == ("", "", "")
    assert row["note"].startswith("only for real Arduino boards (uploads to ")
    assert row["note"].endswith(f"or as package {package}")


def test_the_table_marks_what_is_not_there_and_not_missed(cli, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    cli.answer(cores=platforms(arduino__mbed_nano="4.2.1"))
    assert run(["doctor"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "✗" not in out
    assert f"✓ arduino-cli 1.2.2 {str(cli.path)[:10]}" in out
    assert "cores: arduino:mbed_nano 4.2.1" in out
    monkeypatch.delenv("ARDUINO_CLI")
    assert run(["doctor"]) == 0
    assert "- arduino-cli only for real Arduino boards" in " ".join(capsys.readouterr().out.split())
