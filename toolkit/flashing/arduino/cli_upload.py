"""`arduino-cli upload`: for boards whose core has its own way to upload."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.building.arduino_cli import find_arduino_cli
from toolkit.errors import ToolError
from toolkit.flashing.arduino.bench import Bench, udev_error
from toolkit.flashing.arduino.running import Ended, run
from toolkit.flashing.choice import port_error
from toolkit.flashing.desk import SerialPort

_USB_DENIED = ("libusb_error_access", "check your permissions")
_PORT_DENIED = ("permission denied", "access denied")


@dataclass(frozen=True, slots=True)
class ArduinoCliUpload:
    """The uploader of every board that is not written to directly.

    Attributes:
        bench: the boards.
        tool: `arduino-cli`.
    """

    bench: Bench
    tool: Path

    @property
    def reboots(self) -> bool:
        return True

    def waiting(self) -> Sequence[SerialPort]:
        """Bootloaders with a port, and such as show a drive, which stands where the port's name would."""
        vid, pid, volume = self.bench.bootloader_vid, self.bench.usb.bootloader_pid, self.bench.usb.volume
        drives = self.bench.desk.volumes(volume) if volume else ()
        waits = [SerialPort(str(drive), vid, pid, "", f"waits as the drive {volume}") for drive in drives]
        return [*self.bench.bootloaders(), *waits]

    def upload(self, binary: Path, at: SerialPort) -> str | None:
        """Let `arduino-cli` upload what it has compiled; see `Uploader.upload`."""
        has_port = any(port.device == at.device for port in self.bench.desk.ports())
        where = ["--port", at.device] if has_port else []  # a drive is found by the core's own tool
        words = ["upload", *where, "--fqbn", self.bench.arduino.fqbn, "--input-dir", str(binary.parent)]
        ended = run([str(self.tool), *words, "--format", "json"], self.bench.patience.upload)
        if ended.status == 0:
            return None
        answer = _answer(ended)
        text = " ".join(str(part) for part in (answer, *ended.said)).lower()
        if not ended.violent and any(word in text for word in _USB_DENIED):
            raise udev_error(
                "this user may not open the board on USB", self.bench.bootloader_vid, self.bench.board.name
            )
        if not ended.violent and any(word in text for word in _PORT_DENIED):
            raise port_error(at.device, PermissionError(errno.EACCES, text))
        return ended.violent or str(answer.get("error") or ended.reason)


def cli_upload(bench: Bench) -> ArduinoCliUpload:
    """The uploader, with the `arduino-cli` of this computer.

    Raises:
        ToolError: there is none.
    """
    cli = find_arduino_cli()
    if cli is None:
        raise ToolError("arduino-cli is not installed; it uploads", hint="Put it on PATH or name it by ARDUINO_CLI.")
    return ArduinoCliUpload(bench, cli)


def _answer(ended: Ended) -> dict[str, Any]:
    try:
        answer = json.loads(ended.out)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
