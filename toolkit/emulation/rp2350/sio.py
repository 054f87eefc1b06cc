"""SIO, the processors' own registers (datasheet, section 3.1), and the GPIO coprocessor (section 3.6.1)."""

from __future__ import annotations

from toolkit.emulation.rp2350.registers import Alias, Block, FirmwareError, combined
from toolkit.emulation.rp2350.timeline import Timeline

_CPUID = 0x000
_GPIO_IN = 0x004
_GPIO_HI_IN = 0x008
_GPIO_OUT = 0x010
_GPIO_OE = 0x030
_GPIO_END = 0x050
_FIFO_ST = 0x050
_FIFO_WR = 0x054
_FIFO_RD = 0x058
_SPINLOCK_ST = 0x05C
_INTERP_FIRST = 0x080
_INTERP_END = 0x100
_SPINLOCK0 = 0x100
_SPINLOCK_END = 0x180
_DOORBELL_OUT_SET = 0x180
_DOORBELL_END = 0x190
_MTIME = 0x1B0
_MTIMEH = 0x1B4
_TMDS_FIRST = 0x1C0
_TMDS_END = 0x1E8

_FIFO_READY = 1 << 1
_U32 = 0xFFFF_FFFF


class Sio(Block):
    """SIO of core 0. GPIO inputs read back what the outputs drive; pins that are not driven read as zero."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self._timeline = timeline
        self._locks = 0
        self.stored((_CPUID,))
        self.stored(range(_GPIO_IN, _GPIO_END, 4))

    def read(self, offset: int) -> int:
        if offset == _FIFO_ST:
            return _FIFO_READY
        if offset == _SPINLOCK_ST:
            return self._locks
        if _SPINLOCK0 <= offset < _SPINLOCK_END:
            bit = 1 << (offset - _SPINLOCK0) // 4
            free = not self._locks & bit
            self._locks |= bit
            return bit if free else 0
        if offset in (_MTIME, _MTIMEH):
            now = self._timeline.now_us
            return now & _U32 if offset == _MTIME else now >> 32
        self._refuse_missing(offset)
        return self.value(offset)

    def write(self, offset: int, value: int, alias: Alias) -> None:
        if _GPIO_OUT <= offset < _GPIO_END:
            bank = offset & 4
            first = _GPIO_OUT if offset < _GPIO_OE else _GPIO_OE
            self.change(first == _GPIO_OE, bank // 4, value, _CHANGES[(offset - first) // 8])
        elif _SPINLOCK0 <= offset < _SPINLOCK_END:
            self._locks &= ~(1 << (offset - _SPINLOCK0) // 4)
        elif offset == _FIFO_WR:
            raise FirmwareError("the firmware starts or calls core 1, which is not modelled")
        elif offset > _GPIO_HI_IN:
            self._refuse_missing(offset)
            self.keep(offset, value, Alias.PLAIN)

    @staticmethod
    def _refuse_missing(offset: int) -> None:
        if _INTERP_FIRST <= offset < _INTERP_END:
            raise FirmwareError("the firmware uses SIO's interpolators, which are not modelled")
        if _TMDS_FIRST <= offset < _TMDS_END:
            raise FirmwareError("the firmware uses SIO's TMDS encoder, which is not modelled")

    # --- GPIO --------------------------------------------------------------------------------------------------------

    def pins(self, enables: bool, bank: int) -> int:
        """GPIO_OUT or GPIO_OE of pins 0 to 31 (bank 0) or above."""
        return self.value((_GPIO_OE if enables else _GPIO_OUT) + 4 * bank)

    def inputs(self, bank: int) -> int:
        """GPIO_IN or GPIO_HI_IN."""
        return self.value(_GPIO_IN + 4 * bank)

    def change(self, enables: bool, bank: int, value: int, how: Alias) -> None:
        """Write GPIO_OUT or GPIO_OE of one bank."""
        offset = (_GPIO_OE if enables else _GPIO_OUT) + 4 * bank
        self.set(offset, combined(self.value(offset), value, how))
        self.set(_GPIO_IN + 4 * bank, self.value(_GPIO_OUT + 4 * bank) & self.value(_GPIO_OE + 4 * bank))


_CHANGES = (Alias.PLAIN, Alias.SET, Alias.CLEAR, Alias.XOR)  # the order of the registers
_OPERATIONS = (Alias.PLAIN, Alias.XOR, Alias.SET, Alias.CLEAR)  # the order of opc1


class GpioCoprocessor:
    """Coprocessor 0. In CRm, bits 3..2 say what is accessed (output, enable, input), bit 0 the bank."""

    def __init__(self, sio: Sio) -> None:
        self._sio = sio

    def read(self, opc1: int, crm: int) -> int | None:
        """MRC: one bank. None where there is no such instruction."""
        group, bank = crm >> 2, crm & 1
        if opc1 or group == 3:
            return None
        return self._sio.inputs(bank) if group == 2 else self._sio.pins(group == 1, bank)

    def read_both(self, opc1: int, crm: int) -> int | None:
        """MRRC: both banks."""
        low, high = self.read(opc1, crm), self.read(opc1, crm | 1)
        return None if low is None or high is None or crm & 3 else low | high << 32

    def write(self, opc1: int, crm: int, value: int) -> bool:
        """MCR: a mask of one bank, or a single pin; False where there is no such instruction."""
        enables, bank = crm >> 2 == 1, crm & 1
        if crm >> 2 > 1:
            return False
        if opc1 < 4:
            self._sio.change(enables, bank, value, _OPERATIONS[opc1])
        elif opc1 > 4:
            self._both(enables, 1 << (value & 63), _OPERATIONS[opc1 & 3])
        return opc1 != 4

    def write_both(self, opc1: int, crm: int, low: int, high: int) -> bool:
        """MCRR: masks of both banks, a single pin under a condition, or one bank by number."""
        enables, operation = crm >> 2 == 1, _OPERATIONS[opc1 & 3]
        if crm not in (0, 4) or opc1 > 11:
            return False
        if opc1 < 4:
            self._both(enables, low | high << 32, operation)
        elif opc1 == 4:
            self._both(enables, 1 << (low & 63), Alias.SET if high & 1 else Alias.CLEAR)
        elif opc1 < 8:
            self._both(enables, (high & 1) << (low & 63), operation)
        else:
            self._sio.change(enables, high & 1, low, operation)
        return True

    def _both(self, enables: bool, mask: int, operation: Alias) -> None:
        self._sio.change(enables, 0, mask & _U32, operation)
        self._sio.change(enables, 1, mask >> 32, operation)
