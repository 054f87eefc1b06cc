"""What runs at every basic block and at every access to a device: counting, deadlines, alignment, quick answers.

The same is there twice: in C (hook.c, compiled once into the cache by the host's compiler) and in Python, where no
compiler is. Both count the same instructions and stop at the same blocks; only their speed differs.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.alignment import Check, Decoded
from toolkit.emulation.rp2350.engine import Engine
from toolkit.resources import cache_folder

NEVER = (1 << 64) - 1
MAX_RECORDS = 1 << 16
MAX_CHECKS = 1 << 16
MAX_COPIES = 1 << 22
MAX_PROBES = 64
POLL_WINDOW = 100  # instructions
NO_BLOCK = 1  # no block begins at an odd address


class Stop(IntEnum):
    """Why the CPU was stopped."""

    RUNNING = 0
    DEADLINE = 1  # `count` reached `deadline`
    UNMASKED = 2  # the firmware allows the interrupt that is waiting
    UNKNOWN = 3  # a block needs hooks of its own before it may run
    MISALIGNED = 4  # `culprit` says which check failed
    DEVICE = 5  # a block reaches a device for the first time: it must be read again
    FAULT = 6  # an exception is waiting in Python
    RECURRED = 7  # the registers are again as they were when the probe was set


class How(IntEnum):
    """Who answers a read of a register."""

    ASK = 0  # the block's own code
    VALUE = 1  # the stored value is right
    TIME_LOW = 2  # virtual microseconds, low word
    TIME_HIGH = 3  # and high word
    COUNT = 4  # executed instructions, less the stored value
    POLL = 5  # the stored value is right, and who reads it is waiting for something


class Registers:
    """One block's registers, as both hooks see them: 1024 words with, for each, who answers reads and takes writes."""

    def __init__(self, read: Callable[[int, int], int], write: Callable[[int, int, int], None]) -> None:
        self.values = (ctypes.c_uint32 * 1024)()
        self.how = (ctypes.c_uint8 * 1024)()
        self.storable = (ctypes.c_uint8 * 1024)()
        self.read = read
        self.write = write

    def answer(self, offset: int, size: int, hook: Hook) -> int:
        """A read, in Python."""
        word = (offset & 0xFFF) >> 2
        how = self.how[word]
        if how == How.ASK:
            return self.read(offset, size)
        if how in (How.VALUE, How.POLL):
            if how == How.POLL:
                hook.note_poll(time=False)
            value = self.values[word] >> 8 * (offset & 3)
            return value & (1 << 8 * size) - 1
        if how == How.COUNT:
            return hook.count - self.values[word] & 0xFFFF_FFFF
        hook.note_poll(time=how == How.TIME_LOW)
        microseconds = (hook.count + hook.skipped) // chip.CYCLES_PER_US
        return microseconds >> 32 if how == How.TIME_HIGH else microseconds & 0xFFFF_FFFF

    def store(self, offset: int, size: int, value: int) -> None:
        """A write, in Python."""
        if offset < 0x1000 and self.storable[offset >> 2]:
            start = ctypes.addressof(self.values) + offset
            ctypes.memmove(start, value.to_bytes(8, "little"), size)
        else:
            self.write(offset, size, value & 0xFFFF_FFFF)


class Hook(Protocol):
    """Both hooks look like this.

    Attributes:
        count: executed instructions. The instructions of a block are counted when it begins.
        deadline: the CPU stops at the first block that begins with `count` at or over this.
        skipped: cycles that passed while the CPU slept.
        stop: why it stopped; to be set to RUNNING before it goes on.
        watch: nonzero to stop as soon as an interrupt of priority `priority` would be taken.
        block, size: the last block that was begun.
        culprit: number of the failed check.
        pardon: address of a block whose checks are to be left out once.
        pardon_site: address of an instruction whose check is to be left out once.
        wake: nonzero to stop at the next block; another thread may set it.
    """

    count: int
    deadline: int
    skipped: int
    stop: int
    watch: int
    priority: int
    block: int
    size: int
    culprit: int
    pardon: int
    pardon_site: int
    wake: int

    @property
    def polls(self) -> int:
        """Reads of the time, and of registers that say that nothing has come yet."""

    def attach(self, engine: Engine, decode: Callable[[int, int], int]) -> None:
        """Begin to count; `decode` is called for blocks not seen before and gives a record's number, 0 to stop."""

    def map(self, engine: Engine, base: int, size: int, registers: Registers) -> None:
        """Put a block of registers into the address space."""

    def add_record(self, address: int, code: bytes, decoded: Decoded, *, device: bool) -> int:
        """Remember a decoded block; gives its number."""

    def add_site(self, engine: Engine, address: int, check: Check) -> int:
        """Make a check whenever an instruction is reached; gives the check's number."""

    def set_probe(self, address: int, registers: list[int], doubles: list[int]) -> None:
        """Stop when a block begins again with these registers (`Engine.everything`); 1 as address ends that."""

    def check(self, number: int) -> tuple[int, Check]:
        """The check of a number, and the address of its instruction."""

    def note_poll(self, *, time: bool) -> None:
        """A register is read that who waits reads. Asking for the time again and again makes a microsecond pass."""

    def forget(self) -> None:
        """Forget all blocks, because code in flash changed."""


def make_hook(sram: Any, kind: str = "auto") -> Hook:
    """The fastest hook there is.

    Args:
        sram: buffer of the chip's SRAM.
        kind: `c`, `python`, or `auto` for C where a compiler is.
    """
    if kind != "python":
        library = compiled_library()
        if library is not None:
            from toolkit.emulation.rp2350.native import NativeHook

            return NativeHook(sram, library)
    from toolkit.emulation.rp2350.python_hook import PythonHook

    return PythonHook(sram)


def compiled_library() -> Path | None:
    """hook.c as a shared library in the cache; None where no compiler is, or it fails."""
    source = Path(__file__).with_name("hook.c")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    digest = hashlib.sha256(source.read_bytes() + compiler.encode() + os.uname().machine.encode()).hexdigest()[:16]
    library = cache_folder() / "virtual-pico2" / f"hook-{digest}.so"
    if library.is_file():
        return library
    # Built beside its final place, so that an interruption leaves nothing that looks finished.
    part = library.with_name(f"{library.name}.{os.getpid()}.part")
    command = [compiler, "-std=c11", "-O2", "-shared", "-fPIC", "-o", str(part), str(source)]
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)
        if done.returncode != 0:
            return None
        part.replace(library)
    except (OSError, subprocess.TimeoutExpired):
        return None
    finally:
        part.unlink(missing_ok=True)
    return library
