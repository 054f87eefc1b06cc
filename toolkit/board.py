"""Boards are data: one TOML file each. A new board of a known family needs no Python."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from toolkit.errors import UsageError
from toolkit.resources import resource

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Isa(Enum):
    """Which instructions a core has for int8 arithmetic; decides scratch sizes and kernel sums."""

    SCALAR = "scalar"
    DSP = "dsp"
    MVE = "mve"


_ISA_OF_CPU = {
    "cortex-m0": Isa.SCALAR,
    "cortex-m0plus": Isa.SCALAR,
    "cortex-m3": Isa.SCALAR,
    "cortex-m23": Isa.SCALAR,
    "cortex-m4": Isa.DSP,
    "cortex-m7": Isa.DSP,
    "cortex-m33": Isa.DSP,
    "cortex-m55": Isa.MVE,
    "cortex-m85": Isa.MVE,
}


_UPLOADS = ("bossac", "dfu-util", "arduino-cli")


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory of a board.

    Attributes:
        origin: address of its first byte.
        size: bytes.
        slow: reading it costs much more than reading RAM (serial flash behind a small cache): hot code and weights
            are better off in RAM.
    """

    origin: int
    size: int
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Emulator:
    """How a virtual board is run.

    Attributes:
        kind: `qemu`, or `process` for a runner that is a program of the development machine.
        machine: QEMU's machine name; empty for `process`.
        instructions_per_s: virtual instructions per virtual second where executed instructions can be read off the
            board's timer; 0 where they cannot.
        flash_origin, ram_origin: where the machine has the memories of a board that lie elsewhere on it; None where
            they lie alike.
    """

    kind: str
    machine: str = ""
    instructions_per_s: int = 0
    flash_origin: int | None = None
    ram_origin: int | None = None


@dataclass(frozen=True, slots=True)
class Usb:
    """How a real board shows itself on USB.

    Attributes:
        vid, pid: ids while a runner is running.
        bootloader_pid: product id while the bootloader waits for an image.
        volume: label of the drive that the bootloader then shows; empty where it shows none.
        bootloader_vid: vendor id of the bootloader; None where it is the runner's.
    """

    vid: int
    pid: int
    bootloader_pid: int
    volume: str
    bootloader_vid: int | None = None


@dataclass(frozen=True, slots=True)
class Arduino:
    """How the Arduino tools see a board.

    Attributes:
        fqbn: fully qualified board name, options included.
        upload: what writes its flash: `bossac`, `dfu-util`, or `arduino-cli` for whatever its core calls.
        address: where `dfu-util` writes, or the offset for `bossac`; 0 where the bootloader knows.
        board_manager: title of the core in the IDE's boards manager.
        linker_flash, linker_ram: bytes the core's linker script has where boards.txt says more; None where it does not.
    """

    fqbn: str
    upload: str
    address: int
    board_manager: str
    linker_flash: int | None = None
    linker_ram: int | None = None

    @property
    def core(self) -> str:
        """What `arduino-cli core install` takes."""
        return ":".join(self.fqbn.split(":")[:2])


@dataclass(frozen=True, slots=True)
class Board:
    """A board as its TOML file describes it.

    Attributes:
        name: the file's name without `.toml`; what `--board` takes.
        title: one line for people.
        port: folder of `firmware/ports` with its start-up code, serial line and timer.
        cpu: target of lowering and planning, e.g. `cortex-m33`.
        toolchain: `arm-none-eabi`, `pico-sdk` or `host`.
        flags: compiler flags that select core, FPU and ABI.
        flash, ram: memories; a runner is linked into them.
        reserved_flash: bytes of code the runtime and the kernels take besides the model's constants (estimate used
            to judge the fit before anything is built).
        reserved_ram: bytes of RAM besides arena and `stack` (the same).
        reserved_heap: those of them that a core's heap and other stacks take while it runs, which no linker counts.
        stack: bytes of stack that are set aside.
        cmake: definitions for the project's configuration, names and values.
        usb: how it is found and flashed when it is a real board; None for one that is only virtual.
        emulator: how it is run when it is virtual; None for a real board.
        twin: how its virtual twin is run; None when it has none.
        arduino: how the Arduino tools see it, for toolchain `arduino`; None for the others.
        sizes_from: whose word the sizes of `flash` and `ram` are, where there are several; empty for other boards.
    """

    name: str
    title: str
    port: str
    cpu: str
    toolchain: str
    flags: tuple[str, ...]
    flash: Memory
    ram: Memory
    reserved_flash: int
    reserved_ram: int
    stack: int
    cmake: tuple[tuple[str, str], ...] = ()
    usb: Usb | None = None
    emulator: Emulator | None = None
    twin: Emulator | None = None
    arduino: Arduino | None = None
    reserved_heap: int = 0
    sizes_from: str = ""

    @property
    def isa(self) -> Isa:
        return _ISA_OF_CPU[self.cpu]

    def virtual(self) -> Board:
        """This board as its virtual twin: the same images, run on this computer.

        Raises:
            UsageError: it has none.
        """
        if self.emulator is not None:
            return self
        if self.twin is None:
            raise UsageError(f"{self.name} has no virtual twin", hint="`deploy boards` shows which boards have one.")
        flash, ram = self.flash, self.ram
        if self.twin.flash_origin is not None:
            flash = replace(flash, origin=self.twin.flash_origin)
        if self.twin.ram_origin is not None:
            ram = replace(ram, origin=self.twin.ram_origin)
        return replace(self, emulator=self.twin, flash=flash, ram=ram)


def board_names() -> tuple[str, ...]:
    """Names of all boards, sorted."""
    return tuple(sorted(path.stem for path in resource("boards").glob("*.toml")))


def load_board(name: str) -> Board:
    """Board by name, or by the path of a TOML file of the user's own.

    Raises:
        UsageError: no such board, or its file is not a board description.
    """
    path = Path(name) if name.endswith(".toml") else resource("boards") / f"{name}.toml"
    if not path.is_file():
        raise UsageError(
            f"there is no board named {name!r}",
            hint=f"Known boards: {', '.join(board_names())}. A TOML file of your own can be given as a path.",
        )
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"not a TOML file: {error}", where=str(path)) from None
    return _board(data, path)


def _board(data: Mapping[str, Any], path: Path) -> Board:
    table = _Table(data, str(path))
    memory = table.table("memory")
    reserve = table.table("reserve")
    cpu = table.text("cpu")
    if cpu not in _ISA_OF_CPU:
        raise UsageError(
            f"`cpu` is {cpu!r}, which is not a core this toolkit knows",
            where=str(path),
            hint=f"Known cores: {', '.join(_ISA_OF_CPU)}.",
        )
    port = table.text("port")
    if not (resource("firmware") / "ports" / port).is_dir():
        raise UsageError(f"`port` is {port!r}, but firmware/ports has no such folder", where=str(path))
    heap = reserve.integer("heap_and_stacks", default=0)
    return Board(
        name=path.stem,
        title=table.text("title"),
        port=port,
        cpu=cpu,
        toolchain=table.text("toolchain"),
        flags=table.texts("flags"),
        flash=_memory(memory.table("flash")),
        ram=_memory(memory.table("ram")),
        reserved_flash=reserve.integer("flash"),
        reserved_ram=reserve.integer("ram") + heap,
        stack=reserve.integer("stack"),
        cmake=tuple((name, table.table("cmake").text(name)) for name in data.get("cmake", {})),
        usb=_usb(table.table("usb")) if "usb" in data else None,
        emulator=_emulator(table.table("emulator")) if "emulator" in data else None,
        twin=_emulator(table.table("twin")) if "twin" in data else None,
        arduino=_arduino(table.table("arduino"), path) if "arduino" in data else None,
        reserved_heap=heap,
        sizes_from=path.name if "arduino" in data else "",
    )


def _memory(table: _Table) -> Memory:
    return Memory(table.integer("origin"), table.integer("size"), table.flag("slow"))


def _usb(table: _Table) -> Usb:
    return Usb(
        vid=table.integer("vid"),
        pid=table.integer("pid"),
        bootloader_pid=table.integer("bootloader_pid"),
        volume=table.text("volume", default=""),
        bootloader_vid=table.optional_integer("bootloader_vid"),
    )


def _arduino(table: _Table, path: Path) -> Arduino:
    upload = table.text("upload")
    if upload not in _UPLOADS:
        raise UsageError(
            f"`upload` is {upload!r}, which is not a way to upload",
            where=f"{path}, [arduino]",
            hint=f"Known ways: {', '.join(_UPLOADS)}.",
        )
    return Arduino(
        fqbn=table.text("fqbn"),
        upload=upload,
        address=table.integer("address", default=0),
        board_manager=table.text("board_manager"),
        linker_flash=table.optional_integer("linker_flash"),
        linker_ram=table.optional_integer("linker_ram"),
    )


def _emulator(table: _Table) -> Emulator:
    return Emulator(
        kind=table.text("kind"),
        machine=table.text("machine", default=""),
        instructions_per_s=table.integer("instructions_per_s", default=0),
        flash_origin=table.optional_integer("flash_origin"),
        ram_origin=table.optional_integer("ram_origin"),
    )


class _Table:
    """A TOML table whose readers name the file and the key when a value is missing or of the wrong type."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self._data = data
        self._where = where

    def _get(self, key: str, kind: type, default: Any = None) -> Any:
        value = self._data.get(key, default)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            problem = "is missing" if value is None else f"should be {kind.__name__}, not {type(value).__name__}"
            raise UsageError(f"`{key}` {problem}", where=self._where)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        return str(self._get(key, str, default))

    def integer(self, key: str, default: int | None = None) -> int:
        value = int(self._get(key, int, default))
        if value < 0:
            raise UsageError(f"`{key}` is negative", where=self._where)
        return value

    def optional_integer(self, key: str) -> int | None:
        return self.integer(key) if key in self._data else None

    def flag(self, key: str) -> bool:
        return bool(self._get(key, bool, False))

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._get(key, list)
        if not all(isinstance(value, str) for value in values):
            raise UsageError(f"`{key}` should be a list of strings", where=self._where)
        return tuple(values)

    def table(self, key: str) -> _Table:
        return _Table(self._get(key, dict), f"{self._where}, [{key}]")
