"""Uploading by `dfu-util`: a double that prints what the real one prints moves a simulated board; and the real one."""

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.arduino.bootloader import ALWAYS
from tests.arduino.dfu import DfuBoard, install_double
from tests.arduino.uploading import QUICK, Person, flash
from tests.processes import children
from toolkit.board import load_board
from toolkit.errors import FlashError, ToolError
from toolkit.flashing.arduino.bench import Bench
from toolkit.flashing.arduino.dfu_util import DfuDevice, DfuUtil, dfu_util, parse_list
from toolkit.flashing.arduino.running import Ended
from toolkit.flashing.choice import Wanted
from toolkit.flashing.desk import SerialPort

GIGA = load_board("giga-r1")
DOCS = Path(__file__).parents[2] / "docs" / "arduino.md"
SHORT = replace(QUICK, bootloader=0.5, person=0.5, access=0.4)

needs_dfu_util = pytest.mark.skipif(shutil.which("dfu-util") is None, reason="dfu-util (Debian: the same) is missing")


@pytest.fixture(autouse=True)
def no_cores(monkeypatch, tmp_path):
    monkeypatch.setenv("ARDUINO_DIRECTORIES_DATA", str(tmp_path / "none"))


@pytest.fixture
def binary(tmp_path):
    path = tmp_path / "Sketch.ino.bin"
    path.write_bytes(os.urandom(5_000))
    return path


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes boards that the double reaches."""
    monkeypatch.setenv("DFU_UTIL", str(install_double(tmp_path)))
    return lambda **words: DfuBoard(tmp_path, **words)


@pytest.mark.parametrize(
    ("name", "ids", "how"),
    [
        ("giga-r1", (0x0266, 0x0366), ["--dfuse-address", "0x08040000:leave"]),
        ("portenta-h7", (0x025B, 0x035B), ["--dfuse-address", "0x08040000:leave"]),
        ("nicla-vision", (0x025F, 0x035F), ["--dfuse-address", "0x08040000:leave"]),
        ("uno-r4-minima", (0x0069, 0x0369), ["--reset"]),
    ],
)
def test_each_board_is_written_to_as_its_core_does(make, binary, name, ids, how):
    with make(pid=ids[0], boot_pid=ids[1]) as simulated:
        before = simulated.port.device
        port = flash(load_board(name), simulated, binary)
        assert (simulated.content, simulated.uploads) == (binary.read_bytes(), 1)
        assert port == simulated.port.device != before
        where = ["--device", f",2341:{ids[1]:04x}", "--path", "1-8", "--alt", "0"]
        assert simulated.words == [*where, *how, "--download", str(binary)]


def test_a_board_in_dfu_mode_needs_no_port(make, binary):
    with make() as simulated:
        simulated.reset_twice()
        assert simulated.ports() == ()
        assert flash(GIGA, simulated, binary) == simulated.port.device
        assert (simulated.content, simulated.touched) == (binary.read_bytes(), 0)


def test_a_board_in_dfu_mode_is_found_by_its_serial_number_among_others(make, binary):
    with make(boot_number="00F00D") as simulated:
        simulated.others.append(simulated.device(devnum=3, path="2-1", serial="BEEF"))
        simulated.reset_twice()
        flash(GIGA, simulated, binary, wanted=Wanted(serial_number="F00D"))
        assert simulated.content == binary.read_bytes()


def test_several_boards_in_dfu_mode_are_shown(make, binary):
    with make() as simulated:
        simulated.others.append(simulated.device(devnum=3, path="2-1", serial="BEEF"))
        simulated.reset_twice()
        with pytest.raises(FlashError, match="2 boards could be meant") as caught:
            flash(GIGA, simulated, binary)
    for word in ("F00D", "BEEF", "USB device 3", "waits in DFU mode", "--serial-number"):
        assert word in caught.value.hint


def test_an_image_never_goes_to_another_board_in_dfu_mode(make, binary):
    """It waits all the time, without a serial number; ours does not reboot."""
    with make(faults={"no-touch": ALWAYS}) as simulated:
        simulated.others.append(simulated.device(devnum=3, path="2-1", serial="UNKNOWN"))
        simulated._tell()
        with pytest.raises(FlashError, match="the bootloader did not appear"):
            flash(GIGA, simulated, binary, patience=SHORT, wanted=Wanted(serial_number="F00D"))
        assert simulated.content == b""


def test_a_port_that_is_named_does_not_stand_for_a_board_in_dfu_mode(make, binary):
    said = []
    with make() as simulated:
        simulated.reset_twice()
        with pytest.raises(FlashError, match="there is no Arduino Giga"):
            flash(GIGA, simulated, binary, patience=SHORT, wanted=Wanted(port="/dev/ttyACM7"), say=said.append)
        assert simulated.content == b""
    assert any("leave the port out" in text for text in said)


def test_no_device_in_dfu_mode_asks_for_a_double_tap_and_goes_on_by_itself(make, binary):
    with make(faults={"no-touch": ALWAYS}) as simulated:
        person = Person(simulated)
        flash(GIGA, simulated, binary, say=person, patience=replace(QUICK, bootloader=0.5))
        assert simulated.content == binary.read_bytes()
    assert person.count("this goes on then") == 1


def test_a_late_device_is_waited_for(make, binary):
    with make(faults={"late": 2}) as simulated:
        person = Person(simulated, willing=False)
        flash(GIGA, simulated, binary, say=person)
        assert simulated.content == binary.read_bytes()
    assert person.count("reset button") == 0


def test_a_missing_udev_rule_is_spelled_out(make, binary):
    with make(faults={"denied": ALWAYS}) as simulated:
        with pytest.raises(FlashError, match="may not open the board in DFU mode") as caught:
            flash(GIGA, simulated, binary, patience=replace(QUICK, access=0.4))
        assert simulated.content == b""
    assert caught.value.where == "USB device 8"
    for line in (
        "/etc/udev/rules.d/60-arduino.rules",
        'SUBSYSTEM=="usb", ATTR{idVendor}=="2341", MODE="0666"',
        "sudo udevadm control --reload-rules && sudo udevadm trigger",
    ):
        assert line in caught.value.hint
        assert line in DOCS.read_text()


def test_a_device_that_udev_lets_us_open_a_moment_later_is_opened(make, binary):
    with make(faults={"denied": 4}) as simulated:
        flash(GIGA, simulated, binary)
        assert simulated.content == binary.read_bytes()


@pytest.mark.parametrize(
    ("error", "what", "hint"),
    [
        ("LIBUSB_ERROR_ACCESS", "this user may not open", "udev"),
        ("LIBUSB_ERROR_NOT_SUPPORTED", "no driver", "WinUSB"),
        ("LIBUSB_ERROR_BUSY", r"cannot be opened \(LIBUSB_ERROR_BUSY\)", "another `deploy`"),
    ],
)
def test_why_a_device_cannot_be_opened_decides_what_to_do(monkeypatch, binary, error, what, hint):
    monkeypatch.setattr(DfuUtil, "devices", lambda _: [DfuDevice("9", "", "", error)])
    uploader = DfuUtil(Bench(GIGA, None, print, replace(QUICK, access=0)), Path("dfu-util"))
    with pytest.raises(FlashError, match=what) as caught:
        uploader.upload(binary, uploader.waiting()[0])
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["giga-r1", "uno-r4-minima"])
@pytest.mark.parametrize("fault", ["goodbye", "late-crash"])
def test_a_board_that_leaves_before_dfu_util_is_done_has_its_program(make, binary, name, fault):
    """Old versions end with 74 after `error resetting after download` or `Error during download get_status`."""
    board = load_board(name)
    said = []
    with make(pid=board.usb.pid, boot_pid=board.usb.bootloader_pid, faults={fault: 1}) as simulated:
        assert flash(board, simulated, binary, say=said.append) == simulated.port.device
        assert (simulated.content, simulated.uploads) == (binary.read_bytes(), 1)
    assert any("all is written" in text for text in said)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("broken", "Error during download get_status (LIBUSB_ERROR_PIPE)"),
        ("crash", f"dfu-util was ended by signal {signal.SIGSEGV.value} (SIGSEGV)"),
        ("killed", "dfu-util was ended by signal 9 (SIGKILL)"),
        ("unplugged", "Error during download get_status (LIBUSB_ERROR_PIPE)"),
        ("stall", "dfu-util was not done after 2 s"),
    ],
)
def test_a_download_that_breaks_off_is_repeated(make, binary, fault, reason):
    said = []
    with make(faults={fault: 1}) as simulated:
        flash(GIGA, simulated, binary, say=said.append, patience=replace(QUICK, upload=2))
        assert (simulated.content, simulated.uploads) == (binary.read_bytes(), 1)
    assert [text for text in said if "once more" in text] == [f"the upload failed ({reason}): once more"]
    assert not children()


@pytest.mark.parametrize(("fault", "reason"), [("broken", "Error during download"), ("crash", "signal 11")])
def test_a_download_that_always_breaks_off_is_named(make, binary, fault, reason):
    with make(faults={fault: ALWAYS}) as simulated:
        with pytest.raises(FlashError, match=f"failed 3 times: .*{reason}") as caught:
            flash(GIGA, simulated, binary)
        assert "reset button twice" in caught.value.hint
        assert simulated.content == binary.read_bytes()[: 5_000 // 3]
        install_double(simulated.folder)
        flash(GIGA, simulated, binary)
        assert simulated.content == binary.read_bytes()


def test_a_board_that_is_pulled_out_is_named(make, binary):
    with (
        make(faults={"lost": 1}) as simulated,
        pytest.raises(FlashError, match="went away during the upload") as caught,
    ):
        flash(GIGA, simulated, binary, patience=SHORT)
    assert "cable" in caught.value.hint


def test_a_board_that_does_not_come_back_is_named(make, binary):
    with make(faults={"gone": 1}) as simulated:
        with pytest.raises(FlashError, match="did not come back") as caught:
            flash(GIGA, simulated, binary, patience=replace(QUICK, port=0.5))
        assert simulated.content == binary.read_bytes()
    assert "reset button once" in caught.value.hint


def test_a_dfu_util_that_is_too_old_leaves_the_board_alone(make, binary):
    with make() as simulated:
        simulated.version = "0.8"
        simulated._tell()
        with pytest.raises(ToolError, match=r"dfu-util 0\.8 is too old; 0\.9 is needed") as caught:
            flash(GIGA, simulated, binary)
        assert simulated.touched == 0
    assert "arduino-cli core install arduino:mbed_giga" in caught.value.hint


def test_a_dfu_util_that_cannot_see_the_bus_is_named(make, binary):
    with make() as simulated:
        simulated.behave("no-bus", ALWAYS)
        with pytest.raises(ToolError, match="cannot list devices: dfu-util: unable to initialize libusb") as caught:
            flash(GIGA, simulated, binary)
    assert "dfu-util --list" in caught.value.hint


@pytest.mark.parametrize(
    ("script", "what"), [("kill -SEGV $$", r"its version: dfu-util was ended by signal 11"), ("exit 3", "its version")]
)
def test_a_dfu_util_that_does_not_work_is_named(make, binary, tmp_path, script, what):
    (tmp_path / "dfu-util").write_text(f"#!/bin/sh\n{script}\n")
    with make() as simulated, pytest.raises(ToolError, match=what):
        flash(GIGA, simulated, binary)


def test_a_dfu_util_that_is_missing_is_named(make, binary, monkeypatch):
    monkeypatch.setenv("DFU_UTIL", "/nonexistent/dfu-util")
    with make() as simulated:
        with pytest.raises(ToolError, match="dfu-util is not installed") as caught:
            flash(GIGA, simulated, binary)
        assert simulated.touched == 0
    assert "apt-get install dfu-util" in caught.value.hint


def test_what_a_list_says():
    """Lines as versions 0.9 and 0.11 print them; other kinds, other alternate settings and run-time devices are not."""
    ended = Ended(
        "dfu-util",
        0,
        'Found Runtime: [2341:0366] ver=0100, devnum=4, cfg=1, intf=2, path="1-1", alt=0, name="DFU-RT", serial="A"\n'
        'Found DFU: [2341:0366] ver=0200, devnum=5, cfg=1, intf=0, path="1-4.3", alt=1, name="@Ext", serial="B"\n'
        'Found DFU: [2341:0366] ver=0200, devnum=5, cfg=1, intf=0, path="1-4.3", alt=0, name="@Int, 1", serial="B"\n'
        'Found DFU: [0483:df11] ver=2200, devnum=6, cfg=1, intf=0, path="1-5", alt=0, name="@Int", serial="C"\n'
        'Found DFU: [2341:0366] ver=0200, devnum=7, cfg=1, intf=0, path="1-6", alt=0, name="@Int", serial="UNKNOWN"\n',
        "dfu-util: Cannot open DFU device 2341:0366 found on devnum 9 (LIBUSB_ERROR_ACCESS)\n"
        "dfu-util: Cannot open DFU device 05ac:8289 found on devnum 6 (LIBUSB_ERROR_ACCESS)\n"
        "Cannot open DFU device 2341:0366\n",
    )
    assert parse_list(ended, 0x2341, 0x0366) == [
        DfuDevice("5", "1-4.3", "B"),
        DfuDevice("7", "1-6", ""),
        DfuDevice("9", "", "", "LIBUSB_ERROR_ACCESS"),
        DfuDevice("", "", "", "LIBUSB_ERROR_ACCESS"),
    ]


@needs_dfu_util
def test_the_real_dfu_util_answers_as_expected(binary, monkeypatch):
    """Without any board: its version is read, its list is empty, and a download names the missing device."""
    monkeypatch.delenv("DFU_UTIL", raising=False)
    bench = Bench(GIGA, None, print, SHORT)
    uploader = dfu_util(bench)
    assert uploader.tool.name == "dfu-util"
    assert uploader.devices() == []
    assert uploader.waiting() == []
    gone = SerialPort("USB device 99", 0x2341, 0x0366, "", "")
    assert uploader.upload(binary, gone) == "USB device 99 went away before the upload"


@needs_dfu_util
@pytest.mark.parametrize("name", ["giga-r1", "uno-r4-minima"])
def test_the_real_dfu_util_takes_our_words(binary, name, monkeypatch):
    monkeypatch.setattr(DfuUtil, "_openable", lambda *_: DfuDevice("99", "9-9", ""))
    uploader = DfuUtil(Bench(load_board(name), None, print, SHORT), shutil.which("dfu-util"))
    assert uploader.upload(binary, SerialPort("USB device 99", None, None, "", "")) == (
        "No DFU capable USB device available"
    )
