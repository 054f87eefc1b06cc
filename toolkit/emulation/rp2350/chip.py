"""The RP2350 as a table: every block of the address map, and how much of it the virtual board has.

Section numbers are those of the RP2350 datasheet; addresses are from section 2.2, interrupt numbers from section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

ROM_BASE = 0x0000_0000
ROM_BYTES = 0x8000
XIP_BASE = 0x1000_0000
XIP_NOCACHE_BASE = 0x1400_0000
XIP_MAINTENANCE_BASE = 0x1800_0000
XIP_MAINTENANCE_BYTES = 0x0400_0000
XIP_UNTRANSLATED_BASE = 0x1C00_0000
SRAM_BASE = 0x2000_0000
SRAM_BYTES = 520 * 1024

FLASH_BYTES = 4 * 1024 * 1024  # what a Pico 2 carries
FLASH_SECTOR = 4096
FLASH_PAGE = 256

CPU_HZ = 150_000_000
CYCLES_PER_US = CPU_HZ // 1_000_000

TIMER0_IRQ = 0
TIMER1_IRQ = 4
USB_IRQ = 14
UART0_IRQ = 33
UART1_IRQ = 34
IRQS = 52


class Model(Enum):
    """How much of a block there is."""

    WHOLE = "modelled"
    PART = "in part"
    STORED = "registers only"
    NONE = "not modelled"


@dataclass(frozen=True, slots=True)
class Area:
    """One block of the address map.

    Attributes:
        name: the datasheet's name.
        base: address of its first byte.
        size: bytes it occupies, the atomic aliases included (section 2.1.3).
        section: of the datasheet.
        model: how much of it there is.
        note: what there is, or what is missing.
    """

    name: str
    base: int
    size: int
    section: str
    model: Model
    note: str


_APB = 0x4000  # four aliases of 4 KB: plain, XOR, SET, CLR

AREAS: tuple[Area, ...] = (
    Area("ROM", ROM_BASE, ROM_BYTES, "5", Model.PART, "function table; what the SDK calls; no secure boot"),
    Area("XIP flash", XIP_BASE, FLASH_BYTES, "4.4", Model.WHOLE, "4 MB, also uncached; no cache, no wait states"),
    Area("XIP maintenance", XIP_MAINTENANCE_BASE, XIP_MAINTENANCE_BYTES, "4.4.1", Model.PART, "writes have no effect"),
    Area("SRAM", SRAM_BASE, SRAM_BYTES, "4.2", Model.WHOLE, "520 KB, no bank conflicts"),
    Area("SYSINFO", 0x4000_0000, _APB, "12.15.1", Model.WHOLE, "chip id, platform"),
    Area("SYSCFG", 0x4000_8000, _APB, "12.15.2", Model.STORED, ""),
    Area("CLOCKS", 0x4001_0000, _APB, "8.1", Model.PART, "switching; every clock runs; clk_sys counts as 150 MHz"),
    Area("PSM", 0x4001_8000, _APB, "7.4", Model.PART, "everything is powered"),
    Area("RESETS", 0x4002_0000, _APB, "7.5", Model.WHOLE, ""),
    Area("IO_BANK0", 0x4002_8000, _APB, "9.11.1", Model.STORED, "no pin interrupts"),
    Area("IO_QSPI", 0x4003_0000, _APB, "9.11.2", Model.STORED, ""),
    Area("PADS_BANK0", 0x4003_8000, _APB, "9.11.3", Model.STORED, ""),
    Area("PADS_QSPI", 0x4004_0000, _APB, "9.11.4", Model.STORED, ""),
    Area("XOSC", 0x4004_8000, _APB, "8.2", Model.PART, "always stable"),
    Area("PLL_SYS", 0x4005_0000, _APB, "8.6", Model.PART, "always locked"),
    Area("PLL_USB", 0x4005_8000, _APB, "8.6", Model.PART, "always locked"),
    Area("ACCESSCTRL", 0x4006_0000, _APB, "10.6", Model.STORED, "everything is allowed"),
    Area("BUSCTRL", 0x4006_8000, _APB, "2.1.5", Model.STORED, "counters stay at zero"),
    Area("UART0", 0x4007_0000, _APB, "12.1", Model.WHOLE, "at the line's speed; no DMA, no modem lines"),
    Area("UART1", 0x4007_8000, _APB, "12.1", Model.WHOLE, "nothing is connected to it"),
    Area("SPI0", 0x4008_0000, _APB, "12.3", Model.NONE, ""),
    Area("SPI1", 0x4008_8000, _APB, "12.3", Model.NONE, ""),
    Area("I2C0", 0x4009_0000, _APB, "12.2", Model.NONE, ""),
    Area("I2C1", 0x4009_8000, _APB, "12.2", Model.NONE, ""),
    Area("ADC", 0x400A_0000, _APB, "12.4", Model.NONE, ""),
    Area("PWM", 0x400A_8000, _APB, "12.5", Model.NONE, ""),
    Area("TIMER0", 0x400B_0000, _APB, "12.8", Model.WHOLE, "one tick is one microsecond"),
    Area("TIMER1", 0x400B_8000, _APB, "12.8", Model.WHOLE, "one tick is one microsecond"),
    Area("HSTX_CTRL", 0x400C_0000, _APB, "12.11", Model.NONE, ""),
    Area("XIP_CTRL", 0x400C_8000, _APB, "4.4.5", Model.STORED, ""),
    Area("QMI", 0x400D_0000, _APB, "12.14", Model.PART, "registers only; direct mode stops the board"),
    Area("WATCHDOG", 0x400D_8000, _APB, "12.9", Model.WHOLE, ""),
    Area("BOOTRAM", 0x400E_0000, _APB, "4.3", Model.WHOLE, "boot locks are always free"),
    Area("ROSC", 0x400E_8000, _APB, "8.3", Model.PART, "always stable; a repeatable random bit"),
    Area("TRNG", 0x400F_0000, _APB, "12.12", Model.NONE, ""),
    Area("SHA256", 0x400F_8000, _APB, "12.13", Model.NONE, ""),
    Area("POWMAN", 0x4010_0000, _APB, "6.4", Model.STORED, "no timer, no power states"),
    Area("TICKS", 0x4010_8000, _APB, "8.5", Model.PART, "always running"),
    Area("OTP", 0x4012_0000, _APB, "13", Model.NONE, ""),
    Area("OTP_DATA", 0x4013_0000, 0x1_0000, "13", Model.NONE, ""),
    Area("CORESIGHT", 0x4014_0000, 0x1_0000, "3.5", Model.NONE, ""),
    Area("GLITCH_DETECTOR", 0x4015_8000, _APB, "10.9", Model.NONE, ""),
    Area("TBMAN", 0x4016_0000, _APB, "12.15.4", Model.STORED, "says ASIC"),
    Area("DMA", 0x5000_0000, 0x10_0000, "12.6", Model.NONE, ""),
    Area("USB DPRAM", 0x5010_0000, 0x1000, "12.7.3", Model.WHOLE, ""),
    Area("USB", 0x5011_0000, _APB, "12.7", Model.PART, "device mode: control, bulk, interrupt; a host enumerates it"),
    Area("PIO0", 0x5020_0000, _APB, "11", Model.NONE, ""),
    Area("PIO1", 0x5030_0000, _APB, "11", Model.NONE, ""),
    Area("PIO2", 0x5040_0000, _APB, "11", Model.NONE, ""),
    Area("XIP_AUX", 0x5050_0000, _APB, "4.4.5", Model.NONE, ""),
    Area("HSTX_FIFO", 0x5060_0000, _APB, "12.11", Model.NONE, ""),
    Area("CORESIGHT_TRACE", 0x5070_0000, _APB, "3.5", Model.NONE, ""),
    Area("SIO", 0xD000_0000, 0x1000, "3.1", Model.PART, "GPIO, spinlocks, mtime; no core 1, no interpolators, no TMDS"),
    Area("PPB", 0xE000_0000, 0x10_0000, "3.7.5", Model.PART, "NVIC, SysTick, SCB, DWT cycle counter; no MPU, no SAU"),
)

# What the address map does not show.
PARTS: tuple[tuple[str, Model, str], ...] = (
    ("Cortex-M33 core 0", Model.WHOLE, "instructions, exceptions, FPU, stack limits; counted, not timed by cycle"),
    ("Cortex-M33 core 1", Model.NONE, "starting it stops the board"),
    ("Hazard3 cores", Model.NONE, ""),
    ("Double coprocessor (p4)", Model.WHOLE, "`ddiv_fast` and `dsqrt_fast` may differ in the last place"),
    ("GPIO coprocessor (p0)", Model.WHOLE, ""),
    ("Redundancy coprocessor (p7)", Model.WHOLE, "without delays"),
    ("Non-secure state (p5, TrustZone)", Model.NONE, ""),
)


def area_at(address: int) -> Area | None:
    """The block an address belongs to."""
    return next((area for area in AREAS if area.base <= address < area.base + area.size), None)


def area(name: str) -> Area:
    """A block by the datasheet's name; KeyError where there is none of that name."""
    for entry in AREAS:
        if entry.name == name:
            return entry
    raise KeyError(name)


def describe(address: int) -> str:
    """What is at an address, for people: `TIMER0+0x28`, or that nothing is there."""
    found = area_at(address)
    if found is None:
        return f"{address:#010x} (nothing is mapped there)"
    suffix = ", which is not modelled" if found.model is Model.NONE else ""
    return f"{address:#010x} ({found.name}+{address - found.base:#x}{suffix})"
