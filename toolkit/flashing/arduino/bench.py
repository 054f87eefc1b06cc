"""One kind of Arduino board on a desk: what it looks like on USB, who says what, and how long to wait for what."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from toolkit.board import Arduino, Board, Usb
from toolkit.errors import FlashError
from toolkit.flashing.choice import TOUCH_BAUD, open_and_close
from toolkit.flashing.desk import Desk, SerialPort


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds.

    Attributes:
        bootloader: until the bootloader appears after a touch.
        person: until it appears when a person must press the reset button, and until a board is plugged in.
        upload: for one upload.
        port: until the program's port comes back.
        access: until a port or device that is there can be opened.
        bridge: after the touch, until the chip behind a bridge is in its bootloader.
        afresh: after the second failure, until a person has restarted a bootloader that hangs.
    """

    bootloader: float = 10.0
    person: float = 120.0
    upload: float = 120.0
    port: float = 25.0
    access: float = 10.0
    bridge: float = 0.5
    afresh: float = 8.0


@dataclass(frozen=True, slots=True)
class Bench:
    """Boards of one kind, the desk they stand on, and how to deal with them.

    Attributes:
        board: the kind.
        desk: where they are looked for.
        say: told what happens, and what a person should do.
        patience: how long to wait for what.
    """

    board: Board
    desk: Desk
    say: Callable[[str], None]
    patience: Patience

    @property
    def usb(self) -> Usb:
        if self.board.usb is None:
            raise FlashError(f"{self.board.name} has no USB identity in its board file", where=self.board.name)
        return self.board.usb

    @property
    def arduino(self) -> Arduino:
        if self.board.arduino is None:
            raise FlashError(f"{self.board.name} is not an Arduino board", where=self.board.name)
        return self.board.arduino

    @property
    def bootloader_vid(self) -> int:
        return self.usb.vid if self.usb.bootloader_vid is None else self.usb.bootloader_vid

    @property
    def has_bridge(self) -> bool:
        """Whether another chip holds the port, so that it looks the same while the bootloader runs."""
        return (self.bootloader_vid, self.usb.bootloader_pid) == (self.usb.vid, self.usb.pid)

    def programs(self) -> list[SerialPort]:
        """Ports of boards that run a program."""
        return [port for port in self.desk.ports() if (port.vid, port.pid) == (self.usb.vid, self.usb.pid)]

    def bootloaders(self) -> list[SerialPort]:
        """Ports of boards whose bootloader runs."""
        wanted = (self.bootloader_vid, self.usb.bootloader_pid)
        return [port for port in self.desk.ports() if (port.vid, port.pid) == wanted]

    def touch(self, port: SerialPort) -> None:
        """Open and close a port at 1200 baud, which tells a program to reboot into the bootloader."""
        open_and_close(port, self.desk, self.patience.access, baud=TOUCH_BAUD, may_go=True)

    def wait(self, look: Callable[[], list[SerialPort]], seconds: float) -> list[SerialPort]:
        """What there is to see as soon as it is there; empty when the time is over."""
        deadline = time.monotonic() + seconds
        while not (found := look()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found


class Uploader(Protocol):
    """A program that writes a board's flash."""

    @property
    def reboots(self) -> bool:
        """Whether it takes a board that runs its program, and does the touch itself."""

    def waiting(self) -> Sequence[SerialPort]:
        """Boards that wait for an upload now."""

    def upload(self, binary: Path, at: SerialPort) -> str | None:
        """Upload once; None when that worked, otherwise what went wrong and may go well the next time.

        Raises:
            FlashError, ToolError: what no repetition can cure.
        """


def same_number(one: str, other: str) -> bool:
    """Whether two USB serial numbers mean one board: a bootloader may fill the program's up with zeros."""
    return bool(one) and one.lstrip("0").lower() == other.lstrip("0").lower()


def udev_error(what: str, vid: int, where: str) -> FlashError:
    """A USB device that this user may not open, and the rule that lets everyone."""
    return FlashError(
        what,
        where=where,
        hint="On Linux a udev rule is missing. Put this line into /etc/udev/rules.d/60-arduino.rules:\n"
        f'    SUBSYSTEM=="usb", ATTR{{idVendor}}=="{vid:04x}", MODE="0666"\n'
        "  then: sudo udevadm control --reload-rules && sudo udevadm trigger\n"
        "  and plug the board in again.",
    )
