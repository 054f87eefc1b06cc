"""What a desk presents: serial ports (pseudo-terminals), and two files that say how things stand."""

from __future__ import annotations

import fcntl
import json
import os
import select
import struct
import tty
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PORTS_FILE = "ports.json"
STATUS_FILE = "status.json"

_TCGETS2 = 0x802C_542A  # the client's settings, read at our end; struct termios2
_TERMIOS2_BYTES = 44
_OSPEED = 40
_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Port:
    """A serial port as an operating system lists it.

    Attributes:
        device: path for pyserial.
        name: what the operating system would call it.
        vid, pid, serial_number: of the USB device; None for the UART.
        product: what it says it is.
    """

    device: str
    name: str
    vid: int | None
    pid: int | None
    serial_number: str | None
    product: str


class SerialLine:
    """A pseudo-terminal: the board at one end, a client at the other."""

    def __init__(self, *, unlike: str = "") -> None:
        """Args: unlike: a device path that this line must not get."""
        spare: list[int] = []
        while True:
            self._end, client = os.openpty()
            self.device = os.ttyname(client)
            if self.device != unlike:
                break
            spare += (self._end, client)
        tty.setraw(client)
        for descriptor in (*spare, client):
            os.close(descriptor)
        os.set_blocking(self._end, False)
        self._poll = select.poll()
        self._poll.register(self._end, select.POLLIN)
        self._pending = bytearray()

    def fileno(self) -> int:
        return self._end

    @property
    def open(self) -> bool:
        """Whether a client has it open."""
        return not any(events & select.POLLHUP for _, events in self._poll.poll(0))

    @property
    def baud(self) -> int:
        """The speed the client asked for, also after it closed the port."""
        settings = bytearray(_TERMIOS2_BYTES)
        fcntl.ioctl(self._end, _TCGETS2, settings)
        return int(struct.unpack_from("<I", settings, _OSPEED)[0])

    @property
    def full(self) -> bool:
        """Whether the client does not read what it was sent."""
        return len(self._pending) > _CHUNK

    def read(self, limit: int = _CHUNK) -> bytes:
        """What the client has written."""
        try:
            return os.read(self._end, limit)
        except (BlockingIOError, OSError):
            return b""

    def write(self, data: bytes | bytearray = b"") -> None:
        """Send to the client; what it does not take now is sent with the next call."""
        self._pending += data
        if self._pending:
            try:
                del self._pending[: os.write(self._end, self._pending)]
            except (BlockingIOError, OSError):
                return

    def forget(self) -> None:
        """Drop what no client took."""
        self._pending.clear()

    def close(self) -> None:
        """The port goes away; a client that has it open is told."""
        os.close(self._end)


def write_atomically(path: Path, content: object) -> None:
    """Replace a file by JSON so that no reader sees half of it."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(content) + "\n", encoding="utf-8")
    part.replace(path)


def write_ports(desk: Path, ports: Iterable[Port]) -> None:
    """List the serial ports; fields that a port does not have are left out."""
    names = ("device", "name", "vid", "pid", "serial_number", "product")
    entries = [{name: value for name in names if (value := getattr(port, name)) is not None} for port in ports]
    write_atomically(desk / PORTS_FILE, entries)


def write_status(desk: Path, state: str, instructions: int, fault: str | None) -> None:
    """Say how the board is."""
    write_atomically(desk / STATUS_FILE, {"state": state, "instructions": instructions, "fault": fault})


def read_ports(desk: Path) -> tuple[Port, ...]:
    """The serial ports of a desk; none where it has not presented any yet."""
    try:
        entries = json.loads((desk / PORTS_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    return tuple(
        Port(
            entry["device"],
            entry["name"],
            entry.get("vid"),
            entry.get("pid"),
            entry.get("serial_number"),
            entry["product"],
        )
        for entry in entries
    )
