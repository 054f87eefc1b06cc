"""The private peripheral bus: NVIC, SysTick, system control block, cycle counter (datasheet, section 3.7.5)."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.hook import Hook, How
from toolkit.emulation.rp2350.interrupts import PENDSV, SYSTICK, Interrupts
from toolkit.emulation.rp2350.registers import Alias, Block, combined
from toolkit.emulation.rp2350.timeline import Timeline

_DWT_CTRL = 0x000
_DWT_CYCCNT = 0x004
_DWT_CTRL_INITIAL = 0x4000_0000  # four comparators
_CYCCNTENA = 1
_TRCENA = 1 << 24

_SYST_CSR = 0x010
_SYST_RVR = 0x014
_SYST_CVR = 0x018
_SYST_CALIB = 0x01C
_CSR_ENABLE = 1
_CSR_TICKINT = 2
_CSR_CPU_CLOCK = 4
_CSR_COUNTED = 1 << 16

_NVIC_ISER = 0x100
_NVIC_ICER = 0x180
_NVIC_ISPR = 0x200
_NVIC_ICPR = 0x280
_NVIC_IABR = 0x300
_NVIC_IPR = 0x400
_NVIC_IPR_END = 0x440
_CPUID = 0xD00
_ICSR = 0xD04
_VTOR = 0xD08
_AIRCR = 0xD0C
_SCR = 0xD10
_SHPR1 = 0xD18
_SHPR_END = 0xD24
_CPACR = 0xD88
_DEMCR = 0xDFC
_STIR = 0xF00

_AIRCR_KEY = 0x05FA
_AIRCR_RESET = 1 << 2
SLEEP_ON_EXIT = 1 << 1

_INITIAL = {
    0x004: 1,  # ICTR
    _CPUID: 0x411F_D210,
    0xD14: 0x201,  # CCR
    0xD40: 0x30,  # ID_PFR0
    0xD44: 0x210,  # ID_PFR1
    0xD48: 0x20_0000,  # ID_DFR0
    0xD50: 0x10_1F40,  # ID_MMFR0
    0xD58: 0x100_0000,  # ID_MMFR2
    0xD60: 0x110_1110,  # ID_ISAR0
    0xD64: 0x221_2000,  # ID_ISAR1
    0xD68: 0x2023_2232,  # ID_ISAR2
    0xD6C: 0x111_1131,  # ID_ISAR3
    0xD70: 0x131_0132,  # ID_ISAR4
    _CPACR: 0x0000_C000,  # the boot ROM uses the redundancy coprocessor
    0xD90: 0x800,  # MPU_TYPE: eight regions
    0xDD4: 0x8,  # SAU_TYPE
    0xF34: 0xC000_0004,  # FPCCR
    0xF40: 0x1011_0021,  # MVFR0
    0xF44: 0x1100_0011,  # MVFR1
    0xF48: 0x40,  # MVFR2
    _SYST_CALIB: 0xC000_0000,
}


class CycleCounter(Block):
    """DWT (0xE0001000): CYCCNT counts executed instructions. DEMCR.TRCENA and DWT_CTRL.CYCCNTENA let it run."""

    def __init__(self, hook: Hook) -> None:
        super().__init__()
        self._hook = hook
        self._traced = False
        self.set(_DWT_CTRL, _DWT_CTRL_INITIAL)
        self.stored(range(0, 0x1000, 4))

    def trace(self, enabled: bool) -> None:
        """DEMCR.TRCENA."""
        if enabled != self._traced:
            count = self._count
            self._traced = enabled
            self._restart(count)

    @property
    def _runs(self) -> bool:
        return self._traced and bool(self.value(_DWT_CTRL) & _CYCCNTENA)

    @property
    def _count(self) -> int:
        stored = self.value(_DWT_CYCCNT)
        return self._hook.count - stored & 0xFFFF_FFFF if self._runs else stored

    def _restart(self, count: int) -> None:
        """While it runs, what is stored is the count of instructions at which it was zero."""
        self.set(_DWT_CYCCNT, self._hook.count - count if self._runs else count)
        self.stored((_DWT_CYCCNT,), How.COUNT if self._runs else How.VALUE)

    def write(self, offset: int, value: int, alias: Alias) -> None:
        if offset == _DWT_CYCCNT:
            self._restart(value)
        elif offset == _DWT_CTRL:
            count = self._count
            self.set(_DWT_CTRL, _DWT_CTRL_INITIAL | value & 0x0FFF_FFFF)
            self._restart(count)
        else:
            self.set(offset, value)


class SysTick:
    """The 24-bit down counter (Armv8-M, B11)."""

    def __init__(self, timeline: Timeline, interrupts: Interrupts) -> None:
        self._timeline = timeline
        self._interrupts = interrupts
        self.control = 0
        self.reload = 0
        self._began = 0
        self._counted = False

    @property
    def _tick(self) -> int:
        return 1 if self.control & _CSR_CPU_CLOCK else chip.CYCLES_PER_US

    def _period(self) -> int:
        return (self.reload + 1) * self._tick

    def current(self) -> int:
        """CVR."""
        if not self.control & _CSR_ENABLE or not self.reload:
            return 0
        passed = (self._timeline.now - self._began) // self._tick
        return (self.reload - passed) % (self.reload + 1)

    def status(self) -> int:
        """CSR; reading clears COUNTFLAG."""
        wrapped = self._timeline.now - self._began >= self._period()
        if self.control & _CSR_ENABLE and self.reload and wrapped:
            self._began += (self._timeline.now - self._began) // self._period() * self._period()
            self._counted = True
        counted, self._counted = self._counted, False
        return self.control | (_CSR_COUNTED if counted else 0)

    def configure(self, control: int) -> None:
        started = control & _CSR_ENABLE and not self.control & _CSR_ENABLE
        self.control = control & 7
        if started:
            self.restart()
        else:
            self._plan()

    def restart(self) -> None:
        """Writing CVR starts a period."""
        self._counted = False
        self._began = self._timeline.now
        self._plan()

    def _plan(self) -> None:
        if self.control & _CSR_ENABLE and self.control & _CSR_TICKINT and self.reload:
            periods = (self._timeline.now - self._began) // self._period() + 1
            self._timeline.at("SysTick", self._began + periods * self._period(), self._expire)
        else:
            self._timeline.cancel("SysTick")

    def _expire(self) -> None:
        self._counted = True
        self._interrupts.set_pending(SYSTICK)
        self._plan()


class SystemControl(Block):
    """The system control space (0xE000E000): single bytes count here, and there are no aliases."""

    def __init__(
        self, timeline: Timeline, interrupts: Interrupts, counter: CycleCounter, reset: Callable[[], None]
    ) -> None:
        super().__init__()
        self._interrupts = interrupts
        self._counter = counter
        self._reset = reset
        self._systick = SysTick(timeline, interrupts)
        for offset, value in _INITIAL.items():
            self.set(offset, value)

    @property
    def vector_table(self) -> int:
        return self.value(_VTOR) & ~0x7F

    @vector_table.setter
    def vector_table(self, address: int) -> None:
        self.set(_VTOR, address)

    @property
    def coprocessors(self) -> int:
        """CPACR."""
        return self.value(_CPACR)

    @property
    def sleep_on_exit(self) -> bool:
        return bool(self.value(_SCR) & SLEEP_ON_EXIT)

    def store(self, offset: int, size: int, value: int) -> None:
        offset &= 0xFFF
        if size == 4:
            self.write(offset & 0xFFC, value, Alias.PLAIN)
            return
        shift = 8 * (offset & 3)
        mask = (1 << 8 * size) - 1 << shift
        word = offset & 0xFFC
        old = self.read(word) if _NVIC_IPR <= word < _NVIC_IPR_END or _SHPR1 <= word < _SHPR_END else 0
        self.write(word, old & ~mask | value << shift & mask, Alias.PLAIN)

    def read(self, offset: int) -> int:
        interrupts = self._interrupts
        number = (offset & 0x7F) // 4  # of the word in a set of NVIC registers
        if offset == _SYST_CSR:
            return self._systick.status()
        if offset == _SYST_RVR:
            return self._systick.reload
        if offset == _SYST_CVR:
            return self._systick.current()
        if _NVIC_ISER <= offset < _NVIC_ISPR:
            return interrupts.enabled >> 32 * number & 0xFFFF_FFFF
        if _NVIC_ISPR <= offset < _NVIC_IABR:
            return interrupts.pending_irqs >> 32 * number & 0xFFFF_FFFF
        if _NVIC_IABR <= offset < _NVIC_IABR + 0x40:
            return interrupts.active_irqs >> 32 * number & 0xFFFF_FFFF
        if _NVIC_IPR <= offset < _NVIC_IPR_END:
            return interrupts.priorities(16 + offset - _NVIC_IPR)
        if _SHPR1 <= offset < _SHPR_END:
            return interrupts.priorities(4 + offset - _SHPR1)
        if offset == _ICSR:
            return interrupts.control_state()
        if offset == _AIRCR:
            return 0xFA05_0000 | self.value(_AIRCR) & 0xFFFF
        return self.value(offset)

    def write(self, offset: int, value: int, alias: Alias) -> None:
        interrupts = self._interrupts
        shift = 32 * ((offset & 0x7F) // 4)
        if offset == _SYST_CSR:
            self._systick.configure(value)
        elif offset == _SYST_RVR:
            self._systick.reload = value & 0xFF_FFFF
        elif offset == _SYST_CVR:
            self._systick.restart()
        elif _NVIC_ISER <= offset < _NVIC_ICER:
            interrupts.enable(value << shift, True)
        elif _NVIC_ICER <= offset < _NVIC_ISPR:
            interrupts.enable(value << shift, False)
        elif _NVIC_ISPR <= offset < _NVIC_ICPR:
            interrupts.pend_irqs(value << shift, True)
        elif _NVIC_ICPR <= offset < _NVIC_IABR:
            interrupts.pend_irqs(value << shift, False)
        elif _NVIC_IPR <= offset < _NVIC_IPR_END:
            interrupts.set_priorities(16 + offset - _NVIC_IPR, value)
        elif _SHPR1 <= offset < _SHPR_END:
            interrupts.set_priorities(4 + offset - _SHPR1, value)
        else:
            self._write_control(offset, value)

    def _write_control(self, offset: int, value: int) -> None:
        if offset == _ICSR:
            for bit, exception, pending in (
                (28, PENDSV, True),
                (27, PENDSV, False),
                (26, SYSTICK, True),
                (25, SYSTICK, False),
            ):
                if value >> bit & 1:
                    self._interrupts.set_pending(exception, pending)
        elif offset == _STIR:
            self._interrupts.pend_irqs(1 << (value & 0x1FF), True)
        elif offset == _AIRCR:
            if value >> 16 == _AIRCR_KEY:
                self.set(_AIRCR, value & 0x3F00)
                if value & _AIRCR_RESET:
                    self._reset()
        elif offset not in (_CPUID, _SYST_CALIB):
            self.set(offset, value)
            if offset == _DEMCR:
                self._counter.trace(bool(value & _TRCENA))


class PlainBus(Block):
    """The rest of the bus (ITM, FPB, EPPB): reads back what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.stored(range(0, 0x1000, 4))

    def write(self, offset: int, value: int, alias: Alias) -> None:
        self.set(offset, combined(self.value(offset), value, Alias.PLAIN))
