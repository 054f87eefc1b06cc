"""Uploading with the real `bossac` into a simulated bootloader; ports that rename themselves, fail and go away."""

import os
import shutil
import threading
import time
from dataclasses import replace

import pytest

from tests.arduino.bootloader import FIRST, SimulatedBoard
from toolkit.board import load_board
from toolkit.errors import FlashError, ToolError
from toolkit.flashing.arduino import ArduinoFlasher, Patience
from toolkit.flashing.choice import Wanted
from toolkit.flashing.desk import SerialPort

QUICK = Patience(bootloader=3, person=4, upload=40, port=4, access=2)

needs_bossac = pytest.mark.skipif(shutil.which("bossac") is None, reason="bossac (Debian: bossa-cli) is not installed")


@pytest.fixture
def board():
    """A board whose bootloader is that of a SAMD21: the chips that Debian's bossac knows have an offset."""
    chosen = load_board("nano33ble")
    return replace(chosen, arduino=replace(chosen.arduino, address=FIRST))


@pytest.fixture
def binary(tmp_path):
    path = tmp_path / "Sketch.ino.bin"
    path.write_bytes(os.urandom(20_000))
    return path


@pytest.fixture(autouse=True)
def no_cores(monkeypatch, tmp_path):
    monkeypatch.setenv("ARDUINO_DIRECTORIES_DATA", str(tmp_path / "none"))


def holds(simulated, binary):
    content = binary.read_bytes()
    return bytes(simulated.flash[FIRST : FIRST + len(content)]) == content


@needs_bossac
@pytest.mark.parametrize("fault", [None, "late"])
def test_a_program_reaches_the_flash_and_the_board_comes_back_renamed(board, binary, fault):
    with SimulatedBoard(faults={fault}) as simulated:
        before = simulated.port.device
        port = ArduinoFlasher(board, simulated, patience=QUICK).flash(binary)
        assert port != before
        assert holds(simulated, binary)
        assert (simulated.touched, simulated.uploads) == (1, 1)
        assert port == simulated.port.device
        assert simulated.port.description == "program"


@needs_bossac
def test_a_board_that_waits_already_is_not_touched(board, binary):
    with SimulatedBoard() as simulated:
        simulated.double_tap()
        while not simulated.ports() or simulated.port.description != "bootloader":
            time.sleep(0.02)
        ArduinoFlasher(board, simulated, patience=QUICK).flash(binary)
        assert holds(simulated, binary)
        assert simulated.touched == 0


@needs_bossac
def test_a_board_that_ignores_the_touch_is_helped_by_a_person(board, binary):
    said = []
    with SimulatedBoard(faults={"no-touch"}) as simulated:

        def say(text):
            said.append(text)
            if "press its reset button twice" in text:
                threading.Timer(0.3, simulated.double_tap).start()

        ArduinoFlasher(board, simulated, say, QUICK).flash(binary)
        assert holds(simulated, binary)
    assert any("this goes on then" in text for text in said)


@needs_bossac
@pytest.mark.parametrize("fault", ["fail", "stall"])
def test_an_upload_that_breaks_off_is_repeated(board, binary, fault):
    said = []
    with SimulatedBoard(faults={fault}) as simulated:

        def say(text):
            said.append(text)
            if "once more" in text and fault == "stall":
                simulated.reset_twice()

        patience = replace(QUICK, upload=10)
        ArduinoFlasher(board, simulated, say, patience).flash(binary)
        assert holds(simulated, binary)
    assert sum("once more" in text for text in said) == 1


def test_a_bootloader_that_never_appears(board, binary):
    with SimulatedBoard(faults={"quiet"}) as simulated:
        patience = replace(QUICK, bootloader=0.5, person=0.5)
        with pytest.raises(FlashError, match="the bootloader did not appear") as caught:
            ArduinoFlasher(board, simulated, patience=patience).flash(binary)
    assert "twice" in caught.value.hint


@needs_bossac
def test_a_board_that_does_not_come_back(board, binary):
    bystander = SerialPort("/dev/null", 0x2341, 0x805A, "OTHER", "another board that appears")
    with SimulatedBoard(faults={"gone"}) as simulated:

        def say(text):
            if text.startswith("uploading"):
                simulated.bystanders.append(bystander)  # the newest port is not ours

        with pytest.raises(FlashError, match="did not come back") as caught:
            ArduinoFlasher(board, simulated, say, QUICK).flash(binary)
        assert holds(simulated, binary)
    assert "reset button once" in caught.value.hint


def test_two_boards_are_told_apart_by_name(board, binary):
    twin = SerialPort("/dev/null", 0x2341, 0x805A, "OTHER", "program")
    with SimulatedBoard(bystanders=[twin]) as simulated:
        with pytest.raises(FlashError, match="2 boards could be meant") as caught:
            ArduinoFlasher(board, simulated, patience=QUICK).flash(binary)
        assert "F00D" in caught.value.hint
        assert "OTHER" in caught.value.hint
        if shutil.which("bossac"):
            port = ArduinoFlasher(board, simulated, patience=QUICK).flash(binary, Wanted(serial_number="F00D"))
            assert port == simulated.port.device


def test_no_board_at_all(board, binary):
    with SimulatedBoard(pid=0x1111) as simulated, pytest.raises(FlashError, match="there is no Arduino Nano 33 BLE"):
        ArduinoFlasher(board, simulated, patience=replace(QUICK, person=0.3)).flash(binary)


def test_an_uploader_that_is_missing(board, binary, monkeypatch):
    monkeypatch.setenv("BOSSAC", "/nonexistent/bossac")
    with SimulatedBoard() as simulated, pytest.raises(ToolError, match="bossac is not installed"):
        ArduinoFlasher(board, simulated, patience=QUICK).flash(binary)
