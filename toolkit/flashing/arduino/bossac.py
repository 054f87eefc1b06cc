"""`bossac`: for bootloaders that speak SAM-BA on a serial port, natively or behind a bridge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import ToolError
from toolkit.flashing.arduino.bench import Bench
from toolkit.flashing.arduino.running import run
from toolkit.flashing.choice import open_and_close
from toolkit.flashing.desk import SerialPort


@dataclass(frozen=True, slots=True)
class Bossac:
    """The uploader of Nano 33 BLE and Uno R4 WiFi.

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
        return self.bench.bootloaders()

    def upload(self, binary: Path, at: SerialPort) -> str | None:
        """Erase, write, verify and start; see `Uploader.upload`."""
        open_and_close(at, self.bench.desk, self.bench.patience.access, may_go=True)
        ended = run(
            [str(self.tool), *self.words(binary, at)],
            self.bench.patience.upload,
            there=lambda: at.device in {port.device for port in self.bench.desk.ports()},
        )
        if ended.status == 0:
            return None
        if any("unsupported" in line.lower() for line in ended.said):
            raise ToolError(
                "this bossac does not know the board's chip",
                where=str(self.tool),
                hint=f"The one that comes with the core does: arduino-cli core install {self.bench.arduino.core}; "
                "or name one by BOSSAC.",
            )
        if any(line.startswith("Verify failed") for line in ended.said):
            return "the flash does not hold what was written (verify error)"
        return ended.reason

    def words(self, binary: Path, at: SerialPort) -> list[str]:
        """The command line, without the program."""
        offset = [f"--offset={self.bench.arduino.address:#x}"] if self.bench.arduino.address else []
        # The bootloader behind the Uno R4 WiFi's bridge cannot read back: -v fails there, and -R is then left out.
        verify = [] if self.bench.has_bridge else ["-v"]
        return [f"--port={at.device}", "-U", "-e", "-w", *verify, *offset, str(binary), "-R"]
