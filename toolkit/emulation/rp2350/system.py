"""All blocks of the chip, made and mapped for one boot."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass, field

from toolkit.emulation.rp2350 import chip, clocks
from toolkit.emulation.rp2350.bootrom import HEADER_BYTES, BootRam, BootRom, Reboot, RomHeader
from toolkit.emulation.rp2350.coprocessors import Coprocessors
from toolkit.emulation.rp2350.engine import Engine
from toolkit.emulation.rp2350.hook import Hook, Stop
from toolkit.emulation.rp2350.interrupts import Interrupts
from toolkit.emulation.rp2350.ppb import CycleCounter, PlainBus, SystemControl
from toolkit.emulation.rp2350.redundancy import RedundancyCoprocessor
from toolkit.emulation.rp2350.registers import Block, FirmwareError, StoredBlock
from toolkit.emulation.rp2350.sio import GpioCoprocessor, Sio
from toolkit.emulation.rp2350.timeline import Timeline
from toolkit.emulation.rp2350.timers import Timer
from toolkit.emulation.rp2350.uart import Uart
from toolkit.emulation.rp2350.usb_device import UsbDevice
from toolkit.emulation.rp2350.watchdog import SCRATCHES, Watchdog

_SALT = 0x9E37_79B9_7F4A_7C15  # of the redundancy coprocessor
_CHIP_ID = 0x2000_4927  # RP2350, A2
_PLATFORM_ASIC = 2


@dataclass(slots=True)
class Memories:
    """What a reset does not clear.

    Attributes:
        flash, sram: their bytes.
        scratch: the watchdog's scratch registers.
    """

    flash: mmap.mmap
    sram: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, chip.SRAM_BYTES))
    scratch: list[int] = field(default_factory=lambda: [0] * SCRATCHES)


class System:
    """The chip's blocks, mapped into an engine.

    Args:
        engine, hook: the CPU and what runs at its blocks.
        memories: what outlives a reset.
        boot: why the chip was reset.
        transmit: takes bytes that UART0 sends.
        attention: called when an exception may have become deliverable.
        reset: called when the firmware resets the chip.
    """

    def __init__(
        self,
        engine: Engine,
        hook: Hook,
        memories: Memories,
        boot: Reboot,
        *,
        transmit: Callable[[int], None],
        attention: Callable[[], None],
        reset: Callable[[Reboot], None],
    ) -> None:
        self._engine = engine
        self._hook = hook
        self.raised: Exception | None = None
        self.timeline = Timeline(hook)
        self.interrupts = Interrupts(attention)
        line = self.interrupts.line
        self.sio = Sio(self.timeline)
        self.uart = Uart("UART0", self.timeline, line(chip.UART0_IRQ), transmit)
        self._uart1 = Uart("UART1", self.timeline, line(chip.UART1_IRQ), lambda _: None)
        self.usb = UsbDevice(line(chip.USB_IRQ), lambda: self.timeline.now_us // 1000)
        self.watchdog = Watchdog(
            self.timeline, memories.scratch, boot.reason, lambda reason: reset(Reboot(0, reason=reason))
        )
        self.counter = CycleCounter(hook)
        self.control = SystemControl(self.timeline, self.interrupts, self.counter, lambda: reset(Reboot(0)))
        self.coprocessors = Coprocessors(engine, GpioCoprocessor(self.sio), RedundancyCoprocessor(_SALT))
        self._map_memories(memories)
        for name, block in self._blocks().items():
            where = chip.area(name)
            self._map(where.base, where.size, block)
        self._map(chip.ROM_BASE, HEADER_BYTES, RomHeader())
        ppb = chip.area("PPB").base
        parts: dict[int, Block] = {0x0: PlainBus(), 0x1000: self.counter, 0x2000: PlainBus(), 0xE000: self.control}
        for offset, block in {**parts, 0x8_0000: PlainBus()}.items():
            self._map(ppb + offset, 0x1000, block)

    def _map_memories(self, memories: Memories) -> None:
        rom = mmap.mmap(-1, chip.ROM_BYTES - HEADER_BYTES)
        rom[:] = BootRom.contents()
        self._engine.map_memory(HEADER_BYTES, rom, writable=False)
        for base in (chip.XIP_BASE, chip.XIP_NOCACHE_BASE, chip.XIP_UNTRANSLATED_BASE):
            self._engine.map_memory(base, memories.flash, writable=False)
        self._engine.map_memory(chip.SRAM_BASE, memories.sram, writable=True)
        self._engine.map_device(chip.XIP_MAINTENANCE_BASE, chip.XIP_MAINTENANCE_BYTES, lambda *_: 0, lambda *_: None)

    def _blocks(self) -> dict[str, Block]:
        line = self.interrupts.line
        timers = [
            Timer(f"TIMER{number}", self.timeline, [line(first + alarm) for alarm in range(4)])
            for number, first in enumerate((chip.TIMER0_IRQ, chip.TIMER1_IRQ))
        ]
        pads = StoredBlock(dict.fromkeys(range(4, 200, 4), 278))
        pins = StoredBlock(dict.fromkeys(range(4, 384, 8), 31))
        resets = clocks.Resets(
            {
                clocks.RESET_IO_BANK0: pins.reset,
                clocks.RESET_PADS_BANK0: pads.reset,
                clocks.RESET_TIMER0: timers[0].reset,
                clocks.RESET_TIMER1: timers[1].reset,
                clocks.RESET_UART0: self.uart.reset,
                clocks.RESET_UART1: self._uart1.reset,
                clocks.RESET_USBCTRL: self.usb.reset,
            }
        )
        return {
            "SYSINFO": StoredBlock({0x0: _CHIP_ID, 0x8: _PLATFORM_ASIC}),
            "SYSCFG": StoredBlock(),
            "CLOCKS": clocks.Clocks(),
            "PSM": clocks.power_states(),
            "RESETS": resets,
            "IO_BANK0": pins,
            "IO_QSPI": StoredBlock(),
            "PADS_BANK0": pads,
            "PADS_QSPI": StoredBlock(),
            "XOSC": clocks.crystal(),
            "PLL_SYS": clocks.pll(),
            "PLL_USB": clocks.pll(),
            "ACCESSCTRL": StoredBlock(dict.fromkeys(range(20, 232, 4), 255)),
            "BUSCTRL": StoredBlock(),
            "UART0": self.uart,
            "UART1": self._uart1,
            "TIMER0": timers[0],
            "TIMER1": timers[1],
            "XIP_CTRL": StoredBlock({0x0: 0x83}, {0x8: 2}),
            "QMI": clocks.DirectMode(),
            "WATCHDOG": self.watchdog,
            "BOOTRAM": BootRam(),
            "ROSC": clocks.RingOscillator(),
            "POWMAN": StoredBlock(),
            "TICKS": clocks.Ticks(),
            "TBMAN": StoredBlock({0x0: 1}),
            "USB DPRAM": self.usb.dpram,
            "USB": self.usb,
            "SIO": self.sio,
        }

    def _map(self, base: int, size: int, block: Block) -> None:
        """Map a block; what it raises is kept for after the CPU stopped."""
        registers = block.registers
        load, store = registers.read, registers.write

        def read(offset: int, length: int) -> int:
            try:
                return load(offset, length)
            except Exception as error:
                self._keep(error, base + offset)
                return 0

        def write(offset: int, length: int, value: int) -> None:
            try:
                store(offset, length, value)
            except Exception as error:
                self._keep(error, base + offset)

        registers.read, registers.write = read, write
        self._hook.map(self._engine, base, size, registers)

    def _keep(self, error: Exception, address: int) -> None:
        if isinstance(error, FirmwareError) and error.address is None:
            error.address = address
        self.raised = self.raised or error
        self._hook.stop = int(Stop.FAULT)
