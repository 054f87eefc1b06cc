"""`arduino-cli`, played by a script that prints what the real one prints."""

import json
import sys

import pytest

from tests.arduino.bootloader import SimulatedBoard
from tests.conftest import golden_plan
from toolkit.board import load_board
from toolkit.building import build
from toolkit.building.arduino_cli import device_elf, find_arduino_cli
from toolkit.errors import BuildError, FlashError, ToolError
from toolkit.flashing.arduino import ArduinoFlasher, Patience
from toolkit.rendering.sketch import render_sketch

DOUBLE = """#!{python}
import json, pathlib, shutil, sys
words = sys.argv[1:]
pathlib.Path(r"{calls}").open("a").write(json.dumps(words) + chr(10))
answer = json.loads(pathlib.Path(r"{answer}").read_text())
if words[0] == "compile" and answer.get("success"):
    folder = pathlib.Path(words[words.index("--output-dir") + 1])
    folder.mkdir(parents=True, exist_ok=True)
    name = pathlib.Path(words[-3]).name
    shutil.copy(r"{elf}", folder / (name + ".ino.elf"))
    (folder / (name + ".ino.bin")).write_bytes(b"program")
print(json.dumps(answer))
sys.exit(1 if "error" in answer else 0)
"""


def compiled(text, data):
    sections = [{"name": "text", "size": text, "max_size": 983040}, {"name": "data", "size": data, "max_size": 262144}]
    return {"compiler_out": "", "compiler_err": "", "builder_result": {"executable_sections_size": sections}} | {
        "success": True
    }


@pytest.fixture
def cli(tmp_path, monkeypatch, built):
    """Installs the double; called with the answer it shall give. Returns the words it was called with."""
    calls = tmp_path / "calls"
    _, image = built("dae", "qemu-m33")

    def install(answer):
        (tmp_path / "answer.json").write_text(json.dumps(answer))
        script = tmp_path / "arduino-cli"
        where = {"python": sys.executable, "calls": calls, "answer": tmp_path / "answer.json", "elf": image.elf}
        script.write_text(DOUBLE.format(**where))
        script.chmod(0o755)
        monkeypatch.setenv("ARDUINO_CLI", str(script))
        return lambda: [json.loads(line) for line in calls.read_text().splitlines()]

    return install


@pytest.fixture
def project(tmp_path):
    return render_sketch(golden_plan("dae", "nano33ble"), tmp_path / "Sketch").folder


def test_a_sketch_is_compiled_for_its_board(cli, project):
    calls = cli(compiled(90_000, 50_000))
    image = build(project, load_board("nano33ble"))
    assert image.elf == device_elf(project) == project / "build" / "device" / "Sketch.ino.elf"
    assert image.elf.with_suffix(".bin").read_bytes() == b"program"
    (words,) = calls()
    assert words[:3] == ["compile", "--fqbn", "arduino:mbed_nano:nano33ble"]
    assert words[-2:] == ["--format", "json"]


def test_the_limits_of_the_core_are_kept(cli, project):
    cli(compiled(990_000, 50_000))
    with pytest.raises(BuildError, match="too large for the board") as caught:
        build(project, load_board("nano33ble"))
    assert caught.value.hint == "text: 990,000 of 983,040 bytes"


def test_a_core_that_is_not_installed(cli, project):
    cli({"error": "Platform 'arduino:mbed_nano' not found: platform not installed"})
    with pytest.raises(ToolError, match="the core arduino:mbed_nano is not installed") as caught:
        build(project, load_board("nano33ble"))
    assert "arduino-cli core install arduino:mbed_nano" in caught.value.hint


def test_a_mistake_in_the_sketch(cli, project):
    error = "Sketch.ino:3:5: error: 'oops' was not declared in this scope"
    cli({"compiler_err": error, "success": False, "error": "Error during build: exit status 1"})
    with pytest.raises(BuildError, match="could not compile") as caught:
        build(project, load_board("nano33ble"))
    assert error in caught.value.hint


def test_something_that_is_not_json(cli, project, tmp_path):
    cli({})
    (tmp_path / "arduino-cli").write_text("#!/bin/sh\necho unknown flag >&2\nexit 1\n")
    with pytest.raises(ToolError, match="gave no JSON") as caught:
        build(project, load_board("nano33ble"))
    assert caught.value.hint == "unknown flag"


def test_without_it_the_sketch_is_there_and_the_way_on_is_said(project, monkeypatch):
    monkeypatch.delenv("ARDUINO_CLI", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ToolError, match="arduino-cli is not installed") as caught:
        build(project, load_board("nano33ble"))
    assert "Sketch.ino" in caught.value.hint
    assert "'Arduino Mbed OS Nano Boards'" in caught.value.hint


def test_a_wrong_variable_is_named(monkeypatch):
    monkeypatch.setenv("ARDUINO_CLI", "/nonexistent/cli")
    with pytest.raises(ToolError, match="ARDUINO_CLI names no program"):
        find_arduino_cli()


def test_it_uploads_where_the_core_has_its_own_way(cli, tmp_path):
    binary = tmp_path / "Sketch.ino.bin"
    binary.write_bytes(b"program")
    board = load_board("nano-rp2040")
    patience = Patience(person=1, port=2, afresh=0)
    with SimulatedBoard(pid=0x005E) as simulated:
        calls = cli({"stdout": "", "stderr": "", "updated_upload_port": {"address": "COM7", "protocol": "serial"}})
        assert ArduinoFlasher(board, simulated, patience=patience).flash(binary) == simulated.port.device
        assert calls()[0][:5] == ["upload", "--port", simulated.port.device, "--fqbn", board.arduino.fqbn]
        cli({"error": "Failed uploading: no device found"})
        with pytest.raises(FlashError, match="failed 3 times: Failed uploading: no device found"):
            ArduinoFlasher(board, simulated, patience=patience).flash(binary)
