"""`arduino-cli upload`: for boards whose core has its own way to upload."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.building.arduino_cli import find_arduino_cli
from toolkit.errors import ToolError
from toolkit.flashing.arduino.bench import Bench, udev_error
from toolkit.flashing.arduino.running import Ended, run
from toolkit.flashing.desk import SerialPort

_DENIED = ("libusb_error_access", "permission denied", "access denied")


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
        return self.bench.bootloaders()

    def upload(self, binary: Path, at: SerialPort) -> str | None:
        """Let `arduino-cli` upload what it has compiled; see `Uploader.upload`."""
        words = ["upload", "--port", at.device, "--fqbn", self.bench.arduino.fqbn, "--input-dir", str(binary.parent)]
        ended = run([str(self.tool), *words, "--format", "json"], self.bench.patience.upload)
        if ended.status == 0:
            return None
        answer = _answer(ended)
        text = " ".join(str(part) for part in (answer, *ended.said)).lower()
        if not ended.violent and any(word in text for word in _DENIED):
            raise udev_error(
                "this user may not open the board on USB", self.bench.bootloader_vid, self.bench.board.name
            )
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
