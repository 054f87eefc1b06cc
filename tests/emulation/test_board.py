"""The board on a desk: ports, folder, status, the way from one image to the next, and that no process is left."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import serial

from tests.emulation.bench import Client, uart_port, usb_port, wait_for
from toolkit.emulation import rp2350
from toolkit.errors import FlashError

ROOT = Path(__file__).parents[2]
ID = "4E65766572487921"


@pytest.fixture(scope="module", params=["auto", "python"])
def running(request, probe, tmp_path_factory):
    """A board that runs the probe firmware, with each hook."""
    desk = tmp_path_factory.mktemp("desk")
    with rp2350.start(desk, uf2=probe.uf2, elf=probe.elf, hook=request.param) as board:
        yield board


def test_it_boots_and_enumerates_within_a_time(probe, tmp_path):
    began = time.monotonic()
    with rp2350.start(tmp_path, uf2=probe.uf2) as board:
        port = usb_port(board)
        assert time.monotonic() - began < 10  # 0.8 s on a computer with nothing else to do
        with Client(port.device) as client:
            assert client.ask("echo up") == "up"


def test_the_ports_are_listed_as_a_desk_would(running):
    usb_port(running)
    usb, uart = json.loads((running.desk / "ports.json").read_text())
    assert usb.pop("device").startswith("/dev/pts/")
    assert usb == {"name": "ttyACM0", "vid": 0x2E8A, "pid": 0x0009, "serial_number": ID, "product": "Pico"}
    assert set(uart) == {"device", "name", "product"}


def test_echo_on_both_ports(running):
    with Client(usb_port(running).device) as usb, Client(uart_port(running).device) as uart:
        assert usb.ask("echo one") == "one"
        assert uart.read() == "one"  # the firmware answers on both
        assert uart.ask("echo two") == "two"
        assert usb.read() == "two"


def test_status_counts_instructions(running):
    with Client(usb_port(running).device) as client:
        before = running.status().instructions
        client.ask("compute 300000")
        after = wait_for(lambda: (now := running.status()).instructions - before > 2_700_000 and now)
    assert after.state == "running"
    assert after.fault is None
    assert running.stopped() is None


def test_a_large_input_arrives_whole(probe, tmp_path):
    """110 KB, as an image model's input; 2 s on a computer with nothing else to do."""
    data = bytes(range(256)) * 430
    checksum = 0
    for byte in data:
        checksum = checksum * 31 + byte & 0xFFFF_FFFF
    with rp2350.start(tmp_path, uf2=probe.uf2) as board, Client(usb_port(board).device, timeout=60) as client:
        assert client.ask("usb-only") == "usb-only"
        client.line.write(b"take %d\n" % len(data) + data)
        assert client.read() == f"took {len(data)} {checksum:08x}"
        client.line.write(b"give 3000\n")
        assert client.read() == "giving 3000"
        assert client.line.read(3000) == bytes((i * 7 + 13) & 0xFF for i in range(3000))


def bootsel(board):
    return wait_for(lambda: (board.desk / "RP2350" / "INFO_UF2.TXT").is_file() and board.desk / "RP2350")


def test_from_bootsel_to_firmware_and_back_in_both_ways(probe, tmp_path):
    with rp2350.start(tmp_path) as board:
        assert board.status() == rp2350.Status("bootsel", 0, None)
        assert [port.vid for port in board.ports()] == [None]
        folder = bootsel(board)
        assert sorted(path.name for path in folder.iterdir()) == ["INDEX.HTM", "INFO_UF2.TXT"]
        assert "Board-ID: RP2350" in (folder / "INFO_UF2.TXT").read_text()

        shutil.copy(probe.uf2, folder / "probe.uf2")
        first = usb_port(board)
        assert not folder.exists()
        assert board.status().state == "running"

        serial.Serial(first.device, 1200).close()  # the touch
        shutil.copy(probe.uf2, bootsel(board) / "again.uf2")
        with Client(usb_port(board).device) as client:
            assert client.ask("echo again") == "again"
            client.line.write(b"bootsel\n")  # reset_usb_boot
            bootsel(board)
        assert [port.vid for port in board.ports()] == [None]


def test_a_port_that_is_held_comes_back_under_another_name(probe, tmp_path):
    with rp2350.start(tmp_path, uf2=probe.uf2) as board:
        held = serial.Serial(usb_port(board).device, 115200)
        held.write(b"reboot\n")
        names = wait_for(lambda: [port.name for port in board.ports() if port.vid and port.name != "ttyACM0"])
        assert names == ["ttyACM1"]
        with Client(usb_port(board).device) as client:
            assert client.ask("identity") == f"identity {ID} 150000000 1"  # the watchdog rebooted it
        held.close()


def test_kept_flash_boots_after_power_was_off(probe, tmp_path):
    with rp2350.start(tmp_path, keep_flash=True) as board:
        shutil.copy(probe.uf2, bootsel(board) / "probe.uf2")
        usb_port(board)
    assert (tmp_path / "flash.bin").stat().st_size == 4 * 1024 * 1024
    assert not list(board.ports())
    with rp2350.start(tmp_path, keep_flash=True) as board, Client(usb_port(board).device) as client:
        assert client.ask("echo kept") == "kept"


def test_a_fault_halts_the_board_and_says_why(probe, tmp_path):
    with rp2350.start(tmp_path, uf2=probe.uf2, elf=probe.elf) as board:
        with Client(usb_port(board).device) as client:
            client.line.write(b"fault ldrd\n")
            status = wait_for(lambda: (now := board.status()).state == "halted" and now)
        assert "unaligned access" in status.fault
        assert "unaligned_pair" in status.fault
        assert board.stopped() == status.fault
        assert board.process.poll() is None
        assert usb_port(board)  # the computer does not know yet


def gone(process_id):
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return True
    return "Z" in Path(f"/proc/{process_id}/stat").read_text().split()[2]


def test_the_process_ends_with_the_block(probe, tmp_path):
    with rp2350.start(tmp_path, uf2=probe.uf2) as board:
        usb_port(board)
    assert board.process.returncode == 0
    assert json.loads((tmp_path / "ports.json").read_text()) == []


def test_it_does_not_outlive_a_parent_that_is_killed(probe, tmp_path):
    program = f"""
        from pathlib import Path
        import time
        from toolkit.emulation import rp2350
        with rp2350.start(Path({str(tmp_path)!r}), uf2=Path({str(probe.uf2)!r})) as board:
            print(board.process.pid, flush=True)
            time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        board = int(parent.stdout.readline())
        assert not gone(board)
        parent.send_signal(signal.SIGKILL)
        wait_for(lambda: gone(board), 10)


def test_a_board_that_cannot_start_says_why(tmp_path):
    with pytest.raises(FlashError, match="does not start") as error, rp2350.start(tmp_path, uf2=tmp_path / "none.uf2"):
        pass
    assert "none.uf2" in error.value.hint


def test_the_command_line_starts_a_board(probe, tmp_path):
    command = [sys.executable, "-m", "toolkit.emulation.rp2350", str(tmp_path), "--uf2", str(probe.uf2)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as process:
        try:
            wait_for(lambda: (tmp_path / "status.json").is_file(), 20)
            ports = wait_for(lambda: [p for p in json.loads((tmp_path / "ports.json").read_text()) if "vid" in p])
            assert ports[0]["product"] == "Pico"
            process.terminate()
            assert process.wait(10) == 0
        finally:
            process.kill()


def test_it_is_switched_off_whatever_it_is_doing(probe, tmp_path):
    """Also in the middle of one of Unicorn's callbacks, from which no exception comes through."""
    for number in range(12):
        desk = tmp_path / str(number)
        with rp2350.start(desk, uf2=probe.uf2, hook="python") as board:
            time.sleep(0.02 * number)
            board.process.terminate()
            assert board.process.wait(10) == 0
            assert board.log == ""
