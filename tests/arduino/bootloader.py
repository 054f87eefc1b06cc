"""An Arduino board on a desk, as its USB shows it: a program's port, a 1200-baud touch, and a SAM-BA bootloader.

The bootloader speaks what Debian's `bossac` speaks with a SAMD21 that has Arduino's extensions: chip erase (X), write
buffer (Y) and checksum (Z). The flash is a byte array; faults are switched on by name.
"""

import os
import re
import select
import signal
import struct
import termios
import threading
import time
import tty
from dataclasses import dataclass, field

from tests.processes import named
from toolkit.flashing.desk import SerialPort

FLASH_SIZE = 0x40000
FIRST = 0x2000
"""Where programs begin: what lies below is the bootloader's own."""

ALWAYS = 10**9

_CPUID_M0PLUS = 0x410CC601
_DEVICE_SAMD21G18 = 0x10010005
_RAM = 0x20000000


@dataclass
class SimulatedBoard:
    """One board and the desk it stands on.

    Attributes:
        vid, pid, boot_pid: USB ids of program and bootloader.
        serial_number: of the program.
        boot_number: of the bootloader; None where it is the same.
        faults: how often each happens. `no-touch` (a touch has no effect), `late` (what appears takes a second more),
            `quiet` (no bootloader ever), `gone` (the program does not come back), and in the middle of an upload `fail`
            (erasing gives an error), `stall` (it stops answering), `flip` (a bit of the flash turns over), `killed`
            (the uploader dies by a signal), `unplugged` (the board goes away and comes back as bootloader), `lost` (it
            goes away for good).
        bystanders: other ports on the desk.
    """

    vid: int = 0x2341
    pid: int = 0x805A
    boot_pid: int = 0x005A
    serial_number: str = "F00D"
    boot_number: str | None = None
    faults: dict = field(default_factory=dict)
    bystanders: list = field(default_factory=list)
    has_picotool: bool = False
    uploader: str = "bossac"

    def __post_init__(self):
        self.flash = bytearray(b"\xff" * FLASH_SIZE)
        self.ram = bytearray(0x8000)
        self.uploads = 0
        self.touched = 0
        self.appearances = 0
        self.restarts = 0
        self._source = 0
        self._ports = []
        self._stop = threading.Event()
        self._line = None
        self._old_lines = []
        self._mode = None
        self._next = None
        self._stalled = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._show("program")
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self._hide()
        for line in self._old_lines:
            os.close(line)

    # the desk

    def ports(self):
        return (*self.bystanders, *self._ports)

    def volumes(self, label):
        return ()

    @property
    def port(self):
        return self._ports[0]

    def holds(self, content):
        """Whether the flash has a program; what follows in its last page is undefined."""
        return bytes(self.flash[FIRST : FIRST + len(content)]) == content

    # what a person does

    def double_tap(self):
        """With the reset button; in the bootloader already it stays there."""
        self._next = "bootloader"

    def reset_twice(self):
        """The same, and the bootloader is there again."""
        before = self.restarts
        self.double_tap()
        while self.restarts == before:
            time.sleep(0.01)

    def plug_in(self):
        """Plug a board in that has gone."""
        if self._mode is None and self._next is None:
            self._next = "bootloader"

    # the board

    def heal(self):
        """No more faults."""
        self.faults.clear()

    def _happens(self, name):
        """Whether a fault happens now."""
        left = self.faults.get(name, 0)
        if left:
            self.faults[name] = left - 1
        return left > 0

    def _show(self, mode):
        """A new pty for every appearance: the port's name is another each time."""
        self._board, self._line = os.openpty()
        tty.setraw(self._line)
        number = self.serial_number if mode == "program" or self.boot_number is None else self.boot_number
        pid = self.pid if mode == "program" else self.boot_pid
        self._mode = mode
        self._buffer = b""
        self._stalled = False
        self._ports = [SerialPort(os.ttyname(self._line), self.vid, pid, number, mode)]
        self.appearances += 1

    def _hide(self):
        self._ports = []
        self._mode = None
        if self._line is not None:
            os.close(self._board)
            self._old_lines.append(self._line)  # while it is open, nobody gets its name
            self._line = None

    def _restart(self, mode):
        self._hide()
        time.sleep(1.0 if self._happens("late") else 0.1)
        if mode != "nothing" and not (mode == "program" and self._happens("gone")):
            self._show(mode)

    def _run(self):
        while not self._stop.is_set():
            if self._next is not None:
                mode, self._next = self._next, None
                self._restart(mode)
                self.restarts += 1
            else:
                self._live()

    def _live(self):
        """A moment of its life."""
        if self._mode == "program":
            time.sleep(0.01)
            self._watch_for_touch()
        elif self._mode == "bootloader":
            self._serve()
        else:
            time.sleep(0.02)

    def _watch_for_touch(self):
        if termios.tcgetattr(self._line)[5] == termios.B1200:
            self.touched += 1
            attributes = termios.tcgetattr(self._line)
            attributes[4] = attributes[5] = termios.B115200
            termios.tcsetattr(self._line, termios.TCSANOW, attributes)
            if not self._happens("no-touch") and not self._happens("quiet"):
                self._next = "bootloader"

    def _serve(self):
        if not select.select([self._board], [], [], 0.02)[0]:
            return
        self._buffer += os.read(self._board, 4096)
        while (found := re.match(rb"[\r\n]*([A-Za-z])([0-9a-fA-F]*),?([0-9a-fA-F]*)#", self._buffer)) is not None:
            rest = self._buffer[found.end() :]
            command, address = found[1].decode(), int(found[2] or b"0", 16)
            value = int(found[3] or b"0", 16)
            if command == "S":
                while len(rest) < value and not self._stop.is_set():
                    if select.select([self._board], [], [], 0.1)[0]:
                        rest += os.read(self._board, 4096)
                self._store(address, rest[:value])
                rest = rest[value:]
            else:
                self._answer(command, address, value)
            self._buffer = rest
            if self._next is not None:
                return

    def _answer(self, command, address, value):
        if command == "Y" and value and self._misbehave():
            return
        if self._stalled:
            return
        answers = {
            "N": lambda: b"\n\r",
            "V": lambda: b"v2.0 [Arduino:XYZ] Apr 19 2019 14:38:48\n\r",
            "w": lambda: struct.pack("<I", self._word(address)),
            "o": lambda: struct.pack("<B", self._word(address) & 0xFF),
            "h": lambda: struct.pack("<H", self._word(address) & 0xFFFF),
            "R": lambda: bytes(self._memory(address, value)),
            "X": lambda: self._erase(address),
            "Y": lambda: self._write(address, value),
            "Z": lambda: self._checksum(address, value),
            "W": lambda: self._poke(address, value),
        }
        os.write(self._board, answers.get(command, lambda: b"")())

    def _misbehave(self):
        """What happens in the middle of an upload; whether anything does."""
        if self._happens("stall"):
            self._stalled = True
        elif self._happens("killed"):
            for process in named(self.uploader):
                os.kill(process, signal.SIGKILL)
        elif self._happens("unplugged"):
            self._next = "bootloader"
        elif self._happens("lost"):
            self._next = "nothing"
        else:
            return False
        return True

    def _word(self, address):
        fixed = {0xE000ED00: _CPUID_M0PLUS, 0x41002018: _DEVICE_SAMD21G18, 0x41004014: 1}
        if address in fixed:
            return fixed[address]
        return struct.unpack("<I", bytes(self._memory(address, 4)).ljust(4, b"\0"))[0]

    def _memory(self, address, size):
        if address >= _RAM:
            return self.ram[address - _RAM : address - _RAM + size]
        return self.flash[address : address + size]

    def _store(self, address, data):
        self.ram[address - _RAM : address - _RAM + len(data)] = data

    def _erase(self, address):
        if self._happens("fail"):
            return b"E\n\r"
        assert address >= FIRST, "the bootloader would be erased"
        self.flash[address:] = b"\xff" * (FLASH_SIZE - address)
        return b"X\n\r"

    def _write(self, address, size):
        if size == 0:
            self._source = address
        else:
            assert address >= FIRST, "the bootloader would be overwritten"
            self.flash[address : address + size] = self._memory(self._source, size)
            if self._happens("flip"):
                self.flash[address + size // 2] ^= 0x10
        return b"Y\n\r"

    def _checksum(self, address, size):
        return b"Z%08X#\n\r" % crc16(self._memory(address, size))

    def _poke(self, address, value):
        if address == 0xE000ED0C and value == 0x05FA0004:
            self.uploads += 1
            self._next = "program"
        return b""


class BridgeBoard(SimulatedBoard):
    """An Uno R4 WiFi: an ESP32 holds the port, which stays while the chip behind it restarts.

    A touch resets that chip into its bootloader at any time. The bootloader cannot read back.
    """

    def __init__(self, **words):
        super().__init__(pid=0x1002, boot_pid=0x1002, **words)

    def _restart(self, mode):
        if mode == "nothing":
            super()._restart(mode)
        elif self._line is None:
            self._show(mode)
        else:
            time.sleep(1.2 if self._happens("late") else 0.2)
            self._mode = mode
            self._buffer = b""
            self._stalled = False
            termios.tcflush(self._line, termios.TCIOFLUSH)

    def _live(self):
        if self._mode is not None:
            self._watch_for_touch()
        if self._mode == "program" and select.select([self._board], [], [], 0)[0]:
            os.read(self._board, 4096)
        super()._live()

    def _checksum(self, address, size):
        return b""


def crc16(data):
    """CRC-16/XMODEM, which SAM-BA's extension uses."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
        crc &= 0xFFFF
    return crc
