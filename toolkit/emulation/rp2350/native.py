"""The hook in C: the structures it shares with Python, and how it is put between Unicorn and the board."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.alignment import Check, Decoded
from toolkit.emulation.rp2350.engine import Engine
from toolkit.emulation.rp2350.hook import MAX_CHECKS, MAX_COPIES, MAX_RECORDS, NEVER, Registers

_FLAG_DEVICE = 1
_REGISTER_IDS = 19
_DOUBLES = 16
_FREE = 64  # room that must be left before all records are forgotten: one block's checks

_Decode = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)
_Read = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)
_Write = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)


class _Check(ctypes.Structure):
    _fields_ = (
        ("weights", ctypes.c_uint32),
        ("offset", ctypes.c_uint32),
        ("mask", ctypes.c_uint8),
        ("device", ctypes.c_uint8),
        ("base", ctypes.c_uint8),
        ("condition", ctypes.c_uint8),
    )


class _Record(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint32)
        for name in ("address", "size", "count", "flags", "first_check", "checks", "copy", "spare")
    )


class _State(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("count", "deadline", "skipped", "last_poll")),
        *((name, ctypes.c_uint32) for name in ("stop", "watch", "priority", "block", "size", "record", "culprit")),
        *((name, ctypes.c_uint32) for name in ("pardon", "pardon_site", "cycles_per_us", "wake")),
        *((name, ctypes.c_uint32) for name in ("probe", "probes", "spare")),
        *((name, ctypes.c_void_p) for name in ("sram", "rom_index", "flash_index", "sram_index")),
        *((name, ctypes.c_void_p) for name in ("records", "checks", "copies", "uc_stop", "uc_read")),
        ("decode", _Decode),
        ("ids", ctypes.c_int32 * _REGISTER_IDS),
        ("double_ids", ctypes.c_int32 * _DOUBLES),
        ("seen", ctypes.c_uint32 * _REGISTER_IDS),
        ("seen_doubles", ctypes.c_uint64 * _DOUBLES),
    )


class _Region(ctypes.Structure):
    _fields_ = (
        ("state", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("how", ctypes.c_void_p),
        ("storable", ctypes.c_void_p),
        ("read", _Read),
        ("write", _Write),
        ("polls", ctypes.c_uint64),
    )


class _Site(ctypes.Structure):
    _fields_ = (("state", ctypes.c_void_p), ("number", ctypes.c_uint32))


def _shared(name: str) -> Any:
    """A property that lives in the structure C works on."""

    def set_(self: NativeHook, value: int) -> None:
        setattr(self.state, name, value)

    return property(attrgetter(f"state.{name}"), set_)


class NativeHook:
    """See hook.Hook."""

    count: int = _shared("count")
    deadline: int = _shared("deadline")
    skipped: int = _shared("skipped")
    stop: int = _shared("stop")
    watch: int = _shared("watch")
    priority: int = _shared("priority")
    block: int = _shared("block")
    size: int = _shared("size")
    culprit: int = _shared("culprit")
    pardon: int = _shared("pardon")
    pardon_site: int = _shared("pardon_site")
    wake: int = _shared("wake")

    def __init__(self, sram: Any, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self.state = _State(deadline=NEVER, pardon=1, pardon_site=1, probe=1, cycles_per_us=chip.CYCLES_PER_US)
        self._sram = (ctypes.c_char * chip.SRAM_BYTES).from_buffer(sram)
        self._indexes = tuple(
            (ctypes.c_uint32 * (size // 2))() for size in (chip.ROM_BYTES, chip.FLASH_BYTES, chip.SRAM_BYTES)
        )
        self._records = (_Record * MAX_RECORDS)()
        self._checks = (_Check * MAX_CHECKS)()
        self._copies = (ctypes.c_char * MAX_COPIES)()
        self.state.sram = ctypes.addressof(self._sram)
        for name, index in zip(("rom_index", "flash_index", "sram_index"), self._indexes, strict=True):
            setattr(self.state, name, ctypes.addressof(index))
        self.state.records = ctypes.addressof(self._records)
        self.state.checks = ctypes.addressof(self._checks)
        self.state.copies = ctypes.addressof(self._copies)
        self._used_records = 1  # number 0 stands for none
        self._used_checks = 0
        self._first_free_check = 0
        self._used_copies = 1
        self._python_checks: dict[int, tuple[int, Check]] = {}
        self._sites: list[_Site] = []
        self._regions: list[_Region] = []
        self._keep: list[Any] = []

    @property
    def polls(self) -> int:
        return sum(int(region.polls) for region in self._regions)

    def attach(self, engine: Engine, decode: Callable[[int, int], int]) -> None:
        self.state.uc_stop = ctypes.cast(engine.library.uc_emu_stop, ctypes.c_void_p).value
        self.state.uc_read = ctypes.cast(engine.library.uc_reg_read, ctypes.c_void_p).value
        self.state.decode = _Decode(decode)
        self.state.ids = (ctypes.c_int32 * _REGISTER_IDS)(*engine.hook_ids())
        self.state.double_ids = (ctypes.c_int32 * _DOUBLES)(*engine.double_ids())
        engine.add_native_hook(engine.block_hook_kind, self._library.hook_block, ctypes.addressof(self.state))

    def set_probe(self, address: int, registers: list[int], doubles: list[int]) -> None:
        self.state.seen = (ctypes.c_uint32 * _REGISTER_IDS)(*registers)
        self.state.seen_doubles = (ctypes.c_uint64 * _DOUBLES)(*doubles)
        self.state.probes = 0
        self.state.probe = address

    def map(self, engine: Engine, base: int, size: int, registers: Registers) -> None:
        region = _Region(
            ctypes.addressof(self.state),
            ctypes.addressof(registers.values),
            ctypes.addressof(registers.how),
            ctypes.addressof(registers.storable),
            _Read(registers.read),
            _Write(registers.write),
        )
        self._regions.append(region)
        self._keep.append(registers)
        data = ctypes.addressof(region)
        engine.map_native_device(base, size, self._library.hook_read, self._library.hook_write, data)

    def add_record(self, address: int, code: bytes, decoded: Decoded, *, device: bool) -> int:
        index = self._index(address)
        if index is None:
            return 0
        self._make_room(len(decoded.checks), len(code))
        copy = 0
        if chip.SRAM_BASE <= address < chip.SRAM_BASE + chip.SRAM_BYTES:
            copy = self._used_copies
            ctypes.memmove(ctypes.addressof(self._copies) + copy, code, len(code))
            self._used_copies += len(code)
        first = self._used_checks
        for place, check in decoded.checks:
            self._put_check(place, check)
        number = self._used_records
        flags = _FLAG_DEVICE if device else 0
        self._records[number] = _Record(address, len(code), decoded.count, flags, first, len(decoded.checks), copy, 0)
        self._used_records += 1
        array, position = index
        array[position] = number
        return number

    def _index(self, address: int) -> tuple[Any, int] | None:
        rom, flash, sram = self._indexes
        if chip.SRAM_BASE <= address < chip.SRAM_BASE + chip.SRAM_BYTES:
            return sram, (address - chip.SRAM_BASE) >> 1
        if address >> 28 == 1 and address & 0x03FF_FFFF < chip.FLASH_BYTES:
            return flash, (address & chip.FLASH_BYTES - 1) >> 1
        return (rom, address >> 1) if address < chip.ROM_BYTES else None

    def _make_room(self, checks: int, code: int) -> None:
        full = (
            self._used_records + 1 >= MAX_RECORDS
            or self._used_checks + checks + _FREE >= MAX_CHECKS
            or self._used_copies + code >= MAX_COPIES
        )
        if full:
            self.forget()

    def _put_check(self, address: int, check: Check) -> int:
        number = self._used_checks
        self._checks[number] = _Check(
            check.weights, check.offset, check.mask, check.device, check.base, check.condition
        )
        self._python_checks[number] = (address, check)
        self._used_checks += 1
        return number

    def add_site(self, engine: Engine, address: int, check: Check) -> int:
        # Sites keep their checks when records are forgotten: they are put below what is used again.
        number = self._put_check(address, check)
        self._first_free_check = self._used_checks
        site = _Site(ctypes.addressof(self.state), number)
        self._sites.append(site)
        engine.add_native_hook(engine.code_hook_kind, self._library.hook_site, ctypes.addressof(site), address)
        return number

    def check(self, number: int) -> tuple[int, Check]:
        return self._python_checks[number]

    def note_poll(self, *, time: bool) -> None:
        pass  # hook.c does

    def forget(self) -> None:
        for index in self._indexes:
            ctypes.memset(index, 0, ctypes.sizeof(index))
        self._used_records = 1
        self._used_checks = self._first_free_check
        self._used_copies = 1
        self.state.record = 0
