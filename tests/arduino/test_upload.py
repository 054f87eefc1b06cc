"""Uploading with the real `bossac` into a simulated bootloader; ports that rename themselves, fail and go away."""

import os
import threading
import time
from dataclasses import replace

import pytest

from tests.arduino.bootloader import ALWAYS, BridgeBoard, SimulatedBoard
from tests.arduino.uploading import QUICK, Person, flash, needs_bossac, samd
from tests.processes import children
from toolkit.board import load_board
from toolkit.errors import FlashError, ToolError
from toolkit.flashing.arduino.bench import Bench, same_number
from toolkit.flashing.arduino.bossac import Bossac
from toolkit.flashing.arduino.running import find_uploader, run
from toolkit.flashing.choice import Wanted
from toolkit.flashing.desk import SerialPort


@pytest.fixture
def board():
    return samd("nano33ble")


@pytest.fixture
def binary(tmp_path):
    path = tmp_path / "Sketch.ino.bin"
    path.write_bytes(os.urandom(20_000))
    return path


@pytest.fixture(autouse=True)
def no_cores(monkeypatch, tmp_path):
    monkeypatch.setenv("ARDUINO_DIRECTORIES_DATA", str(tmp_path / "none"))


@needs_bossac
@pytest.mark.parametrize("faults", [{}, {"late": ALWAYS}], ids=["", "late"])
def test_a_program_reaches_the_flash_and_the_board_comes_back_renamed(board, binary, faults):
    with SimulatedBoard(faults=faults) as simulated:
        before = simulated.port.device
        port = flash(board, simulated, binary)
        assert port != before
        assert simulated.holds(binary.read_bytes())
        assert (simulated.touched, simulated.uploads) == (1, 1)
        assert port == simulated.port.device
        assert simulated.port.description == "program"


@needs_bossac
def test_a_board_that_waits_already_is_not_touched(board, binary):
    with SimulatedBoard() as simulated:
        simulated.reset_twice()
        flash(board, simulated, binary)
        assert simulated.holds(binary.read_bytes())
        assert simulated.touched == 0


@needs_bossac
@pytest.mark.parametrize("number", ["", "00000000F00D", "BOOT"])
def test_a_bootloader_may_have_another_serial_number(board, binary, number):
    """Also when it waits already, and after an upload that failed."""
    with SimulatedBoard(boot_number=number, faults={"fail": 1}) as simulated:
        flash(board, simulated, binary, wanted=Wanted(serial_number="F00D"))
        assert simulated.uploads == 1
        simulated.reset_twice()
        assert flash(board, simulated, binary) == simulated.port.device
        assert simulated.uploads == 2


@needs_bossac
def test_a_touch_that_gets_lost_is_repeated(board, binary):
    person = Person(None, willing=False)
    with SimulatedBoard(faults={"no-touch": 1}) as simulated:
        flash(board, simulated, binary, say=person)
        assert (simulated.touched, simulated.uploads) == (2, 1)
    assert person.count("reset button") == 0


@needs_bossac
def test_a_board_that_ignores_the_touch_is_helped_by_a_person(board, binary):
    with SimulatedBoard(faults={"no-touch": ALWAYS}) as simulated:
        person = Person(simulated)
        flash(board, simulated, binary, say=person, patience=replace(QUICK, bootloader=0.6))
        assert simulated.holds(binary.read_bytes())
    assert person.count("this goes on then") == 1


@needs_bossac
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("fail", "SAM-BA operation failed"),
        ("flip", "verify error"),
        ("killed", "ended by signal 9 (SIGKILL)"),
        ("unplugged", "the port went away during the upload"),
    ],
)
def test_an_upload_that_breaks_off_is_repeated(board, binary, fault, reason):
    with SimulatedBoard(faults={fault: 1}) as simulated:
        person = Person(simulated, willing=False)
        started = time.monotonic()
        flash(board, simulated, binary, say=person)
        assert time.monotonic() - started < QUICK.upload / 2  # bossac alone would wait for ever for a port that is gone
        assert simulated.holds(binary.read_bytes())
        assert simulated.uploads == 1
    assert [text for text in person.said if "once more" in text and reason in text]
    assert person.count("once more") == 1


@needs_bossac
def test_a_bootloader_that_hangs_is_given_up_by_the_clock_and_restarted_by_a_person(board, binary):
    with SimulatedBoard(faults={"stall": 1}) as simulated:
        person = Person(simulated)
        flash(board, simulated, binary, say=person, patience=replace(QUICK, upload=3, afresh=4))
        assert simulated.holds(binary.read_bytes())
    assert person.count("bossac was not done after 3 s") == 1
    assert person.count("once more") == 3  # two failures, and the request between them and the third upload
    assert not children()


@needs_bossac
@pytest.mark.parametrize(
    ("fault", "reason"), [("flip", "verify error"), ("killed", "signal 9"), ("fail", "SAM-BA operation failed")]
)
def test_what_never_goes_well_is_named(board, binary, fault, reason):
    with SimulatedBoard(faults={fault: ALWAYS}) as simulated:
        with pytest.raises(FlashError, match=r"failed 3 times: .*" + reason.replace("(", r"\(")) as caught:
            flash(board, simulated, binary)
        assert "reset button twice" in caught.value.hint
        simulated.faults.clear()
        flash(board, simulated, binary)
        assert simulated.holds(binary.read_bytes())


@needs_bossac
def test_a_board_that_is_pulled_out_during_the_upload(board, binary):
    patience = replace(QUICK, bootloader=0.5, person=0.5)
    with SimulatedBoard(faults={"lost": 1}) as simulated:
        with pytest.raises(FlashError, match="the board went away during the upload") as caught:
            flash(board, simulated, binary, patience=patience)
        assert "cable" in caught.value.hint

        def say(text):
            if "plug it in" in text:
                simulated.plug_in()

        simulated.plug_in()
        simulated.faults["lost"] = 1
        flash(board, simulated, binary, say=say, patience=replace(QUICK, bootloader=0.5))
        assert simulated.holds(binary.read_bytes())


def test_a_bootloader_that_never_appears(board, binary, monkeypatch):
    monkeypatch.setenv("BOSSAC", "/bin/false")
    with SimulatedBoard(faults={"quiet": ALWAYS}) as simulated:
        patience = replace(QUICK, bootloader=0.5, person=0.5)
        with pytest.raises(FlashError, match="the bootloader did not appear") as caught:
            flash(board, simulated, binary, patience=patience)
    assert "twice" in caught.value.hint


@needs_bossac
def test_a_board_that_does_not_come_back(board, binary):
    bystander = SerialPort("/dev/null", 0x2341, 0x805A, "OTHER", "another board that appears")
    with SimulatedBoard(faults={"gone": 1}) as simulated:

        def say(text):
            if text.startswith("uploading"):
                simulated.bystanders.append(bystander)  # the newest port is not ours

        with pytest.raises(FlashError, match="did not come back") as caught:
            flash(board, simulated, binary, say=say)
        assert simulated.holds(binary.read_bytes())
    assert "reset button once" in caught.value.hint


@needs_bossac
def test_two_boards_are_told_apart_by_name(board, binary):
    twin = SerialPort("/dev/null", 0x2341, 0x805A, "OTHER", "program")
    with SimulatedBoard(bystanders=[twin]) as simulated:
        with pytest.raises(FlashError, match="2 boards could be meant") as caught:
            flash(board, simulated, binary)
        assert "F00D" in caught.value.hint
        assert "OTHER" in caught.value.hint
        assert flash(board, simulated, binary, wanted=Wanted(serial_number="F00D")) == simulated.port.device
        assert flash(board, simulated, binary, wanted=Wanted(port=simulated.port.device)) == simulated.port.device


def test_an_image_never_goes_to_another_board_that_waits(board, binary, monkeypatch):
    """Another one's bootloader waits all the time; ours does not reboot."""
    monkeypatch.setenv("BOSSAC", "/bin/true")  # whatever it is called for would count as uploaded
    waits = SerialPort("/dev/null", 0x2341, 0x005A, "0000BEEF", "bootloader")
    with SimulatedBoard(bystanders=[waits], faults={"quiet": ALWAYS}) as simulated:
        patience = replace(QUICK, bootloader=0.5, person=0.5)
        with pytest.raises(FlashError, match="the bootloader did not appear"):
            flash(board, simulated, binary, patience=patience, wanted=Wanted(serial_number="F00D"))


def test_no_board_at_all(board, binary, monkeypatch):
    monkeypatch.setenv("BOSSAC", "/bin/false")
    with SimulatedBoard(pid=0x1111) as simulated, pytest.raises(FlashError, match="there is no Arduino Nano 33 BLE"):
        flash(board, simulated, binary, patience=replace(QUICK, person=0.3))


def test_an_uploader_that_is_missing_leaves_the_board_alone(board, binary, monkeypatch):
    monkeypatch.setenv("BOSSAC", "/nonexistent/bossac")
    with SimulatedBoard() as simulated:
        with pytest.raises(ToolError, match="bossac is not installed") as caught:
            flash(board, simulated, binary)
        assert "apt-get install bossa-cli" in caught.value.hint
        assert simulated.touched == 0


def test_an_uploader_that_does_not_start(board, binary, monkeypatch, tmp_path):
    (tmp_path / "bossac").write_bytes(b"\x7fELF of another computer")
    (tmp_path / "bossac").chmod(0o755)
    monkeypatch.setenv("BOSSAC", str(tmp_path / "bossac"))
    with SimulatedBoard() as simulated, pytest.raises(ToolError, match="bossac does not start"):
        flash(board, simulated, binary)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("F00D", "0000f00d", True), ("F00D", "F00D", True), ("F00D", "BEEF", False), ("", "", False), ("", "F00D", False)],
)
def test_zeros_in_front_make_no_other_serial_number(one, other, same):
    assert same_number(one, other) is same


# The Uno R4 WiFi: its port stays.


@needs_bossac
@pytest.mark.parametrize(
    "faults", [{}, {"fail": 1}, {"killed": 1}, {"no-touch": 1}], ids=lambda faults: "".join(faults)
)
def test_a_board_behind_a_bridge_keeps_its_port(binary, faults):
    with BridgeBoard(faults=faults) as simulated:
        before = simulated.port.device
        assert flash(samd("uno-r4-wifi"), simulated, binary, patience=replace(QUICK, upload=6)) == before
        assert simulated.holds(binary.read_bytes())
        assert simulated.uploads == 1
        assert simulated.touched == (2 if faults else 1)
        assert simulated.appearances == 1


@needs_bossac
def test_a_bridge_that_ignores_every_touch_is_named(binary):
    with BridgeBoard(faults={"no-touch": ALWAYS}) as simulated:
        with pytest.raises(FlashError, match=r"failed 3 times: .*No device found") as caught:
            flash(samd("uno-r4-wifi"), simulated, binary, patience=replace(QUICK, upload=6))
        assert simulated.touched == 3
    assert "reset button twice" in caught.value.hint


@needs_bossac
def test_the_bridge_cannot_verify(binary):
    """Why -v is left out for it: the real bossac fails then, and leaves the chip in its bootloader."""
    with BridgeBoard() as simulated:
        bench = Bench(samd("uno-r4-wifi"), simulated, lambda _: None, QUICK)
        uploader = Bossac(bench, find_uploader("bossac", "bossa-cli"))
        bench.touch(simulated.port)
        threading.Event().wait(QUICK.bridge)
        words = uploader.words(binary, simulated.port)
        assert "-v" not in words
        assert run([str(uploader.tool), *words[:-1], "-v", "-R"], 20).status not in (0, None)
        assert (simulated.holds(binary.read_bytes()), simulated.uploads) == (True, 0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nano33ble", ["--port=/dev/ttyACM0", "-U", "-e", "-w", "-v", "sketch.bin", "-R"]),
        ("uno-r4-wifi", ["--port=/dev/ttyACM0", "-U", "-e", "-w", "sketch.bin", "-R"]),
    ],
)
def test_bossac_is_called_as_the_cores_call_it(name, words):
    uploader = Bossac(Bench(load_board(name), None, None, QUICK), None)
    port = SerialPort("/dev/ttyACM0", None, None, "", "")
    assert uploader.words("sketch.bin", port) == words
