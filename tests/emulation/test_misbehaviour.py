"""Each misbehaviour happens as asked, as often as asked, and only then."""

import errno
import shutil
import time

import pytest
import serial

from tests.emulation.bench import Client, uart_port, usb_port, wait_for
from tests.emulation.test_board import bootsel
from toolkit.emulation import rp2350
from toolkit.emulation.rp2350 import BytesLost, PortGone, PortRenamed, RebootAt, Silent, TornWrite, VolumeFull
from toolkit.emulation.rp2350.image import BootImage, find_image
from toolkit.emulation.rp2350.misbehaviour import Plan, parse, text_of
from toolkit.errors import UsageError

FAULTS = [
    PortGone(seconds=2.5, after="flash"),
    PortRenamed(times=3),
    BytesLost(direction="to-board", after=100, count=7, port="uart", times=2),
    Silent(after=12),
    VolumeFull(name="model.uf2"),
    TornWrite(blocks=40),
    RebootAt(instructions=5_000_000),
]


@pytest.mark.parametrize("fault", FAULTS, ids=text_of)
def test_every_fault_has_a_text_form(fault):
    assert parse(text_of(fault)) == fault


def test_defaults_need_not_be_written():
    assert parse("silent") == Silent(after=0, times=1)
    assert parse("torn-write:blocks=3") == TornWrite(blocks=3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("explode", "no misbehaviour 'explode'"),
        ("torn-write", "needs blocks"),
        ("torn-write:blocks=many", "not a number"),
        ("silent:loud=1", "has no 'loud'"),
        ("bytes-lost:direction=up,after=1", "direction is 'up'"),
    ],
)
def test_what_is_not_a_fault_is_said(text, said):
    with pytest.raises(UsageError, match=said):
        parse(text)


def test_a_plan_runs_out():
    plan = Plan((TornWrite(blocks=1, times=2), Silent()))
    assert [plan.take(TornWrite) is not None for _ in range(3)] == [True, True, False]
    assert plan.take(Silent) == Silent()
    assert plan.take(Silent) is None


def test_a_port_that_stays_away_after_flashing(probe, tmp_path):
    with rp2350.start(tmp_path, faults=[PortGone(seconds=2, after="flash")]) as board:
        shutil.copy(probe.uf2, bootsel(board) / "probe.uf2")
        began = wait_for(lambda: board.status().state == "running" and time.monotonic())
        with Client(usb_port(board).device) as client:
            assert time.monotonic() - began >= 1.8
            client.line.write(b"reboot\n")
            wait_for(lambda: not any(port.vid for port in board.ports()))
            began = time.monotonic()
        usb_port(board)
        assert time.monotonic() - began < 1.8  # once only


def test_a_port_that_comes_back_under_another_name(probe, tmp_path):
    with rp2350.start(tmp_path, uf2=probe.uf2, faults=[PortRenamed()]) as board:
        before = usb_port(board)
        with Client(before.device) as client:
            client.line.write(b"reboot\n")
            time.sleep(0.05)
        after = wait_for(lambda: next((p for p in board.ports() if p.vid and p.name != before.name), None))
        assert after.name != "ttyACM0"
        assert after.device != before.device
        assert after.serial_number == before.serial_number


def test_bytes_lost_from_the_board(probe, tmp_path):
    fault = BytesLost(direction="from-board", after=len("usb-only\r\n") + 3, count=4)
    with rp2350.start(tmp_path, uf2=probe.uf2, faults=[fault]) as board, Client(usb_port(board).device) as client:
        assert client.ask("usb-only") == "usb-only"
        assert client.ask("echo 0123456789") == "012789"
        assert client.ask("echo 0123456789") == "0123456789"


def test_bytes_lost_on_the_way_to_the_board(probe, tmp_path):
    fault = BytesLost(direction="to-board", after=7, count=2, port="uart")
    with rp2350.start(tmp_path, uf2=probe.uf2, faults=[fault]) as board:
        usb_port(board)
        with Client(uart_port(board).device) as client:
            assert client.ask("echo abcdef") == "abef"
            assert client.ask("echo abcdef") == "abcdef"


def test_a_board_that_falls_silent(probe, tmp_path):
    with rp2350.start(tmp_path, uf2=probe.uf2, faults=[Silent(after=5)]) as board:
        port = usb_port(board)
        with Client(port.device, timeout=1) as client:
            client.line.write(b"usb-only\n")
            assert client.line.read(100) == b"usb-o"
            client.line.write(b"echo hello\n")
            assert client.line.read(100) == b""
        assert board.status().state == "running"


def test_a_drive_that_is_full(probe, tmp_path):
    with rp2350.start(tmp_path, faults=[VolumeFull(name="model.uf2")]) as board:
        folder = bootsel(board)
        with pytest.raises(OSError, match="No space left") as error:
            shutil.copyfile(probe.uf2, folder / "model.uf2")
        assert error.value.errno == errno.ENOSPC
        assert board.status().state == "bootsel"
        shutil.copyfile(probe.uf2, folder / "other.uf2")
        usb_port(board)


def test_a_write_that_is_torn_in_the_middle(probe, tmp_path):
    with rp2350.start(tmp_path, keep_flash=True, faults=[TornWrite(blocks=50)]) as board:
        folder = bootsel(board)
        shutil.copyfile(probe.uf2, folder / "probe.uf2")
        wait_for(lambda: not folder.exists())
        assert sorted(path.name for path in bootsel(board).iterdir()) == ["INDEX.HTM", "INFO_UF2.TXT"]
        assert board.status().state == "bootsel"
        flash = (tmp_path / "flash.bin").read_bytes()
        assert flash[: 50 * 256] != b"\xff" * (50 * 256)
        assert flash[50 * 256 :] == b"\xff" * (len(flash) - 50 * 256)
        shutil.copyfile(probe.uf2, folder / "probe.uf2")
        usb_port(board)
        assert isinstance(find_image((tmp_path / "flash.bin").read_bytes()), BootImage)


def test_a_reboot_while_it_computes(probe, tmp_path):
    with rp2350.start(tmp_path, uf2=probe.uf2, faults=[RebootAt(instructions=60_000_000)]) as board:
        port = usb_port(board)
        with Client(port.device, timeout=5) as client:
            client.line.write(b"compute 100000000\n")  # 900 million instructions
            with pytest.raises(serial.SerialException):
                client.line.read(100)
        with Client(usb_port(board).device) as client:
            assert client.ask("echo back") == "back"
        assert "the power fails after 6000" in board.log
