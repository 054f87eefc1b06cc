"""Which board is meant, and its port: named, found once, and opened with patience."""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import serial

from toolkit.board import Board
from toolkit.errors import FlashError
from toolkit.flashing.desk import Desk, SerialPort

_OPENING_ERRORS: tuple[type[Exception], ...] = (serial.SerialException, OSError)
if sys.platform != "win32":
    import termios

    _OPENING_ERRORS += (termios.error,)  # of a port that goes away while it is opened; it is no OSError

TOUCH_BAUD = 1200
"""Opening a port at this speed tells a program to reboot into its bootloader."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of several boards is meant.

    Attributes:
        port: name of its serial port, None for any.
        serial_number: its USB serial number, None for any.
    """

    port: str | None = None
    serial_number: str | None = None

    def matches(self, port: SerialPort) -> bool:
        return self.port in (None, port.device) and self.serial_number in (None, port.serial_number)


def matching(desk: Desk, expected: Sequence[SerialPort], wanted: Wanted) -> list[SerialPort]:
    """Those of the expected ports that are meant; a port that a person names is taken whatever its USB identity."""
    candidates = desk.ports() if wanted.port is not None else expected
    return [port for port in candidates if wanted.matches(port)]


def require_one(found: Sequence[SerialPort], board: Board) -> None:
    """Raise a FlashError that lists the boards when there are several."""
    if len(found) > 1:
        rows = [
            f"{port.device:<16} {port.serial_number or '(no serial number)':<20} {port.description}" for port in found
        ]
        raise FlashError(
            f"{len(found)} boards could be meant",
            where=board.name,
            hint="\n  ".join(["Name one with --port or --serial-number:", *rows]),
        )


def open_and_close(port: SerialPort, desk: Desk, seconds: float, *, baud: int = 115200, may_go: bool = False) -> None:
    """Open a port and close it again; tried until that works, because a new device node may not be ours to open yet.

    Args:
        port: which.
        desk: where it is.
        seconds: how long to try.
        baud: speed to open it at.
        may_go: whether a port that has gone meanwhile is as good as opened (its board is rebooting).

    Raises:
        FlashError: it cannot be opened; the hint says what that means.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            serial.Serial(port.device, baud, exclusive=True).close()  # not under the hands of another program
            return
        except _OPENING_ERRORS as error:
            if may_go and port.device not in {other.device for other in desk.ports()}:
                return
            if time.monotonic() > deadline:
                raise port_error(port.device, error) from None
            time.sleep(0.1)


def port_error(device: str, error: Exception) -> FlashError:
    """What a port that cannot be opened means for a person."""
    number = getattr(error, "errno", None)
    text = str(error).lower()
    if number == errno.EACCES or "permission" in text or "access is denied" in text:
        return FlashError(
            "this user may not open the port",
            where=device,
            hint="On Linux: sudo usermod -aG dialout $USER, then log in again (or a udev rule). It may also be in use.",
        )
    if number in (errno.EBUSY, errno.EAGAIN) or "busy" in text or "exclusive" in text:
        return FlashError(
            "another program holds the port",
            where=device,
            hint="Close the serial monitor, IDE or other `deploy` that uses it, and run this again.",
        )
    return FlashError(f"the port cannot be opened: {error}", where=device, hint="Check the cable, then run this again.")
