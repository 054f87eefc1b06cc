"""The board's serial ports on the desk: the UART, and the USB port that comes and goes."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from pathlib import Path

from toolkit.emulation.rp2350.desk import Port, SerialLine, write_ports
from toolkit.emulation.rp2350.machine import Machine
from toolkit.emulation.rp2350.misbehaviour import FROM_BOARD, TO_BOARD, Losses, Plan, PortGone, PortRenamed, Silent
from toolkit.emulation.rp2350.usb_host import BOOTSEL_BAUD, SerialFunction, UsbHost

_DEFAULT_BAUD = 115_200
_UART_NAME = "ttyS0"
_UART_PRODUCT = "UART0 (GP0, GP1)"
_UART_BACKLOG = 64
_USB_BACKLOG = 8192


class Mute:
    """Whether the board still answers: a board that went silent takes bytes and sends none."""

    def __init__(self, plan: Plan) -> None:
        self._fault = plan.take(Silent)
        self._sent = 0

    def pass_on(self, data: bytes) -> bytes:
        """What is still sent of data."""
        if self._fault is None:
            return data
        room = max(0, self._fault.after - self._sent)
        self._sent += len(data)
        return data[:room]


class UartPort:
    """The UART's end on the desk."""

    def __init__(self, plan: Plan, mute: Mute) -> None:
        self.line = SerialLine()
        self._from_board = Losses(plan, "uart", FROM_BOARD)
        self._to_board = Losses(plan, "uart", TO_BOARD)
        self._mute = mute
        self._sent = bytearray()

    def transmit(self, byte: int) -> None:
        """The board sends a byte."""
        self._sent.append(byte)

    def exchange(self, machine: Machine) -> bool:
        """Move bytes; True if there were any."""
        sent, self._sent = bytes(self._sent), bytearray()
        if not self.line.open:
            self.line.forget()  # nobody is listening: bytes are lost, as on a real wire
            return bool(sent)
        self.line.write(self._from_board.filter(self._mute.pass_on(sent)))
        uart = machine.system.uart
        room = _UART_BACKLOG - uart.backlog
        data = self.line.read(room) if room > 0 else b""
        uart.receive(self._to_board.filter(data))
        return bool(sent or data or uart.backlog)


class UsbPort:
    """The USB port on the desk: a line while the host has configured the board."""

    def __init__(self, plan: Plan, mute: Mute) -> None:
        self._plan = plan
        self._mute = mute
        self._from_board = Losses(plan, "usb", FROM_BOARD)
        self._to_board = Losses(plan, "usb", TO_BOARD)
        self._number = 0
        self._device = ""
        self.line: SerialLine | None = None
        self.port: Port | None = None
        self._open = False
        self._baud = _DEFAULT_BAUD
        self._received = bytearray()

    def appear(self, function: SerialFunction) -> None:
        """The host has configured the board."""
        renamed = self._device and self._plan.take(PortRenamed)
        if renamed:
            self._number += 1
        self.line = SerialLine(unlike=self._device if renamed else "")
        self._device = self.line.device
        self._open, self._baud = False, _DEFAULT_BAUD
        self.port = Port(
            self._device,
            f"ttyACM{self._number}",
            function.vid,
            function.pid,
            function.serial_number,
            function.product,
        )

    def vanish(self) -> SerialLine | None:
        """The board has left the bus: the line, still to be closed. A name that a client holds is not reused."""
        line, self.line, self.port = self.line, None, None
        received, self._received = self._received, bytearray()
        if line is not None:
            line.write(received)
            self._number += line.open
        return line

    def receive(self, data: bytes) -> None:
        """The board sends bytes."""
        self._received += self._from_board.filter(self._mute.pass_on(data))

    def exchange(self, host: UsbHost) -> bool:
        """See what the client does, and move bytes; True if there were any."""
        line = self.line
        if line is None:
            return False
        self._follow_client(line, host)
        received, self._received = self._received, bytearray()
        line.write(received)
        if line.full or not self.takes(host):
            return True
        data = line.read()
        if data:
            host.send(self._to_board.filter(data))
        return bool(received or data) or not host.quiet

    @staticmethod
    def takes(host: UsbHost) -> bool:
        """Whether more is taken from the client."""
        return len(host.outgoing) < _USB_BACKLOG

    def _follow_client(self, line: SerialLine, host: UsbHost) -> None:
        """Opening raises DTR, closing drops it; 1200 baud is told even if the port was closed at once."""
        is_open, baud = line.open, line.baud
        if is_open and not self._open:
            host.open_port(baud)
        elif baud != self._baud and (is_open or baud == BOOTSEL_BAUD):
            host.set_baud(baud)
        if self._open and not is_open:
            host.close_port()
            line.forget()
        self._open, self._baud = is_open, baud


class Ports:
    """All ports of a board.

    Args:
        desk: folder of the desk.
        plan: what is wrong with the board.
    """

    def __init__(self, desk: Path, plan: Plan) -> None:
        self._desk = desk
        self._plan = plan
        mute = Mute(plan)
        self.uart = UartPort(plan, mute)
        self._usb = UsbPort(plan, mute)
        self._host: UsbHost | None = None
        self._machine: Machine | None = None
        self._gone_until = 0.0
        self.on_line: Callable[[SerialLine], None] = lambda _: None  # told of each new line
        self._list()

    def _list(self) -> None:
        uart = Port(self.uart.line.device, _UART_NAME, None, None, None, _UART_PRODUCT)
        write_ports(self._desk, [port for port in (self._usb.port, uart) if port is not None])

    def connect(self, machine: Machine, after: str) -> None:
        """A chip booted: plug its USB cable in, at once or later."""
        self.disconnect()
        self._machine = machine

        def received(data: bytes) -> None:
            self._usb.receive(data)
            machine.look_soon()

        self._host = UsbHost(machine.system.usb, machine.timeline, self._appeared, self._vanished, received)
        gone = self._plan.take(PortGone, after=after)
        if gone is None and after != "start":
            gone = self._plan.take(PortGone, after="any")
        if gone is not None:
            self._gone_until = time.monotonic() + gone.seconds
            self._host.connectable = False

    def disconnect(self) -> None:
        """The chip was reset."""
        self._machine = self._host = None
        self._vanished()

    def remove_all(self) -> None:
        """The board was switched off."""
        self._vanished()
        self.uart.line.close()
        write_ports(self._desk, [])

    def _appeared(self, function: SerialFunction) -> None:
        self._usb.appear(function)
        if self._usb.line is not None:
            self.on_line(self._usb.line)
        self._list()

    def _vanished(self) -> None:
        line = self._usb.vanish()
        if line is not None:
            self._list()  # first, so that nobody finds a port in the list that is not there any more
            line.close()

    def exchange(self) -> bool:
        """Move bytes between the chip and its clients; True if any are on their way."""
        if self._machine is None or self._host is None:
            return False
        if not self._host.connectable and time.monotonic() >= self._gone_until:
            self._host.connectable = True
            self._host.notice()
        by_uart = self.uart.exchange(self._machine)
        return self._usb.exchange(self._host) or by_uart

    def wait(self, seconds: float) -> float:
        """Sleep until a client sends something, at most for a time; seconds slept."""
        lines = []
        if self._machine is not None and self._machine.system.uart.backlog < _UART_BACKLOG:
            lines.append(self.uart.line)
        if self._usb.line is not None and self._host is not None and self._usb.takes(self._host):
            lines.append(self._usb.line)
        lines = [line for line in lines if line.open]
        began = time.monotonic()
        if lines:
            select.select(lines, [], [], seconds)
        else:
            time.sleep(seconds)
        return min(seconds, time.monotonic() - began)

    def discard(self, seconds: float) -> None:
        """Nobody takes what clients send."""
        time.sleep(seconds)
