"""The hook in Python, for where no C compiler is: see hook.Hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.alignment import Check, Decoded
from toolkit.emulation.rp2350.engine import Engine
from toolkit.emulation.rp2350.hook import MAX_PROBES, NEVER, NO_BLOCK, POLL_WINDOW, Registers, Stop


class PythonHook:
    """The hook without a compiler."""

    def __init__(self, sram: Any) -> None:
        self.count = 0
        self.deadline = NEVER
        self.skipped = 0
        self.stop = int(Stop.RUNNING)
        self.watch = 0
        self.priority = 0
        self.block = 0
        self.size = 0
        self.culprit = 0
        self.pardon = NO_BLOCK
        self.pardon_site = NO_BLOCK
        self.wake = 0
        self._last_poll = 0
        self._probe = NO_BLOCK
        self._probes = 0
        self._seen: tuple[list[int], list[int]] = ([], [])
        self.polls = 0
        self._sram = memoryview(sram)
        self._records: dict[tuple[int, int], _Record] = {}
        self._checks: list[tuple[int, Check]] = []
        self._last: _Record | None = None
        self._newest = _Record(0, 0, (), False, b"")

    def attach(self, engine: Engine, decode: Callable[[int, int], int]) -> None:
        def on_block(address: int, size: int) -> None:
            why = self._begin(engine, address, size, decode)
            if why is not None:
                self._halt(engine, why)

        engine.on_block(on_block)

    def _begin(self, engine: Engine, address: int, size: int, decode: Callable[[int, int], int]) -> Stop | None:
        """A block is about to run: count it, or say why it must not."""
        if self.count >= self.deadline or self.wake:
            return Stop.DEADLINE
        if self._probe == address:
            self._probes += 1
            if self._probes > 1 and engine.everything() == self._seen:
                return Stop.RECURRED
            if self._probes > MAX_PROBES:
                self._probe = NO_BLOCK
        if self.watch and _unmasked(engine, self.priority):
            return Stop.UNMASKED
        record = self._records.get((address, size))
        if record is None or (record.copy and not self._same(address, record.copy)):
            if not decode(address, size):
                return Stop(self.stop) if self.stop else Stop.UNKNOWN
            record = self._newest
        if self.pardon != address:
            for number in record.checks:
                if self._checks[number][1].fails(engine.read, engine.flags):
                    self.culprit = number
                    return Stop.MISALIGNED
        self.pardon = NO_BLOCK
        self._last = record
        self.block = address
        self.size = size
        self.count += record.count
        return None

    def set_probe(self, address: int, registers: list[int], doubles: list[int]) -> None:
        self._probe, self._probes, self._seen = address, 0, (registers, doubles)

    def _same(self, address: int, copy: bytes) -> bool:
        start = address - chip.SRAM_BASE
        return self._sram[start : start + len(copy)] == copy

    def _halt(self, engine: Engine, why: Stop) -> None:
        self.stop = int(why)
        engine.stop()

    def map(self, engine: Engine, base: int, size: int, registers: Registers) -> None:
        def read(offset: int, length: int) -> int:
            if self.stop:
                return 0
            if self._last is None or not self._last.device:
                self._halt(engine, Stop.DEVICE)
                return 0
            value = registers.answer(offset, length, self)
            if self.stop:
                engine.stop()
            return value

        def write(offset: int, length: int, value: int) -> None:
            if self.stop:
                return
            if self._last is None or not self._last.device:
                self._halt(engine, Stop.DEVICE)
                return
            registers.store(offset, length, value)
            if self.stop:
                engine.stop()

        engine.map_device(base, size, read, write)

    def add_record(self, address: int, code: bytes, decoded: Decoded, *, device: bool) -> int:
        first = len(self._checks)
        self._checks += decoded.checks
        in_ram = chip.SRAM_BASE <= address < chip.SRAM_BASE + chip.SRAM_BYTES
        numbers = tuple(range(first, len(self._checks)))
        self._newest = _Record(address, decoded.count, numbers, device, code if in_ram else b"")
        self._records[address, len(code)] = self._newest
        return len(self._records)

    def add_site(self, engine: Engine, address: int, check: Check) -> int:
        number = len(self._checks)
        self._checks.append((address, check))

        def on_site() -> None:
            if self.stop:
                return
            if self.pardon_site == address:
                self.pardon_site = NO_BLOCK
            elif check.fails(engine.read, engine.flags):
                self.culprit = number
                self._halt(engine, Stop.MISALIGNED)

        engine.on_instruction(address, on_site)
        return number

    def check(self, number: int) -> tuple[int, Check]:
        return self._checks[number]

    def note_poll(self, *, time: bool) -> None:
        self.polls += 1
        if not time:
            return
        if self.count - self._last_poll < POLL_WINDOW:
            self.skipped += chip.CYCLES_PER_US
            self.deadline = max(0, self.deadline - chip.CYCLES_PER_US)
        self._last_poll = self.count

    def forget(self) -> None:
        self._records.clear()
        self._last = None


class _Record:
    """A decoded block."""

    __slots__ = ("address", "checks", "copy", "count", "device")

    def __init__(self, address: int, count: int, checks: tuple[int, ...], device: bool, copy: bytes) -> None:
        self.address = address
        self.count = count
        self.checks = checks
        self.device = device
        self.copy = copy


def _unmasked(engine: Engine, priority: int) -> bool:
    masks = engine.masks()
    return not masks.primask & 1 and not masks.faultmask & 1 and (not masks.basepri or priority < masks.basepri)
