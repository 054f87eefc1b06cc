"""Uploading by `arduino-cli`, played by a script that moves a simulated board as `arduino-cli upload` would."""

import json
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.arduino.bootloader import SimulatedBoard
from tests.arduino.uploading import QUICK, flash
from tests.processes import children
from toolkit.board import load_board
from toolkit.errors import FlashError, ToolError

BOARD = load_board("nano-rp2040")


class CliBoard(SimulatedBoard):
    """A Nano RP2040 Connect: `arduino-cli` reboots it and writes to it; the double asks for that by a file."""

    def __init__(self, folder, **words):
        super().__init__(pid=0x005E, boot_pid=0x0003, **words)
        self.folder = folder
        self.content = b""
        self.words = []

    def volumes(self, label):
        return (self.folder / label,) if (label, self._mode) == ("RPI-RP2", "bootloader") else ()

    def _show(self, mode):
        super()._show(mode)
        if mode == "bootloader":
            self._ports = []  # it shows a drive

    def holds(self, content):
        return self.content == content

    def _live(self):
        upload = self.folder / "upload"
        if upload.exists():
            self.words = json.loads(upload.read_text())
            (program,) = Path(self.words[self.words.index("--input-dir") + 1]).glob("*.bin")
            self.content = program.read_bytes()
            self.uploads += 1
            self._next = "program"
            upload.unlink()
        if self._mode == "program":
            super()._live()
        else:
            time.sleep(0.02)


@pytest.fixture
def binary(tmp_path):
    (tmp_path / "build").mkdir()
    path = tmp_path / "build" / "Sketch.ino.bin"
    path.write_bytes(os.urandom(3_000))
    return path


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Installs a shell script as `arduino-cli`: `steps` one after the other, one a call, the last for all further."""

    def install(*steps):
        for number, step in enumerate(steps):
            (tmp_path / f"step{number}").write_text(step)
        (tmp_path / "arduino-cli").write_text(
            f"""#!/bin/sh
cd "{tmp_path}"
words=; for word in "$@"; do words="$words${{words:+, }}\\"$word\\""; done
number=$(cat count 2>/dev/null || echo 0)
[ "$number" -lt {len(steps) - 1} ] && echo $((number + 1)) > count
. ./step$number
"""
        )
        (tmp_path / "arduino-cli").chmod(0o755)
        monkeypatch.setenv("ARDUINO_CLI", str(tmp_path / "arduino-cli"))

    return install


WORKS = """
echo "[$words]" > upload.part; mv upload.part upload
while [ -e upload ]; do sleep 0.02; done
echo '{"stdout": "", "stderr": "", "updated_upload_port": {"address": "COM7", "protocol": "serial"}}'
"""
FAILS = """echo '{"error": "Failed uploading: no device found"}'; exit 1"""


def test_the_board_is_followed_by_its_serial_number(cli, tmp_path, binary):
    cli(WORKS)
    with CliBoard(tmp_path) as simulated:
        before = simulated.port.device
        assert flash(BOARD, simulated, binary) == simulated.port.device != before
        assert (simulated.content, simulated.touched) == (binary.read_bytes(), 0)
        assert simulated.words[:5] == ["upload", "--port", before, "--fqbn", BOARD.arduino.fqbn]


def test_a_board_that_waits_as_a_drive_needs_no_port(cli, tmp_path, binary):
    cli(WORKS)
    with CliBoard(tmp_path) as simulated:
        simulated.reset_twice()
        assert flash(BOARD, simulated, binary) == simulated.port.device
        assert simulated.content == binary.read_bytes()
        assert simulated.words[:3] == ["upload", "--fqbn", BOARD.arduino.fqbn]


def test_a_board_that_is_left_as_a_drive_is_taken_up_there(cli, tmp_path, binary):
    """The first upload has rebooted it and failed."""
    with CliBoard(tmp_path) as simulated:
        cli("touch rebooted; sleep 0.6; " + FAILS, WORKS)

        def reboot():
            while not (tmp_path / "rebooted").exists():
                time.sleep(0.02)
            simulated.double_tap()

        thread = threading.Thread(target=reboot)
        thread.start()
        flash(BOARD, simulated, binary)
        thread.join()
        assert simulated.content == binary.read_bytes()
        assert "--port" not in simulated.words


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (FAILS, "Failed uploading: no device found"),
        ("kill -SEGV $$", "arduino-cli was ended by signal 11 (SIGSEGV)"),
        ("sleep 3600", "arduino-cli was not done after 1 s"),
        ("echo unknown flag >&2; exit 1", "unknown flag"),
        ("exit 7", "arduino-cli ended with status 7"),
    ],
)
def test_an_upload_that_breaks_off_is_repeated(cli, tmp_path, binary, step, reason):
    said = []
    cli(step, WORKS)
    with CliBoard(tmp_path) as simulated:
        flash(BOARD, simulated, binary, say=said.append, patience=replace(QUICK, upload=1))
        assert simulated.content == binary.read_bytes()
    assert f"the upload failed ({reason}): once more" in said
    assert not children()


def test_an_upload_that_never_works_is_named(cli, tmp_path, binary):
    cli(FAILS)
    with CliBoard(tmp_path) as simulated:
        with pytest.raises(FlashError, match="failed 3 times: Failed uploading: no device found") as caught:
            flash(BOARD, simulated, binary)
        assert "reset button twice" in caught.value.hint
        cli(WORKS)
        flash(BOARD, simulated, binary)
        assert simulated.content == binary.read_bytes()


def test_a_port_without_permission_is_named(cli, tmp_path, binary):
    cli("""echo '{"error": "Failed uploading: opening port: Permission denied"}'; exit 1""")
    with CliBoard(tmp_path) as simulated:
        with pytest.raises(FlashError, match="this user may not open the port") as caught:
            flash(BOARD, simulated, binary)
        assert caught.value.where == simulated.port.device
    assert "dialout" in caught.value.hint


@pytest.mark.parametrize("text", ["LIBUSB_ERROR_ACCESS", "Maybe try sudo or check your permissions."])
def test_a_missing_udev_rule_names_the_bootloaders_vendor(cli, tmp_path, binary, text):
    cli(f"""echo '{{"stderr": "{text}", "error": "Failed uploading: exit status 1"}}'; exit 1""")
    with CliBoard(tmp_path) as simulated, pytest.raises(FlashError, match="may not open the board on USB") as caught:
        flash(BOARD, simulated, binary)
    assert 'ATTR{idVendor}=="2e8a"' in caught.value.hint


def test_a_missing_arduino_cli_leaves_the_board_alone(tmp_path, binary, monkeypatch):
    monkeypatch.delenv("ARDUINO_CLI", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with CliBoard(tmp_path) as simulated, pytest.raises(ToolError, match="arduino-cli is not installed") as caught:
        flash(BOARD, simulated, binary)
    assert "ARDUINO_CLI" in caught.value.hint


def test_ctrl_c_ends_arduino_cli_and_what_it_has_started(cli, tmp_path, binary):
    cli("sleep 3600 & echo $! > grandchild; wait", WORKS)
    with CliBoard(tmp_path) as simulated:

        def person():
            while not (tmp_path / "grandchild").exists():
                time.sleep(0.02)
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=person)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            flash(BOARD, simulated, binary)
        thread.join()
        assert not children()
        grandchild = int((tmp_path / "grandchild").read_text())
        deadline = time.monotonic() + 5
        while running(grandchild) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not running(grandchild)
        flash(BOARD, simulated, binary)
        assert simulated.content == binary.read_bytes()


def running(process):
    """Whether a process runs; one that waits to be buried does not."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        return stat.rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
