"""Uploading to an Arduino board: touch, wait for the bootloader, upload, and the port wherever it comes back."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.board import Arduino, Board, Usb
from toolkit.building.arduino_cli import call, find_arduino_cli
from toolkit.errors import FlashError, ToolError
from toolkit.flashing.choice import TOUCH_BAUD, Wanted, matching, open_and_close, require_one
from toolkit.flashing.desk import Desk, SerialPort

_TRIES = 3


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds.

    Attributes:
        bootloader: until the bootloader appears after a touch.
        person: until it appears when a person must press the reset button, and until a board is plugged in.
        upload: for one upload.
        port: until the program's port comes back.
        access: until a port that is there can be opened.
    """

    bootloader: float = 10.0
    person: float = 120.0
    upload: float = 120.0
    port: float = 25.0
    access: float = 10.0


@dataclass(frozen=True, slots=True)
class ArduinoFlasher:
    """Uploads to boards of one kind that stand on one desk.

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

    def flash(self, binary: Path, wanted: Wanted = Wanted()) -> str:  # noqa: B008 - immutable
        """Upload a program and wait until it runs.

        Returns:
            The serial port it came back as; the name may be another than before.

        Raises:
            FlashError: no board, several boards, a port that may not be opened, a bootloader that does not appear or
                fails, a board that does not come back. Each says what to do next.
            ToolError: the program that uploads is missing.
        """
        board = self._find(wanted)
        known = board.serial_number or wanted.serial_number or ""
        others = {port.device for port in self.desk.ports() if port != board}
        for attempt in range(1, _TRIES + 1):
            self.say(f"uploading {binary.stat().st_size:,} bytes")
            problem = self._upload(binary, board, known)
            if problem is None:
                return self._returned(known, others)
            if attempt == _TRIES:
                raise FlashError(
                    f"the upload failed {_TRIES} times: {problem}",
                    where=board.device,
                    hint="Press the reset button twice, quickly, so that the light pulses, and run this again; if it "
                    "fails the same way, try another cable or USB socket.",
                )
            self.say(f"the upload failed ({problem}): once more")
            board = self._find(Wanted(serial_number=known or None))
        raise AssertionError  # the loop returns or raises

    @property
    def _usb(self) -> Usb:
        if self.board.usb is None:
            raise FlashError(f"{self.board.name} has no USB identity in its board file", where=self.board.name)
        return self.board.usb

    @property
    def _arduino(self) -> Arduino:
        if self.board.arduino is None:
            raise FlashError(f"{self.board.name} is not an Arduino board", where=self.board.name)
        return self.board.arduino

    def _programs(self) -> list[SerialPort]:
        return [port for port in self.desk.ports() if (port.vid, port.pid) == (self._usb.vid, self._usb.pid)]

    def _bootloaders(self) -> list[SerialPort]:
        vid = self._usb.vid if self._usb.bootloader_vid is None else self._usb.bootloader_vid
        return [port for port in self.desk.ports() if (port.vid, port.pid) == (vid, self._usb.bootloader_pid)]

    def _find(self, wanted: Wanted) -> SerialPort:
        """The board that is meant, whether its program or its bootloader runs."""

        def looked_for() -> list[SerialPort]:
            both = tuple(dict.fromkeys([*self._programs(), *self._bootloaders()]))
            return matching(self.desk, both, wanted)

        found = self._wait(looked_for, 0.2)
        if not found:
            self.say(f"no {self.board.title}: plug it in; if it does not show up, press its reset button twice")
            found = self._wait(looked_for, self.patience.person)
        if not found:
            raise FlashError(
                f"there is no {self.board.title}",
                where=self.board.name,
                hint="Check that the cable carries data and not only power; press the reset button twice, quickly.",
            )
        require_one(found, self.board)
        return found[0]

    def _upload(self, binary: Path, board: SerialPort, known: str) -> str | None:
        """Upload once; None when that worked, otherwise what went wrong."""
        if self._arduino.upload == "bossac":
            port = self._bootloader(board, known)
            offset = [f"--offset={self._arduino.address:#x}"] if self._arduino.address else []
            words = [f"--port={port.device}", "-U", "-i", "-e", "-w", *offset, str(binary), "-R"]
            return self._run([str(_uploader("bossac", "bossa-cli")), *words])
        if self._arduino.upload == "dfu-util":
            self._touch(board)
            self.say("if the board's light does not pulse, press its reset button twice, quickly")
            vid = self._usb.vid if self._usb.bootloader_vid is None else self._usb.bootloader_vid
            address = [f"--dfuse-address={self._arduino.address:#x}:leave"] if self._arduino.address else ["-R"]
            device = f"{vid:#06x}:{self._usb.pid:#06x},{vid:#06x}:{self._usb.bootloader_pid:#06x}"
            words = ["--wait", "--device", device, "-a0", *address, "-D", str(binary)]
            return self._run([str(_uploader("dfu-util", "dfu-util")), *words])
        cli = find_arduino_cli()
        if cli is None:
            raise ToolError(
                "arduino-cli is not installed; it uploads", hint="Put it on PATH or name it by ARDUINO_CLI."
            )
        words = ["upload", "--port", board.device, "--fqbn", self._arduino.fqbn, "--input-dir", str(binary.parent)]
        answer, failed = call(cli, words, self.patience.upload)
        return str(answer.get("error") or "arduino-cli gave no reason") if failed else None

    def _bootloader(self, board: SerialPort, known: str) -> SerialPort:
        """The port of the bootloader, after rebooting the board into it if need be."""

        def waiting() -> list[SerialPort]:
            found = self._bootloaders()
            # Bootloaders may give another serial number than programs, or none: then there must be only one.
            return [port for port in found if known and port.serial_number == known] or found

        if self._usb.bootloader_pid == self._usb.pid and self._usb.bootloader_vid in (None, self._usb.vid):
            self._touch(board)  # a bridge holds the port, which stays
            time.sleep(0.5)
            return board
        found = waiting()
        if not found:
            self.say(f"rebooting {board.device} into its bootloader")
            self._touch(board)
            found = self._wait(waiting, self.patience.bootloader)
        if not found:
            self.say("the board does not reboot by itself: press its reset button twice, quickly; this goes on then")
            found = self._wait(waiting, self.patience.person)
        if not found:
            raise FlashError(
                "the bootloader did not appear",
                where=self.board.name,
                hint="Press the reset button twice, quickly: the light pulses. Then run this again.",
            )
        if len(found) > 1:
            raise FlashError(
                f"{len(found)} boards wait for an upload", where=self.board.name, hint="Leave one of them plugged in."
            )
        open_and_close(found[0], self.desk, self.patience.access, may_go=True)
        return found[0]

    def _touch(self, port: SerialPort) -> None:
        """Open and close the port at 1200 baud, which tells a program to reboot into the bootloader."""
        open_and_close(port, self.desk, self.patience.access, baud=TOUCH_BAUD, may_go=True)

    def _run(self, command: Sequence[str]) -> str | None:
        """Run an uploader; None when it worked, otherwise what it said last."""
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=self.patience.upload,
            )
        except subprocess.TimeoutExpired:
            return f"{Path(command[0]).name} was not done after {self.patience.upload:.0f} s"
        if done.returncode == 0:
            return None
        said = (done.stdout + done.stderr).strip().splitlines()
        if any("unsupported" in line.lower() for line in said):
            raise ToolError(
                "this bossac does not know the board's chip",
                where=command[0],
                hint=f"The one that comes with the core does: arduino-cli core install {self._arduino.core}; "
                "or name one by BOSSAC.",
            )
        return said[-1].strip() if said else f"{Path(command[0]).name} ended with status {done.returncode}"

    def _returned(self, known: str, others: set[str]) -> str:
        """The port under which the board is back: the one with its serial number, never just the newest."""

        def back() -> list[SerialPort]:
            if known:
                return [port for port in self._programs() if port.serial_number == known]
            return [port for port in self._programs() if port.device not in others]

        found = self._wait(back, self.patience.port)
        if not found:
            raise FlashError(
                f"the upload is done, but the board did not come back within {self.patience.port:.0f} s",
                where=self.board.name,
                hint="Press its reset button once. If it stays away, the sketch may not start: upload again.",
            )
        open_and_close(found[0], self.desk, self.patience.access, may_go=True)
        return found[0].device

    def _wait(self, look: Callable[[], list[SerialPort]], seconds: float) -> list[SerialPort]:
        deadline = time.monotonic() + seconds
        while not (found := look()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found


def _uploader(name: str, package: str) -> Path:
    """Where an uploader is: named by a variable, of an Arduino core (which knows all its boards), or on PATH."""
    named = os.environ.get(name.upper().replace("-", "_"))
    if named is None:
        folder = Path(os.environ.get("ARDUINO_DIRECTORIES_DATA") or Path.home() / ".arduino15")
        cores = sorted(folder.glob(f"packages/arduino/tools/{name}/*/{name}"))
        named = str(cores[-1]) if cores else name
    found = shutil.which(named)
    if found is None:
        raise ToolError(
            f"{name} is not installed; it uploads",
            where=named,
            hint=f"It comes with the board's core (arduino-cli core install …); on Debian: apt-get install {package}.",
        )
    return Path(found)
