"""Finding boards and writing to their drives, on desks made of folders."""

import errno
import json
import os
import pty
import threading
import time

import pytest

from toolkit.board import load_board
from toolkit.errors import FlashError
from toolkit.flashing.choice import Wanted, port_error
from toolkit.flashing.desk import FolderDesk, SystemDesk
from toolkit.flashing.uf2_drive import Patience, Uf2Flasher, copy_to_drive

PICO2 = load_board("pico2")
SHORT = Patience(drive=0.4, person=0.4, port=0.6, access=0.3, settle=0.1)


class Desk:
    """A folder in which ports and drives come and go."""

    def __init__(self, folder):
        self.folder = folder
        self.lines = []

    def show(self, *ports):
        part = self.folder / "ports.part"
        part.write_text(json.dumps(list(ports)))
        part.replace(self.folder / "ports.json")

    def port(self, serial_number, **changes):
        """A port that can be opened."""
        board_side, client_side = pty.openpty()
        self.lines += [board_side, client_side]
        port = {"device": os.ttyname(client_side), "name": "ttyACM0", "vid": 0x2E8A, "pid": 0x0009}
        return port | {"serial_number": serial_number} | changes

    def drive(self):
        (self.folder / "RP2350").mkdir()
        (self.folder / "RP2350" / "INFO_UF2.TXT").write_text("UF2 Bootloader v1.0\n")
        return self.folder / "RP2350"

    def flasher(self, said=None, patience=SHORT):
        return Uf2Flasher(PICO2, FolderDesk(self.folder), said.append if said is not None else print, patience)


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path)
    yield made
    for line in made.lines:
        os.close(line)


@pytest.fixture
def uf2(tmp_path):
    file = tmp_path / "runner.uf2"
    file.write_bytes(bytes(range(256)) * 600)
    return file


def test_no_board_says_what_to_check(desk, uf2):
    said = []
    with pytest.raises(FlashError, match="there is no Raspberry Pi Pico 2") as caught:
        desk.flasher(said).flash(uf2)
    for word in ("cable", "BOOTSEL", "dialout", "udev", "WSL"):
        assert word in caught.value.hint
    assert "plug it in" in said[0]


def test_several_boards_are_shown_with_their_numbers(desk, uf2):
    desk.show(desk.port("AAA"), desk.port("BBB"))
    with pytest.raises(FlashError, match="2 boards could be meant") as caught:
        desk.flasher().flash(uf2)
    assert "--port or --serial-number" in caught.value.hint
    assert "AAA" in caught.value.hint
    assert "BBB" in caught.value.hint


def test_a_serial_number_picks_one(desk, uf2):
    desk.show(desk.port("AAA"), desk.port("BBB"))
    flasher = desk.flasher()
    assert flasher._find(Wanted(serial_number="BBB")).serial_number == "BBB"
    other = desk.port("CCC", vid=0x1234)
    desk.show(desk.port("AAA"), other)
    assert flasher._find(Wanted(port=other["device"])).serial_number == "CCC"


def test_two_waiting_drives_are_too_many(desk, uf2, monkeypatch):
    drive = desk.drive()
    monkeypatch.setattr(FolderDesk, "volumes", lambda *_: (drive, drive))
    with pytest.raises(FlashError, match="2 boards wait for an image"):
        desk.flasher().flash(uf2)


def test_an_image_never_goes_to_another_board_that_waits(desk, uf2):
    """One board runs and is meant, another waits in its bootloader: its drive is not the one to write to."""
    desk.show(desk.port("AAA"))
    drive = desk.drive()
    with pytest.raises(FlashError, match=r"one board runs on .* and another waits for an image") as caught:
        desk.flasher().flash(uf2, Wanted(serial_number="AAA"))
    assert "Leave one of them plugged in" in caught.value.hint
    assert not (drive / uf2.name).exists()


def test_a_board_that_does_not_reboot_asks_for_its_button_and_goes_on(desk, uf2):
    """The port is there, the touch has no effect; a person presses the button; the board comes back renamed."""
    desk.show(desk.port("AAA"))
    said = []

    def person():
        while not any("BOOTSEL" in text for text in said):
            time.sleep(0.02)
        desk.show()
        drive = desk.drive()
        while not (drive / "runner.uf2").exists() or (drive / "runner.uf2").stat().st_size < uf2.stat().st_size:
            time.sleep(0.02)
        for file in drive.iterdir():
            file.unlink()
        drive.rmdir()
        desk.show(desk.port("AAA", name="ttyACM7"))

    thread = threading.Thread(target=person)
    thread.start()
    patience = Patience(drive=0.3, person=10, port=10, access=2)
    port = desk.flasher(said, patience).flash(uf2)
    thread.join()
    assert port == json.loads((desk.folder / "ports.json").read_text())[0]["device"]


def test_a_board_that_stays_away_is_named(desk, uf2):
    desk.drive()
    with pytest.raises(FlashError, match="did not come back as a serial port") as caught:
        desk.flasher().flash(uf2)
    assert "plug it in again" in caught.value.hint


def test_the_board_that_comes_back_is_the_one_that_was_flashed(desk, uf2):
    """Another board of the same kind that is plugged in all the time is not taken for it."""
    other = desk.port("BBB")
    desk.show(other)
    desk.drive()
    desk.show(other)
    flasher = desk.flasher()
    assert flasher._returned("AAA", {other["device"]}) is None
    assert flasher._returned(None, {other["device"]}) is None
    mine = desk.port("AAA")
    desk.show(other, mine)
    assert flasher._returned("AAA", {other["device"]}) == mine["device"]
    assert flasher._returned(None, {other["device"]}) == mine["device"]


def test_a_copy_is_complete(desk, uf2):
    drive = desk.drive()
    copy_to_drive(uf2, drive)
    assert (drive / "runner.uf2").read_bytes() == uf2.read_bytes()


def test_a_full_drive_is_named(uf2):
    """/dev/full is the real thing: every write to it finds no space."""
    full = uf2.parent / "full"
    full.mkdir()
    (full / "runner.uf2").symlink_to("/dev/full")
    with pytest.raises(FlashError, match=r"the drive is full after 0 of 153,600 bytes"):
        copy_to_drive(uf2, full)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, ("may not open", "dialout")),
        (errno.EBUSY, ("another program holds the port", "monitor")),
        (errno.EIO, ("cannot be opened", "cable")),
    ],
)
def test_what_a_port_that_cannot_be_opened_means(number, words):
    error = port_error("/dev/ttyACM0", OSError(number, os.strerror(number)))
    assert all(word in str(error) for word in words)
    assert error.where == "/dev/ttyACM0"


def test_this_computers_own_desk_can_be_looked_at():
    desk = SystemDesk()
    assert all(port.device for port in desk.ports())
    assert desk.volumes("NO SUCH LABEL") == ()
