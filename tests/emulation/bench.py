"""A machine with a USB host and without a desk: what tests of the chip talk to, and clients for boards on desks."""

import time
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path

import serial

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.bootrom import Reboot
from toolkit.emulation.rp2350.image import BootImage, find_image
from toolkit.emulation.rp2350.machine import Machine, Outcome, Wires
from toolkit.emulation.rp2350.report import describe, read_symbols
from toolkit.emulation.rp2350.system import Memories
from toolkit.emulation.rp2350.uf2_blocks import BLOCK_BYTES, parse_block
from toolkit.emulation.rp2350.usb_host import UsbHost

UNIQUE_ID = 0x0123_4567_89AB_CDEF
PATIENCE = 400_000_000  # instructions


@dataclass(frozen=True)
class Probe:
    """The probe firmware."""

    elf: Path
    uf2: Path


def flash_with(uf2):
    """Flash memory that holds a UF2."""
    flash = mmap(-1, chip.FLASH_BYTES)
    flash[:] = b"\xff" * chip.FLASH_BYTES
    data = uf2.read_bytes()
    for start in range(0, len(data), BLOCK_BYTES):
        block = parse_block(data[start : start + BLOCK_BYTES])
        if not block.ignorable:
            offset = block.address - chip.XIP_BASE
            flash[offset : offset + len(block.payload)] = block.payload
    return flash


class Bench:
    """The probe firmware on a machine, asked over USB (and UART) in virtual time."""

    def __init__(self, probe, hook="auto"):
        self.probe = probe
        self.sent_by_uart = bytearray()
        self.received = bytearray()
        image = find_image(memory := flash_with(probe.uf2))
        assert isinstance(image, BootImage)
        self.machine = Machine(
            Memories(memory), image, Reboot(0), Wires(self.sent_by_uart.append), unique_id=UNIQUE_ID, hook_kind=hook
        )
        system = self.machine.system
        self.host = UsbHost(system.usb, system.timeline, lambda _: None, lambda: None, self.received.extend)
        self.run_until(lambda: self.host.function is not None)
        self.host.open_port(115200)
        self.run_until(lambda: self.host.quiet)
        assert self.ask("usb-only") == "usb-only"

    def run_until(self, reached, instructions=PATIENCE):
        """Run until something is so; fails when the firmware halts or takes too long."""
        end = self.machine.instructions + instructions
        while not reached():
            outcome = self.step()
            assert outcome is not Outcome.HALTED, self.report()
            assert self.machine.instructions < end, "the firmware takes too long"

    def step(self):
        outcome = self.machine.run(20_000)
        if outcome is Outcome.ASLEEP:
            self.machine.sleep(self.machine.sleeps_until())
        return outcome

    def ask(self, line):
        """Send a command; its answer."""
        self.received.clear()
        self.host.send(line.encode() + b"\n")
        self.run_until(lambda: self.received.endswith(b"\n"))
        return self.received.decode().strip()

    def halt(self, line):
        """Send a command that the board does not survive; its fault report."""
        self.host.send(line.encode() + b"\n")
        end = self.machine.instructions + PATIENCE
        while self.step() is not Outcome.HALTED:
            assert self.machine.instructions < end, "nothing was noticed"
        return self.report()

    def report(self):
        return describe(self.machine, read_symbols(self.probe.elf))


def wait_for(reached, seconds=20.0):
    """Wait in real time until something is so; gives it."""
    deadline = time.monotonic() + seconds
    while not (value := reached()):
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.005)
    return value


def usb_port(board, seconds=20.0):
    """The board's USB port, once it is there."""
    return wait_for(lambda: next((port for port in board.ports() if port.vid is not None), None), seconds)


def uart_port(board):
    return next(port for port in board.ports() if port.vid is None)


class Client:
    """A program that has a port open."""

    def __init__(self, device, timeout=10.0):
        self.line = serial.Serial(device, 115200, timeout=timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.line.close()

    def ask(self, line):
        self.line.write(line.encode() + b"\n")
        return self.read()

    def read(self):
        return self.line.readline().decode().strip()
