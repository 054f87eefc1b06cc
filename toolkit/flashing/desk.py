"""What stands on a desk: serial ports with a USB identity, and drives that bootloaders show."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from serial.tools import list_ports


@dataclass(frozen=True, slots=True)
class SerialPort:
    """A serial port.

    Attributes:
        device: what pyserial opens.
        vid, pid: USB ids, None for a port that is not on USB.
        serial_number: of the USB device, empty when it has none.
        description: for people.
    """

    device: str
    vid: int | None
    pid: int | None
    serial_number: str
    description: str


class Desk(Protocol):
    """Where boards are looked for."""

    def ports(self) -> Sequence[SerialPort]:
        """All serial ports there are now."""

    def volumes(self, label: str) -> Sequence[Path]:
        """Folders of the drives with this label that can be written to now."""

    @property
    def has_picotool(self) -> bool:
        """Whether picotool reaches what is on this desk."""


class SystemDesk:
    """This computer's own ports and drives."""

    def ports(self) -> Sequence[SerialPort]:
        return tuple(
            SerialPort(port.device, port.vid, port.pid, port.serial_number or "", port.description or "")
            for port in list_ports.comports()
        )

    def volumes(self, label: str) -> Sequence[Path]:
        found = [folder for folder in _mount_points(label) if (folder / "INFO_UF2.TXT").is_file()]
        if not found and sys.platform == "linux":
            found = [folder for folder in _mounted_by_us(label) if (folder / "INFO_UF2.TXT").is_file()]
        return tuple(found)

    @property
    def has_picotool(self) -> bool:
        return shutil.which("picotool") is not None


class FolderDesk:
    """A desk in a folder, as a virtual board presents it: `ports.json`, and drives as folders named by their label."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ports(self) -> Sequence[SerialPort]:
        try:
            listed = json.loads((self._folder / "ports.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ()  # not there yet
        return tuple(
            SerialPort(
                device=port["device"],
                vid=port.get("vid"),
                pid=port.get("pid"),
                serial_number=port.get("serial_number") or "",
                description=port.get("name") or "",
            )
            for port in listed
        )

    def volumes(self, label: str) -> Sequence[Path]:
        folder = self._folder / label
        return (folder,) if (folder / "INFO_UF2.TXT").is_file() else ()

    @property
    def has_picotool(self) -> bool:
        return False


def _mount_points(label: str) -> Iterator[Path]:
    """Where desktops mount a drive of this label."""
    if sys.platform == "darwin":
        yield Path("/Volumes") / label
    elif sys.platform == "win32":
        for letter in "DEFGHIJKLMNOPQRSTUVWXYZ":
            yield Path(f"{letter}:/")
    else:
        with contextlib.suppress(OSError), Path("/proc/mounts").open(encoding="utf-8") as mounts:
            for line in mounts:
                folder = Path(line.split()[1].replace("\\040", " "))
                if folder.name == label:
                    yield folder


def _mounted_by_us(label: str) -> Iterator[Path]:
    """On Linux without a desktop: ask udisks to mount the drive, as a desktop would."""
    device = Path("/dev/disk/by-label") / label
    tool = shutil.which("udisksctl")
    if not device.exists() or tool is None:
        return
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        subprocess.run(
            [tool, "mount", "--no-user-interaction", "-b", os.path.realpath(device)],
            capture_output=True,
            timeout=20,
            check=False,
        )
    yield from _mount_points(label)
