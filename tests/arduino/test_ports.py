"""Ports that others hold or that may not be opened, and uploads that a person ends."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import serial

from tests.arduino.bootloader import SimulatedBoard
from tests.arduino.dfu import DfuBoard, install_double
from tests.arduino.uploading import QUICK, flash, needs_bossac, samd
from tests.processes import children
from toolkit.board import load_board
from toolkit.errors import FlashError
from toolkit.flashing.choice import open_and_close
from toolkit.flashing.desk import SerialPort

AS_ANOTHER_USER = """
import os, sys
from pathlib import Path
from toolkit.board import load_board
from toolkit.errors import DeployError
from toolkit.flashing.arduino import ArduinoFlasher, Patience
from toolkit.flashing.desk import FolderDesk

board = load_board("nano33ble")
if os.geteuid() == 0:  # who may open everything; the project is read by now, which another user perhaps may not
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
patience = Patience(bootloader=0.3, person=0.3, upload=5, port=0.5, access=float(sys.argv[2]))
try:
    ArduinoFlasher(board, FolderDesk(Path(sys.argv[1])), patience=patience).flash(Path(sys.argv[3]))
except DeployError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(autouse=True)
def no_cores(monkeypatch, tmp_path):
    monkeypatch.setenv("ARDUINO_DIRECTORIES_DATA", str(tmp_path / "none"))


@pytest.fixture
def binary(tmp_path):
    path = tmp_path / "Sketch.ino.bin"
    path.write_bytes(os.urandom(5_000))
    return path


class Holder:
    """Another program that has a port for itself, as a serial monitor has."""

    def __init__(self, device):
        self.line = os.open(device, os.O_RDWR | os.O_NOCTTY)
        fcntl.flock(self.line, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def let_go(self):
        os.close(self.line)


@needs_bossac
def test_a_port_that_is_busy_for_a_while_is_waited_for(binary):
    with SimulatedBoard() as simulated:
        holder = Holder(simulated.port.device)
        threading.Timer(0.8, holder.let_go).start()
        started = time.monotonic()
        flash(samd("nano33ble"), simulated, binary)
        assert time.monotonic() - started > 0.8
        assert simulated.holds(binary.read_bytes())


@needs_bossac
def test_a_port_that_stays_busy_is_named(binary):
    with SimulatedBoard() as simulated:
        holder = Holder(simulated.port.device)
        with pytest.raises(FlashError, match="another program holds the port") as caught:
            flash(samd("nano33ble"), simulated, binary, patience=replace(QUICK, access=0.3))
        assert caught.value.where == simulated.port.device
        assert "serial monitor" in caught.value.hint
        assert simulated.touched == 0
        holder.let_go()
        flash(samd("nano33ble"), simulated, binary)
        assert simulated.holds(binary.read_bytes())


def as_another_user(folder, device, access="0.3"):
    """What the flasher says to a user who owns nothing, about one port."""
    program = folder / "Sketch.ino.bin"
    port = {"device": device, "name": "Nano", "vid": 0x2341, "pid": 0x805A, "serial_number": "F00D"}
    (folder / "ports.json").write_text(json.dumps([port]))
    program.write_bytes(b"program")
    return subprocess.run(
        [sys.executable, "-c", AS_ANOTHER_USER, str(folder), access, str(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[2],
        env={"PATH": os.environ["PATH"], "BOSSAC": "/bin/false", "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.fixture
def public_folder():
    """A folder that another user may read; pytest's own are private."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def line():
    """A line whose port can be opened by its owner; its name."""
    board, client = os.openpty()
    yield os.ttyname(client), client
    os.close(board)
    os.close(client)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="permissions as Linux has them")
def test_a_port_without_permission_is_named(public_folder, line):
    device, _ = line
    Path(device).chmod(0)
    done = as_another_user(public_folder, device)
    assert "FlashError" in done.stdout, done.stderr
    assert "this user may not open the port" in done.stdout
    assert "usermod -aG dialout" in done.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="exclusive use as Linux has it")
def test_a_port_in_exclusive_use_is_named(public_folder, line):
    """The kernel's own lock, which only root gets past."""
    device, client = line
    Path(device).chmod(0o666)
    fcntl.ioctl(client, termios.TIOCEXCL)
    done = as_another_user(public_folder, device)
    assert "FlashError" in done.stdout, done.stderr
    assert "another program holds the port" in done.stdout


def test_a_port_that_goes_away_while_it_is_opened_is_no_traceback(monkeypatch):
    def gone(*_, **__):
        raise termios.error(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(serial, "Serial", gone)
    port = SerialPort("/dev/ttyACM0", None, None, "", "")
    with SimulatedBoard(bystanders=[port]) as simulated:
        with pytest.raises(FlashError, match="the port cannot be opened") as caught:
            open_and_close(port, simulated, 0.1, may_go=True)
        assert "cable" in caught.value.hint
        simulated.bystanders.clear()
        open_and_close(port, simulated, 0.1, may_go=True)


@pytest.mark.parametrize("uploader", [pytest.param("bossac", marks=needs_bossac), "dfu-util"])
def test_ctrl_c_leaves_no_uploader_behind_and_the_next_run_repairs(binary, tmp_path, monkeypatch, uploader):
    """The signal comes while the uploader waits for a board that has stalled."""
    if uploader == "bossac":
        board, simulated = samd("nano33ble"), SimulatedBoard(faults={"stall": 1})
    else:
        monkeypatch.setenv("DFU_UTIL", str(install_double(tmp_path)))
        board, simulated = load_board("giga-r1"), DfuBoard(tmp_path, faults={"stall": 1})
    with simulated:
        before = children()

        def person():
            while not children() - before or simulated.appearances < 2:
                time.sleep(0.02)
            time.sleep(1.0)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=person)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            flash(board, simulated, binary)
        thread.join()
        assert children() == before
        simulated.reset_twice()
        flash(board, simulated, binary)
        assert simulated.holds(binary.read_bytes())
