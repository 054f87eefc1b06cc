"""The virtual Pico 2: a chip, a flash that outlives resets, a desk, and what is wrong with it."""

from __future__ import annotations

import gc
import mmap
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from toolkit.emulation.rp2350 import chip, desk
from toolkit.emulation.rp2350.bootrom import REBOOT_BOOTSEL, Reboot
from toolkit.emulation.rp2350.drive import Download, Drive
from toolkit.emulation.rp2350.image import find_image
from toolkit.emulation.rp2350.machine import Machine, Outcome, Wires
from toolkit.emulation.rp2350.misbehaviour import Fault, Plan, RebootAt, TornWrite, VolumeFull
from toolkit.emulation.rp2350.pace import Pace
from toolkit.emulation.rp2350.ports import Ports
from toolkit.emulation.rp2350.report import Symbols, describe, read_symbols
from toolkit.emulation.rp2350.system import Memories
from toolkit.emulation.rp2350.uf2_blocks import BLOCK_BYTES, parse_block
from toolkit.emulation.rp2350.watcher import Watcher

UNIQUE_ID = 0x4E65_7665_7248_7921

_LONGEST_SLEEP = chip.CPU_HZ // 100  # cycles between two looks at the desk
_STATUS_INTERVAL_S = 0.2
_DRIVE_INTERVAL_S = 0.02
_HALTED_INTERVAL_S = 0.05
_REMOUNT_S = 0.4  # how long a drive is away when it is mounted anew


class State(Enum):
    """What status.json says."""

    BOOTSEL = "bootsel"
    RUNNING = "running"
    HALTED = "halted"


@dataclass(frozen=True, slots=True)
class Options:
    """How a board is set up.

    Attributes:
        desk: folder of the desk.
        uf2: image that is in flash already.
        elf: executable with the symbols of what will run.
        faults: what is wrong with the board.
        keep_flash: keep flash in the desk's `flash.bin`, so that the board can be switched off and on.
        hook: `auto`, `c` or `python`.
        bootsel: the BOOTSEL button is held while the board is switched on.
    """

    desk: Path
    uf2: Path | None = None
    elf: Path | None = None
    faults: tuple[Fault, ...] = ()
    keep_flash: bool = False
    hook: str = "auto"
    bootsel: bool = False


class Board:
    """A board on a desk.

    Args:
        options: how it is set up.
        alive: asked regularly; False switches the board off.
    """

    def __init__(self, options: Options, alive: Callable[[], bool]) -> None:
        self._options = options
        self._alive = alive
        self._plan = Plan(options.faults)
        self._memories = Memories(_flash(options))
        self._ports = Ports(options.desk, self._plan)
        self._pace = Pace()
        self._watcher = Watcher()
        self._ports.on_line = self._watcher.add
        self._watcher.add(self._ports.uart.line)
        self._machine: Machine | None = None
        self._drive: Drive | None = None
        self._state = State.BOOTSEL
        self._fault: str | None = None
        self._told_at = 0.0
        self._next_boot = Reboot(0)
        if options.uf2 is not None:
            self._load(options.uf2)

    def run(self) -> None:
        """Until it is switched off."""
        self._power_on(Reboot(REBOOT_BOOTSEL if self._options.bootsel else 0), after="start")
        try:
            while self._alive():
                if self._state is State.BOOTSEL:
                    self._serve_drive()
                elif self._state is State.RUNNING:
                    self._run_firmware()
                else:
                    self._ports.discard(_HALTED_INTERVAL_S)
        finally:
            self.switch_off()

    def switch_off(self) -> None:
        """Everything goes from the desk."""
        if self._drive is not None:
            self._drive.unmount()
        self._ports.remove_all()

    # --- states ------------------------------------------------------------------------------------------------------

    def _power_on(self, boot: Reboot, *, after: str) -> None:
        """Leave the boot ROM, into the firmware or into the bootloader."""
        self._machine = None
        gc.collect()  # Unicorn's memory is large and in a cycle of callbacks
        image = find_image(self._memories.flash)
        if boot.kind == REBOOT_BOOTSEL or isinstance(image, str):
            if isinstance(image, str) and boot.kind != REBOOT_BOOTSEL:
                self._say(f"{image}: BOOTSEL")
            self._enter_bootsel(boot)
            return
        machine = Machine(
            self._memories,
            image,
            boot,
            Wires(self._ports.uart.transmit),
            unique_id=UNIQUE_ID,
            hook_kind=self._options.hook,
        )
        self._machine = machine
        self._pace = Pace()
        self._ports.connect(machine, after)
        self._watcher.watch(machine.hook)
        self._plan_power_failure(machine)
        self._enter(State.RUNNING)

    def _plan_power_failure(self, machine: Machine) -> None:
        fault = self._plan.peek(RebootAt)
        if fault is not None:

            def fail() -> None:
                self._plan.use(fault)
                self._say(f"the power fails after {machine.instructions} instructions")
                machine.request_reboot(Reboot(0))

            machine.at_count(fault.instructions, fail)

    def _enter_bootsel(self, boot: Reboot) -> None:
        self._ports.disconnect()
        if boot.kind == REBOOT_BOOTSEL and boot.parameters[0] & 1:
            self._say("the firmware asked for a bootloader without its drive")
        else:
            torn = self._plan.peek(TornWrite)
            full = self._plan.take(VolumeFull)
            self._drive = Drive(
                self._options.desk,
                self._erase,
                self._program,
                self._say,
                torn_after=torn.blocks if torn else None,
                full_name=full.name if full else "",
            )
        self._enter(State.BOOTSEL)

    def _enter(self, state: State) -> None:
        self._state = state
        self._fault = self._fault if state is State.HALTED else None
        self._tell(force=True)

    def _tell(self, *, force: bool = False) -> None:
        """status.json, at changes of state and not too often in between."""
        now = time.monotonic()
        if force or now - self._told_at >= _STATUS_INTERVAL_S:
            self._told_at = now
            instructions = self._machine.instructions if self._machine else 0
            desk.write_status(self._options.desk, self._state.value, instructions, self._fault)

    # --- BOOTSEL -----------------------------------------------------------------------------------------------------

    def _serve_drive(self) -> None:
        if self._drive is None:
            self._ports.discard(_DRIVE_INTERVAL_S)
            return
        download = self._drive.poll()
        if download is Download.COMPLETE:
            self._drive.unmount()
            self._drive = None
            self._power_on(Reboot(0), after="flash")
        elif download is Download.TORN:
            self._plan.take(TornWrite)
            self._say("the drive goes away in the middle of the image")
            self._drive.unmount()
            self._ports.discard(_REMOUNT_S)
            self._enter_bootsel(Reboot(REBOOT_BOOTSEL))
        else:
            self._ports.discard(_DRIVE_INTERVAL_S)

    def _erase(self, offset: int, size: int) -> None:
        self._memories.flash[offset : offset + size] = b"\xff" * size

    def _program(self, offset: int, data: bytes) -> None:
        self._memories.flash[offset : offset + len(data)] = data

    def _load(self, uf2: Path) -> None:
        """An image that is in flash before the board is switched on."""
        data = uf2.read_bytes()
        for start in range(0, len(data), BLOCK_BYTES):
            block = parse_block(data[start : start + BLOCK_BYTES])
            if block is not None and not block.ignorable and chip.area_at(block.address) == chip.area("XIP flash"):
                self._program(block.address - chip.XIP_BASE, block.payload)

    # --- firmware ----------------------------------------------------------------------------------------------------

    def _run_firmware(self) -> None:
        machine = self._machine
        assert machine is not None
        polls = machine.hook.polls
        outcome = machine.run(self._pace.slice)
        moved = self._ports.exchange()
        if outcome is Outcome.RUNNING:
            polls = machine.hook.polls - polls
            rest = self._pace.rest_until(machine.cycles, machine.hook.count, polls, moved)
            if rest:
                self._let_pass(machine, rest)
            elif self._pace.may_probe(moved) and self._pace.probed(machine.probe()):
                self._sleep(machine)
        elif outcome is Outcome.ASLEEP:
            self._sleep(machine)
        elif outcome is Outcome.REBOOT:
            assert machine.reboot is not None
            reboot = machine.reboot
            self._say(f"reset: {'BOOTSEL' if reboot.kind == REBOOT_BOOTSEL else 'boot'}")
            self._ports.exchange()
            self._power_on(reboot, after="reboot")
            return
        else:
            self._fault = describe(machine, self._symbols)
            self._say(self._fault)
            self._enter(State.HALTED)
            return
        self._tell()

    def _sleep(self, machine: Machine) -> None:
        """The CPU waits for an interrupt: time goes on to the next event, no faster than on the desk."""
        until = machine.sleeps_until()
        limit = machine.cycles + _LONGEST_SLEEP
        self._let_pass(machine, limit if until is None else min(until, limit))

    def _let_pass(self, machine: Machine, target: int) -> None:
        """Let virtual time come to a cycle, no faster than on the desk; less far when a client does something."""
        seconds = self._pace.wait_for(machine.cycles, target)
        if seconds > 0:
            waited = self._ports.wait(seconds)
            if waited < seconds:
                target = min(target, machine.cycles + int(waited * chip.CPU_HZ))
        machine.sleep(target)

    @property
    def _symbols(self) -> Symbols:
        return read_symbols(self._options.elf)

    @staticmethod
    def _say(sentence: str) -> None:
        print(f"virtual Pico 2: {sentence}", file=sys.stderr, flush=True)


def _flash(options: Options) -> mmap.mmap:
    """4 MB of flash, erased; in a file where it is to be kept."""
    if not options.keep_flash:
        memory = mmap.mmap(-1, chip.FLASH_BYTES)
        memory[:] = b"\xff" * chip.FLASH_BYTES
        return memory
    path = options.desk / "flash.bin"
    if not path.is_file() or path.stat().st_size != chip.FLASH_BYTES:
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(b"\xff" * chip.FLASH_BYTES)
        part.replace(path)
    descriptor = os.open(path, os.O_RDWR)
    try:
        return mmap.mmap(descriptor, chip.FLASH_BYTES)
    finally:
        os.close(descriptor)
