"""`dfu-util`: for bootloaders that speak DFU, which is a USB class of its own and has no serial port.

What it prints and how it ends is that of versions 0.9 to 0.11: a device is listed as `Found DFU: [vid:pid] …`; one that
this user may not open is only warned of; 74 (EX_IOERR) is the status of nearly every failure, also of the harmless one
that the board has rebooted before its last answer was read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import FlashError, ToolError
from toolkit.flashing.arduino.bench import Bench, udev_error
from toolkit.flashing.arduino.running import Ended, find_uploader, run
from toolkit.flashing.desk import SerialPort

OLDEST = (0, 9)
"""The oldest version that a core of these boards has come with."""

_ALTERNATE = 0
"""Alternate setting of the flash that programs run from, on each of these boards; the others are flash for data."""

_LIST_S = 10.0

_FOUND = re.compile(
    r"Found DFU: \[(?P<vid>[0-9a-f]{4}):(?P<pid>[0-9a-f]{4})\] .*?devnum=(?P<devnum>\d+),.*?"
    r"path=\"(?P<path>[^\"]*)\", alt=(?P<alt>\d+),.*?serial=\"(?P<serial>[^\"]*)\""
)
_DENIED = re.compile(
    r"Cannot open DFU device (?P<vid>[0-9a-f]{4}):(?P<pid>[0-9a-f]{4})(?: found on devnum (?P<devnum>\d+))?"
    r"(?: \((?P<error>\w+)\))?"
)
# Any of these stands after the last byte was taken: what goes wrong then is the goodbye.
_WRITTEN = ("File downloaded successfully", "Done!", "unable to read DFU status after completion", "Resetting USB to")


@dataclass(frozen=True, slots=True)
class DfuDevice:
    """A board that waits in DFU mode.

    Attributes:
        devnum: its number on the bus, empty when dfu-util does not say it.
        path: bus and sockets to it, as `--path` takes it; empty when it may not be opened.
        serial_number: its USB serial number, empty when it is not known.
        error: why it may not be opened, in libusb's words; empty when it may.
    """

    devnum: str
    path: str
    serial_number: str
    error: str = ""

    @property
    def place(self) -> str:
        """Where it is, for people, and what it is told apart by."""
        return f"USB device {self.devnum or '(number unknown)'}"


def parse_list(ended: Ended, vid: int, pid: int) -> list[DfuDevice]:
    """The devices of one kind in what `dfu-util --list` printed, each once."""
    wanted = (vid, pid)
    found: dict[str, DfuDevice] = {}
    for line in ended.said:
        if (match := _FOUND.search(line)) is not None and int(match["alt"]) == _ALTERNATE:
            serial = "" if match["serial"] == "UNKNOWN" else match["serial"]
            device = DfuDevice(match["devnum"], match["path"], serial)
        elif (match := _DENIED.search(line)) is not None:
            device = DfuDevice(match["devnum"] or "", "", "", match["error"] or "LIBUSB_ERROR_ACCESS")
        else:
            continue
        if (int(match["vid"], 16), int(match["pid"], 16)) == wanted:
            found.setdefault(device.devnum, device)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class DfuUtil:
    """The uploader of Giga, Portenta, Nicla Vision and Uno R4 Minima.

    Attributes:
        bench: the boards.
        tool: the program.
    """

    bench: Bench
    tool: Path

    @property
    def reboots(self) -> bool:
        return False

    def waiting(self) -> Sequence[SerialPort]:
        """Boards in DFU mode; they have no port, so the place on the bus stands where its name would."""
        return [
            SerialPort(
                device.place,
                self.bench.bootloader_vid,
                self.bench.usb.bootloader_pid,
                device.serial_number,
                "waits in DFU mode" + (", and this user may not open it" if device.error else ""),
            )
            for device in self.devices()
        ]

    def devices(self) -> list[DfuDevice]:
        """Boards of the bench's kind that wait in DFU mode.

        Raises:
            ToolError: dfu-util cannot look at the bus.
        """
        ended = run([str(self.tool), "--list"], _LIST_S)
        if ended.status != 0:
            raise ToolError(
                f"dfu-util cannot list devices: {ended.reason}",
                where=str(self.tool),
                hint="`dfu-util --list` must work by itself; the one that comes with the board's core does: "
                f"arduino-cli core install {self.bench.arduino.core}, or name one by DFU_UTIL.",
            )
        return parse_list(ended, self.bench.bootloader_vid, self.bench.usb.bootloader_pid)

    def upload(self, binary: Path, at: SerialPort) -> str | None:
        """Write and start; see `Uploader.upload`."""
        device = self._openable(at)
        if device is None:
            return f"{at.device} went away before the upload"
        ended = run([str(self.tool), *self.words(binary, device)], self.bench.patience.upload)
        if ended.status == 0:
            return None
        if any(line.startswith(_WRITTEN) for line in ended.said):
            # Which fault it was does not matter: the board comes back with the program, or it is missed then.
            self.bench.say(f"all is written; the board left before dfu-util was done ({ended.reason})")
            return None
        if any("More than one DFU capable" in line for line in ended.said):
            raise FlashError(
                "several devices in DFU mode could be meant", where=at.device, hint="Leave one of them plugged in."
            )
        return ended.reason.removeprefix("dfu-util: ")

    def words(self, binary: Path, device: DfuDevice) -> list[str]:
        """The command line, without the program."""
        address = self.bench.arduino.address
        # Bootloaders with ST's extension are told where to write and to leave; others write where they must and are
        # reset. The comma means a device in DFU mode only: without it, dfu-util takes every other one as well.
        how = ["--dfuse-address", f"{address:#010x}:leave"] if address else ["--reset"]
        ids = f",{self.bench.bootloader_vid:04x}:{self.bench.usb.bootloader_pid:04x}"
        place = ["--path", device.path] if device.path else []
        return ["--device", ids, *place, "--alt", str(_ALTERNATE), *how, "--download", str(binary)]

    def _openable(self, at: SerialPort) -> DfuDevice | None:
        """The device at a place when it may be opened, which udev may grant a moment late; None when it has gone.

        Raises:
            FlashError: it may not be opened.
        """
        deadline = time.monotonic() + self.bench.patience.access
        while True:
            here = [device for device in self.devices() if device.place == at.device]
            if not here:
                return None
            if not here[0].error:
                return here[0]
            if time.monotonic() > deadline:
                raise _not_allowed(self.bench, here[0])
            time.sleep(0.1)


def dfu_util(bench: Bench) -> DfuUtil:
    """The uploader, with the `dfu-util` of this computer.

    Raises:
        ToolError: there is none, it does not run, or it is too old.
    """
    tool = find_uploader("dfu-util", "dfu-util")
    ended = run([str(tool), "--version"], _LIST_S)
    found = re.search(r"dfu-util (\d+)\.(\d+)", ended.out + ended.err)
    hint = (
        f"Take the one that comes with the board's core (arduino-cli core install {bench.arduino.core}), or Debian's."
    )
    if ended.violent or found is None:
        raise ToolError(f"dfu-util does not say its version: {ended.reason}", where=str(tool), hint=hint)
    version = (int(found[1]), int(found[2]))
    if version < OLDEST:
        raise ToolError(
            f"dfu-util {version[0]}.{version[1]} is too old; {OLDEST[0]}.{OLDEST[1]} is needed",
            where=str(tool),
            hint=hint,
        )
    return DfuUtil(bench, tool)


def _not_allowed(bench: Bench, device: DfuDevice) -> FlashError:
    if device.error in ("LIBUSB_ERROR_NOT_SUPPORTED", "LIBUSB_ERROR_NOT_FOUND"):
        return FlashError(
            f"the board in DFU mode has no driver that lets it be opened ({device.error})",
            where=device.place,
            hint=f"On Windows, install the driver that comes with the core {bench.arduino.core}, or give the device "
            "WinUSB with Zadig; then run this again.",
        )
    if device.error != "LIBUSB_ERROR_ACCESS":
        return FlashError(
            f"the board in DFU mode cannot be opened ({device.error})",
            where=device.place,
            hint="Close what else may use it (an IDE, another `deploy`), press reset twice, quickly, and run "
            "this again; if it stays so, try another cable or USB socket.",
        )
    return udev_error("this user may not open the board in DFU mode", bench.bootloader_vid, device.place)
