"""An Arduino board with a DFU bootloader: no port while it waits, a device that `dfu-util` lists.

`dfu_util_double.py` plays dfu-util. Board and double meet in a folder: `bus.json` is what is on the bus and how the
double shall behave, `download` is what it writes to the board.
"""

import json
import sys
import time
from pathlib import Path

from tests.arduino.bootloader import SimulatedBoard

ALTERNATES = ("@Internal Flash   /0x08000000/01*128Ka,15*128Kg", "@External Flash   /0x90000000/4096*4Kg")


class DfuBoard(SimulatedBoard):
    """A Giga, unless other ids are given.

    Faults besides those of `SimulatedBoard`, all in dfu-util: `broken` (an error in the middle of the download),
    `goodbye` (an error after all was written), `crash` (a signal in the middle), `late-crash` (a signal after all was
    written), `denied` (a listing in which the device may not be opened).

    Attributes:
        folder: where board and double meet.
        others: more devices on the bus, as `device` makes them.
    """

    def __init__(self, folder: Path, **words):
        super().__init__(**{"pid": 0x0266, "boot_pid": 0x0366, "uploader": "dfu_util_double.py"} | words)
        self.folder = folder
        self.version = "0.11"
        self.others = []
        self.content = b""
        self.words = []
        self._devnum = 7
        self._tell()

    def device(self, **changes):
        """A device in DFU mode, as the double lists it."""
        number = self.serial_number if self.boot_number is None else self.boot_number
        device = {"vid": self.vid, "pid": self.boot_pid, "devnum": self._devnum, "path": f"1-{self._devnum}"}
        return device | {"serial": number, "mode": "DFU", "alternates": ALTERNATES} | changes

    def holds(self, content):
        return self.content == content

    def _tell(self):
        """Write down what is on the bus."""
        mine = [self.device()] if self._mode == "bootloader" else []
        told = {"version": self.version, "devices": [*self.others, *mine], "mine": self._devnum}
        part = self.folder / "bus.part"
        part.write_text(json.dumps(told))
        part.replace(self.folder / "bus.json")

    def heal(self):
        super().heal()
        for fault in self.folder.glob("fault-*"):
            fault.unlink()

    def behave(self, name, times):
        """Let the double behave badly so many times."""
        (self.folder / f"fault-{name}").write_text(str(times))

    def _show(self, mode):
        if mode == "bootloader":
            self._devnum += 1
            for name in ("broken", "goodbye", "crash", "late-crash", "denied", "stall"):
                if times := self.faults.pop(name, 0):
                    self.behave(name, times)
            if times := sum(self.faults.get(name, 0) for name in ("killed", "unplugged", "lost")):
                self.behave("cut", times)
        super()._show(mode)
        if mode == "bootloader":
            self._ports = []  # the line is there, and nobody sees it
        self._tell()

    def _hide(self):
        super()._hide()
        self._tell()

    def _serve(self):
        time.sleep(0.02)
        download = self.folder / "download"
        if not download.exists():
            return
        told = json.loads(download.read_text())
        self.words = told["words"]
        self.content = Path(told["file"]).read_bytes()[: told["size"]]
        if told["size"] < told["whole"]:
            self._misbehave()
        elif "--reset" in self.words or any(word.endswith(":leave") for word in self.words):
            self.uploads += 1
            self._next = "program"
        download.unlink()


def install_double(folder: Path) -> Path:
    """A program `dfu-util` that plays the real one for the boards of a folder."""
    script = Path(__file__).with_name("dfu_util_double.py")
    launcher = folder / "dfu-util"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{script}" "{folder}" "$@"\n')
    launcher.chmod(0o755)
    for fault in folder.glob("fault-*"):
        fault.unlink()
    return launcher
