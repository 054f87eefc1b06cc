"""Coprocessor instructions: Unicorn stops at each, here it is decoded and carried out (Armv8-M, C2.2.9)."""

from __future__ import annotations

from toolkit.emulation.rp2350.double import DoubleCoprocessor
from toolkit.emulation.rp2350.engine import PC, Engine
from toolkit.emulation.rp2350.redundancy import RedundancyCoprocessor
from toolkit.emulation.rp2350.registers import FirmwareError
from toolkit.emulation.rp2350.sio import GpioCoprocessor

GPIO, DOUBLE, REDUNDANCY = 0, 4, 7
_FLAGS = 15  # as Rt of MRC: the result goes to the flags


class Coprocessors:
    """The coprocessors of core 0: p0, p4 and p7."""

    def __init__(self, engine: Engine, gpio: GpioCoprocessor, redundancy: RedundancyCoprocessor) -> None:
        self._engine = engine
        self._gpio = gpio
        self._double = DoubleCoprocessor()
        self._redundancy = redundancy

    def execute(self, first: int, second: int, enabled: int) -> None:
        """Carry out one instruction; the program counter and IT state are the caller's.

        Args:
            first, second: its halfwords.
            enabled: CPACR.

        Raises:
            FirmwareError: there is no such instruction, or its coprocessor is not enabled.
        """
        number = second >> 8 & 0xF
        if number not in (GPIO, DOUBLE, REDUNDANCY):
            raise FirmwareError(f"an instruction for coprocessor {number}, which the RP2350 does not have")
        if enabled >> 2 * number & 3 == 0:
            raise FirmwareError(f"coprocessor {number} is used before CPACR enables it")
        if first & 0xEFE0 == 0xEC40:
            done = self._transfer_pair(number, first, second)
        elif first & 0xEF00 == 0xEE00 and second & 0x10:
            done = self._transfer(number, first, second)
        elif first & 0xEF00 == 0xEE00:
            done = self._operate(number, first, second)
        else:
            done = False
        if not done:
            raise FirmwareError(f"an instruction that coprocessor {number} does not have: {first:04x} {second:04x}")

    def _transfer_pair(self, number: int, first: int, second: int) -> bool:
        """MCRR and MRRC."""
        rt, rt2, opc1, crm = second >> 12, first & 0xF, second >> 4 & 0xF, second & 0xF
        peek = bool(first & 0x1000)
        if first & 0x10:
            result = None
            if number == DOUBLE:
                result = self._double.read_pair(opc1, crm, peek=peek)
            elif number == GPIO:
                result = self._gpio.read_both(opc1, crm)
            if result is None:
                return False
            self._engine.write(rt, result)
            self._engine.write(rt2, result >> 32)
            return True
        low, high = self._engine.read(rt), self._engine.read(rt2)
        if number == DOUBLE:
            return self._double.write(opc1, crm, low, high)
        if number == GPIO:
            return self._gpio.write_both(opc1, crm, low, high)
        self._redundancy.write_both(opc1, low, high)
        return True

    def _transfer(self, number: int, first: int, second: int) -> bool:
        """MCR and MRC."""
        opc1, crn, rt = first >> 5 & 7, first & 0xF, second >> 12
        opc2, crm = second >> 5 & 7, second & 0xF
        if not first & 0x10:
            value = self._engine.read(rt)
            if number == REDUNDANCY:
                self._redundancy.write(opc1, crn, crm, value)
                return True
            return number == GPIO and self._gpio.write(opc1, crm, value)
        result: int | None
        if number == DOUBLE:
            result = self._double.read(crm, opc2, peek=bool(first & 0x1000))
        elif number == GPIO:
            result = self._gpio.read(opc1, crm)
        else:
            result = self._redundancy.read(opc1, crn, crm, flags=rt == _FLAGS)
        if result is None:
            return False
        if rt == _FLAGS:
            self._engine.set_flags(result)
        else:
            self._engine.write(rt, result)
        return True

    def _operate(self, number: int, first: int, second: int) -> bool:
        """CDP."""
        if number == DOUBLE:
            return self._double.operate(first >> 4 & 0xF, second & 0xF, second >> 5 & 7)
        if number == REDUNDANCY:
            self._redundancy.panic()
        return False


def is_coprocessor_instruction(first: int, second: int) -> bool:
    """Whether an instruction is for one of the coprocessors here."""
    transfer = first & 0xEFE0 == 0xEC40 or first & 0xEF00 == 0xEE00
    return transfer and second >> 8 & 0xF in (GPIO, DOUBLE, REDUNDANCY)


def skip_instruction(engine: Engine, length: int) -> None:
    """Go past an instruction that was carried out here, inside an IT block too (ITAdvance, Armv8-M, E2.1.195)."""
    xpsr = engine.xpsr
    state = (xpsr >> 10 & 0x3F) << 2 | xpsr >> 25 & 3
    if state:
        state = 0 if state & 7 == 0 else state & 0xE0 | state << 1 & 0x1F
        engine.xpsr = xpsr & ~0x0600_FC00 | (state >> 2) << 10 | (state & 3) << 25
    engine.jump(engine.read(PC) + length)
