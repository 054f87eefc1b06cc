"""Uploading to an Arduino board: touch, wait for the bootloader, upload, and the port wherever it comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.board import Board
from toolkit.errors import FlashError
from toolkit.flashing.arduino.bench import Bench, Patience, Uploader, same_number
from toolkit.flashing.arduino.bossac import Bossac
from toolkit.flashing.arduino.cli_upload import cli_upload
from toolkit.flashing.arduino.dfu_util import dfu_util
from toolkit.flashing.arduino.running import find_uploader
from toolkit.flashing.choice import Wanted, open_and_close, require_one
from toolkit.flashing.desk import Desk, SerialPort

_TRIES = 3
_TOUCHES = 2


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
    patience: Patience = Patience()  # noqa: RUF009 - immutable

    def flash(self, binary: Path, wanted: Wanted = Wanted()) -> str:  # noqa: B008 - immutable
        """Upload a program and wait until it runs.

        Returns:
            The serial port it came back as; the name may be another than before.

        Raises:
            FlashError: no board, several boards, a port that may not be opened, a bootloader that does not appear or
                fails, a board that does not come back. Each says what to do next.
            ToolError: the program that uploads is missing or too old; nothing was done to the board then.
        """
        bench = Bench(self.board, self.desk, self.say, self.patience)
        uploader = _uploader(bench)
        board = self._find(bench, uploader, wanted)
        others = [port for port in _all(bench, uploader) if port.device != board.device]
        known = _Known(
            serial_number=board.serial_number or wanted.serial_number or "",
            certain=board in bench.programs(),
            others=frozenset(port.device for port in others),
            other_numbers=frozenset(port.serial_number for port in others if port.serial_number),
        )
        for attempt in range(1, _TRIES + 1):
            self.say(f"uploading {binary.stat().st_size:,} bytes")
            at = board if uploader.reboots else self._bootloader(bench, uploader, board, known)
            problem = uploader.upload(binary, at)
            if problem is None:
                return self._returned(bench, known)
            if attempt < _TRIES:
                self.say(f"the upload failed ({problem}): once more")
                if attempt == _TRIES - 1:
                    self._afresh(bench, uploader, at)
                board = self._again(bench, uploader, known)
        raise FlashError(
            f"the upload failed {_TRIES} times: {problem}",
            where=board.device,
            hint="Press the reset button twice, quickly, so that the light pulses, and run this again; if it "
            "fails the same way, try another cable or USB socket.",
        )

    def _find(self, bench: Bench, uploader: Uploader, wanted: Wanted) -> SerialPort:
        """The board that is meant, whether its program or its bootloader runs."""

        def looked_for() -> list[SerialPort]:
            if wanted.port is not None:  # one that a person names is taken whatever its USB identity
                found = [port for port in self.desk.ports() if port.device == wanted.port]
            else:
                found = _all(bench, uploader)
            number = wanted.serial_number
            return [port for port in found if number is None or same_number(port.serial_number, number)]

        found = bench.wait(looked_for, 0.2)
        if not found:
            self.say(f"no {self.board.title}: plug it in; if it does not show up, press its reset button twice")
            if wanted.port is not None and uploader.waiting():
                self.say("one waits for an upload and has no port of this name: leave the port out to take it")
            found = bench.wait(looked_for, self.patience.person)
        if not found:
            raise FlashError(
                f"there is no {self.board.title}",
                where=wanted.port or self.board.name,
                hint="Check that the cable carries data and not only power; press the reset button twice, quickly.",
            )
        require_one(found, self.board)
        return found[0]

    def _again(self, bench: Bench, uploader: Uploader, known: _Known) -> SerialPort:
        """The same board after an upload that failed, wherever it is now."""

        def looked_for() -> list[SerialPort]:
            waiting = known.among_bootloaders(uploader.waiting())
            return list(dict.fromkeys([*known.among_programs(bench.programs()), *waiting]))

        found = bench.wait(looked_for, self.patience.bootloader)
        if not found:
            self.say("the board has gone: plug it in again; if it does not show up, press its reset button twice")
            found = bench.wait(looked_for, self.patience.person)
        if not found:
            raise FlashError(
                "the board went away during the upload",
                where=self.board.name,
                hint="Check its cable and USB socket, press the reset button twice, quickly, and run this again.",
            )
        require_one(found, self.board)
        return found[0]

    def _afresh(self, bench: Bench, uploader: Uploader, at: SerialPort) -> None:
        """Give a person the time to restart a bootloader: one that was cut off in the middle may hang."""
        self.say("now press its reset button twice, quickly; it is tried once more in any case")
        deadline = time.monotonic() + self.patience.afresh
        while at.device in {port.device for port in _all(bench, uploader)} and time.monotonic() < deadline:
            time.sleep(0.1)

    def _bootloader(self, bench: Bench, uploader: Uploader, board: SerialPort, known: _Known) -> SerialPort:
        """Where the board waits for an upload, after rebooting it into its bootloader if need be."""
        if bench.has_bridge:
            self.say(f"rebooting the chip behind {board.device} into its bootloader")
            bench.touch(board)
            time.sleep(self.patience.bridge)
            return board

        def waiting() -> list[SerialPort]:
            return known.among_bootloaders(uploader.waiting())

        found = waiting()
        if not found:
            self.say(f"rebooting {board.device} into its bootloader")
        for _ in range(_TOUCHES):  # one may get lost in a program that has just started
            if not found:
                bench.touch(board)
                found = bench.wait(waiting, self.patience.bootloader / _TOUCHES)
        if not found:
            self.say("the board does not reboot by itself: press its reset button twice, quickly; this goes on then")
            found = bench.wait(waiting, self.patience.person)
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
        return found[0]

    def _returned(self, bench: Bench, known: _Known) -> str:
        """The port under which the board is back: the one with its serial number, never just the newest."""
        found = bench.wait(lambda: known.among_programs(bench.programs()), self.patience.port)
        if not found:
            raise FlashError(
                f"the upload is done, but the board did not come back within {self.patience.port:.0f} s",
                where=self.board.name,
                hint="Press its reset button once. If it stays away, the sketch may not start: upload again.",
            )
        open_and_close(found[0], self.desk, self.patience.access, may_go=True)
        return found[0].device


@dataclass(frozen=True, slots=True)
class _Known:
    """What tells a board from others of its kind while it changes between program and bootloader.

    Attributes:
        serial_number: its USB serial number, empty when it has none.
        certain: whether that is the program's number; a bootloader may have another one, or none.
        others: names of all other ports and places that were there before.
        other_numbers: serial numbers of the other boards of its kind.
    """

    serial_number: str
    certain: bool
    others: frozenset[str]
    other_numbers: frozenset[str]

    def among_programs(self, found: Sequence[SerialPort]) -> list[SerialPort]:
        """Those that can be the board: by its number, or new ones when its program's number is not known."""
        named = [port for port in found if same_number(port.serial_number, self.serial_number)]
        return named if self.serial_number and self.certain else named or self._new(found)

    def among_bootloaders(self, found: Sequence[SerialPort]) -> list[SerialPort]:
        """Those that can be the board: by its number, or new ones that are no other board's."""
        named = [port for port in found if same_number(port.serial_number, self.serial_number)]
        return named or self._new(found)

    def _new(self, found: Sequence[SerialPort]) -> list[SerialPort]:
        return [
            port
            for port in found
            if port.device not in self.others
            and not any(same_number(port.serial_number, number) for number in self.other_numbers)
        ]


def _all(bench: Bench, uploader: Uploader) -> list[SerialPort]:
    """Boards of the kind, whether their program or their bootloader runs."""
    return list(dict.fromkeys([*bench.programs(), *uploader.waiting()]))


def _uploader(bench: Bench) -> Uploader:
    if bench.arduino.upload == "bossac":
        return Bossac(bench, find_uploader("bossac", "bossa-cli"))
    if bench.arduino.upload == "dfu-util":
        return dfu_util(bench)
    return cli_upload(bench)
