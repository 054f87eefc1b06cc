"""The BOOTSEL folder: what is written there as UF2 goes into flash (datasheet, section 5.5.2).

Blocks are taken as they come, in any order; a sector is erased when its first page is written. The download is complete
when every block of the board's family has been seen.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.uf2_blocks import BLOCK_BYTES, RP2350_ARM_SECURE, Block, parse_block

FOLDER = "RP2350"
INFO = "INFO_UF2.TXT"
INDEX = "INDEX.HTM"
_INFO_TEXT = "UF2 Bootloader v1.0\nModel: Raspberry Pi RP2350\nBoard-ID: RP2350\n"
_INDEX_TEXT = (
    '<html><head><meta http-equiv="refresh" content="0;URL=\'https://raspberrypi.com/device/RP2?version=0123456789AB\'"/>'
    "</head><body>Redirecting to raspberrypi.com</body></html>\n"
)
_FULL_DEVICE = "/dev/full"


class Download(Enum):
    """How far the folder's UF2 has come."""

    NOTHING = "nothing has come yet"
    BEGUN = "some blocks have come"
    COMPLETE = "all blocks have come"
    TORN = "the board has stopped taking blocks"


class Drive:
    """One BOOTSEL session.

    Args:
        desk: folder in which the folder appears.
        erase: (offset, bytes) of flash.
        program: (offset, data) of flash.
        say: told in a sentence what is ignored, and why.
        torn_after: blocks after which no more are taken; None for a good session.
        full_name: name of a file that cannot be written; empty for none.
    """

    def __init__(
        self,
        desk: Path,
        erase: Callable[[int, int], None],
        program: Callable[[int, bytes], None],
        say: Callable[[str], None],
        *,
        torn_after: int | None = None,
        full_name: str = "",
    ) -> None:
        self.folder = desk / FOLDER
        self._erase = erase
        self._program = program
        self._say = say
        self._torn_after = torn_after
        self._seen: dict[Path, tuple[int, int]] = {}
        self._taken: dict[Path, set[int]] = {}
        self._numbers: set[int] = set()
        self._total = 0
        self._erased: set[int] = set()
        self._told: set[str] = set()
        self._mount(full_name)

    def _mount(self, full_name: str) -> None:
        part = self.folder.with_name(f".{FOLDER}.part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        part.mkdir(parents=True)
        (part / INFO).write_text(_INFO_TEXT, encoding="ascii")
        (part / INDEX).write_text(_INDEX_TEXT, encoding="ascii")
        if full_name:
            (part / full_name).symlink_to(_FULL_DEVICE)
        part.rename(self.folder)

    def unmount(self) -> None:
        """The folder goes away."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def poll(self) -> Download:
        """Take what has been written since the last call."""
        try:
            files = [path for path in self.folder.iterdir() if path.name not in (INFO, INDEX)]
        except FileNotFoundError:
            return Download.NOTHING
        for path in files:
            try:
                if path.is_symlink() or not path.is_file():
                    continue
                stat = path.stat()
                mark = (stat.st_size, stat.st_mtime_ns)
                if self._seen.get(path) == mark:
                    continue
                self._seen[path] = mark
                data = path.read_bytes()
            except FileNotFoundError:
                continue
            outcome = self._take_file(path, data)
            if outcome is not None:
                return outcome
        return Download.BEGUN if self._numbers else Download.NOTHING

    def _take_file(self, path: Path, data: bytes) -> Download | None:
        taken = self._taken.setdefault(path, set())
        for index in range(len(data) // BLOCK_BYTES):
            if index in taken:
                continue
            block = parse_block(data[index * BLOCK_BYTES : (index + 1) * BLOCK_BYTES])
            if block is None:
                continue  # not written yet, or no UF2
            taken.add(index)
            if self._torn_after is not None and len(self._numbers) >= self._torn_after:
                return Download.TORN
            self._take(block)
            if self._total and len(self._numbers) == self._total:
                return Download.COMPLETE
        return None

    def _take(self, block: Block) -> None:
        if block.family != RP2350_ARM_SECURE:
            if not block.ignorable:
                self._tell(f"blocks of family {block.family:#010x} are ignored: they are not for this board")
            return
        offset = block.address - chip.XIP_BASE
        fits = 0 <= offset <= chip.FLASH_BYTES - chip.FLASH_PAGE and offset % chip.FLASH_PAGE == 0
        if not block.for_flash or not fits or len(block.payload) != chip.FLASH_PAGE:
            self._tell(f"a block for {block.address:#010x} is ignored: it is not a page of flash")
            return
        if block.total != self._total:
            self._numbers.clear()
            self._total = block.total
        sector = offset & -chip.FLASH_SECTOR
        if sector not in self._erased:
            self._erased.add(sector)
            self._erase(sector, chip.FLASH_SECTOR)
        self._program(offset, block.payload)
        self._numbers.add(block.number)

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._say(sentence)
