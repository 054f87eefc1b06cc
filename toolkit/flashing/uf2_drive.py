"""Flashing a board whose bootloader shows a drive: touch, wait for the drive, copy the UF2, wait for the port."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolkit.board import Board, Usb
from toolkit.errors import FlashError
from toolkit.flashing.choice import TOUCH_BAUD, Wanted, matching, open_and_close, require_one
from toolkit.flashing.desk import Desk, SerialPort

_CHUNK = 64 * 1024
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds.

    Attributes:
        drive: until the drive appears after a touch.
        person: until the drive appears when a person must press a button.
        port: until the board's port comes back after an image was written.
        access: until a port that is there can be opened.
        settle: until what has gone is not listed any more.
    """

    drive: float = 12.0
    person: float = 120.0
    port: float = 25.0
    access: float = 10.0
    settle: float = 1.0


@dataclass(frozen=True, slots=True)
class Uf2Flasher:
    """Flashes boards of one kind that stand on one desk.

    Attributes:
        board: the kind.
        desk: where they are looked for.
        say: told what happens, and what a person should do.
        patience: how long to wait for what.
    """

    board: Board
    desk: Desk
    say: Callable[[str], None] = lambda _: None
    patience: Patience = Patience()

    def flash(self, uf2: Path, wanted: Wanted = Wanted()) -> str:  # noqa: B008 - immutable
        """Write an image to a board and wait until it runs.

        Returns:
            The serial port it came back as; the name may be another than before.

        Raises:
            FlashError: no board, several boards, a port that is held or may not be opened, a drive that is full or
                goes away, a board that does not come back. Each says what to do next.
        """
        size = uf2.stat().st_size
        before = self._find(wanted)
        known = before.serial_number if before else wanted.serial_number
        for attempt in range(1, _TRIES + 1):
            drive = self._bootloader(before if attempt == 1 else None)
            others = {port.device for port in self._running()}
            self.say(f"writing {size:,} bytes")
            try:
                self._write(uf2, drive)
            except _TornError as torn:
                if attempt == _TRIES:
                    raise FlashError(
                        f"the image was not written completely, {_TRIES} times: {torn}",
                        where=str(drive),
                        hint="Try another cable or another USB socket, without a hub.",
                    ) from None
                self.say("the image was not written completely: once more")
                continue
            port = self._returned(known, others)
            if port is not None:
                return port
            if attempt < _TRIES and self.desk.volumes(self._usb.volume):
                self.say("the board waits for an image again: once more")
                continue
            break
        raise FlashError(
            f"the board did not come back as a serial port within {self.patience.port:.0f} s",
            where=self.board.name,
            hint="Unplug it and plug it in again; if it stays away, hold BOOTSEL while doing so and run this again.",
        )

    @property
    def _usb(self) -> Usb:
        if self.board.usb is None:
            raise FlashError(f"{self.board.name} has no USB identity in its board file", where=self.board.name)
        return self.board.usb

    def _running(self) -> list[SerialPort]:
        """Ports of boards that run a program."""
        return [port for port in self.desk.ports() if (port.vid, port.pid) == (self._usb.vid, self._usb.pid)]

    def _find(self, wanted: Wanted) -> SerialPort | None:
        """The board that is meant; None when one waits in its bootloader already.

        Raises:
            FlashError: there are several, or there is none and none appears.
        """
        found = matching(self.desk, self._running(), wanted)
        if not found and not self.desk.volumes(self._usb.volume):
            self.say(_looked_for(self.board, wanted))
            deadline = time.monotonic() + self.patience.person
            while not found and not self.desk.volumes(self._usb.volume):
                if time.monotonic() > deadline:
                    raise FlashError(f"there is no {self.board.title}", where=self.board.name, hint=_WHAT_TO_CHECK)
                time.sleep(0.1)
                found = matching(self.desk, self._running(), wanted)
        require_one(found, self.board)
        return found[0] if found else None

    def _bootloader(self, running: SerialPort | None) -> Path:
        """The drive of a board that waits for an image, after rebooting it into its bootloader if need be."""
        drive = self._drive()
        if drive is not None and running is not None:
            # A port may be listed a moment longer than its board runs.
            time.sleep(self.patience.settle)
            if running.device in {port.device for port in self.desk.ports()}:
                raise FlashError(
                    f"one board runs on {running.device} and another waits for an image",
                    where=self.board.name,
                    hint="Leave one of them plugged in: the image must go to the board that is meant.",
                )
        if drive is not None:
            return drive
        if running is not None:
            self.say(f"rebooting {running.device} into its bootloader")
            open_and_close(running, self.desk, self.patience.access, baud=TOUCH_BAUD, may_go=True)
            drive = self._wait_for_drive(self.patience.drive)
            if drive is not None:
                return drive
        self.say(
            "the board does not reboot by itself: hold its BOOTSEL button, press reset or plug it in again, "
            "and let go; this goes on by itself then"
        )
        drive = self._wait_for_drive(self.patience.person)
        if drive is None:
            raise FlashError(
                f"no drive named {self._usb.volume} appeared",
                where=self.board.name,
                hint="Hold BOOTSEL while plugging the board in. On Linux without a desktop, mount the drive (it is "
                f"/dev/disk/by-label/{self._usb.volume}) or install picotool; under WSL attach it with usbipd.",
            )
        return drive

    def _drive(self) -> Path | None:
        drives = self.desk.volumes(self._usb.volume)
        if len(drives) > 1:
            raise FlashError(
                f"{len(drives)} boards wait for an image", where=self.board.name, hint="Leave one of them plugged in."
            )
        return drives[0] if drives else None

    def _wait_for_drive(self, seconds: float) -> Path | None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            drive = self._drive()
            if drive is not None:
                return drive
            time.sleep(0.05)
        return None

    def _write(self, uf2: Path, drive: Path) -> None:
        """Write an image by picotool or by copying it to the drive; complete and synced, or an error."""
        if self.desk.has_picotool and self._picotool(uf2):
            return
        copy_to_drive(uf2, drive)

    def _picotool(self, uf2: Path) -> bool:
        """Whether picotool wrote and started the image; where it cannot, the drive is still there."""
        tool = shutil.which("picotool")
        if tool is None:
            return False
        done = subprocess.run([tool, "load", "-x", str(uf2)], capture_output=True, text=True, check=False, timeout=120)
        return done.returncode == 0

    def _returned(self, serial_number: str | None, others: set[str]) -> str | None:
        """The port under which the board that was flashed is back, when it can be opened; None when it is not."""
        deadline = time.monotonic() + self.patience.port
        volume = self._usb.volume
        seen_gone = False
        while time.monotonic() < deadline:
            candidates = self._running()
            if serial_number:
                candidates = [port for port in candidates if port.serial_number == serial_number]
            else:
                candidates = [port for port in candidates if port.device not in others]
            if len(candidates) == 1:
                open_and_close(candidates[0], self.desk, self.patience.access)
                return candidates[0].device
            drive_there = bool(self.desk.volumes(volume))
            seen_gone = seen_gone or not drive_there
            if seen_gone and drive_there:
                return None  # it rebooted into its bootloader again
            time.sleep(0.05)
        return None


class _TornError(Exception):
    """A copy that ended before the whole image was on the drive."""


def copy_to_drive(uf2: Path, drive: Path) -> None:
    """Copy an image to a bootloader's drive, complete and synced.

    The bootloader reboots when it has the last block; that the drive goes away then is success.

    Raises:
        FlashError: the drive is full or may not be written to.
        _TornError: the drive went away before all was written.
    """
    data = uf2.read_bytes()
    written = 0
    try:
        with (drive / uf2.name).open("wb", buffering=0) as target:
            while written < len(data):
                written += target.write(data[written : written + _CHUNK])
            with contextlib.suppress(OSError):
                os.fsync(target.fileno())
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise FlashError(
                f"the drive is full after {written:,} of {len(data):,} bytes",
                where=str(drive),
                hint="Delete what else is on it, or unplug the board and plug it in with BOOTSEL held, then try again.",
            ) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise FlashError(
                f"the drive may not be written to: {error.strerror}", where=str(drive), hint="Mount it for your user."
            ) from None
        if written < len(data):
            raise _TornError(f"{error.strerror} after {written:,} of {len(data):,} bytes") from None


def _looked_for(board: Board, wanted: Wanted) -> str:
    which = " ".join(
        word
        for word in (
            f"on {wanted.port}" if wanted.port else "",
            f"with serial number {wanted.serial_number}" if wanted.serial_number else "",
        )
        if word
    )
    return (
        f"no {board.title} {which}".rstrip()
        + ": plug it in; if its program does not answer, hold BOOTSEL while doing so"
    )


_WHAT_TO_CHECK = (
    "Check that the cable carries data and not only power; hold BOOTSEL while plugging the board in. "
    "On Linux the user needs the group dialout (or a udev rule); under WSL attach the device with usbipd."
)
