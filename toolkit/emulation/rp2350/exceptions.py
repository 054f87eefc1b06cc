"""Exception entry and return (Armv8-M, B3.18 to B3.24): the stack frames that the hardware makes."""

from __future__ import annotations

import struct

from toolkit.emulation.rp2350.engine import SP, Engine
from toolkit.emulation.rp2350.interrupts import Interrupts
from toolkit.emulation.rp2350.registers import FirmwareError

# QEMU's numbers of the exceptions that Unicorn hands over.
QEMU_SVC = 2
QEMU_PREFETCH_ABORT = 3
QEMU_DATA_ABORT = 4
QEMU_BREAKPOINT = 7
QEMU_EXCEPTION_EXIT = 8
QEMU_NO_COPROCESSOR = 17
QEMU_STACK_LIMIT = 19

_BASIC_BYTES = 0x20
_EXTENDED_BYTES = 0x68
_REALIGNED = 1 << 9  # in the stacked xPSR: the stack pointer was moved to a multiple of 8

XPSR_IT = 0x0600_FC00  # the state of an IT block

_CONTROL_SPSEL = 1 << 1
_CONTROL_FPCA = 1 << 2

_RETURN = 0xFFFF_FFE1  # EXC_RETURN, Secure, to a handler, with a floating-point frame
_RETURN_NO_FLOAT = 1 << 4
_RETURN_THREAD = 1 << 3
_RETURN_PSP = 1 << 2

_FRAME = ("r0", "r1", "r2", "r3", "r12", "lr", "pc", "xpsr")
_XPSR_KEPT = 0xF80F_0000  # APSR
_THUMB = 1 << 24


class Exceptions:
    """Takes exceptions and returns from them."""

    def __init__(self, engine: Engine, interrupts: Interrupts) -> None:
        self._engine = engine
        self._interrupts = interrupts
        self._caller = engine.group(*_FRAME, "sp", "control")
        self._entry = engine.group("sp", "xpsr")
        self._handler = engine.group("control", "lr", "pc")
        self._restored = engine.group(*_FRAME[:6], "control", "sp", "xpsr", "pc")

    def masked(self, exception: int) -> bool:
        """Whether PRIMASK, FAULTMASK or BASEPRI keep an exception from being taken."""
        masks = self._engine.masks()
        if masks.primask & 1 or masks.faultmask & 1:
            return True
        return bool(masks.basepri) and self._interrupts.priority(exception) >= masks.basepri

    def enter(self, exception: int, vector_table: int) -> None:
        """Stack the caller's state and go to the handler.

        Raises:
            FirmwareError: the stack or the vector table is not in memory.
        """
        *frame, sp, control = self._caller.read()
        xpsr = frame[7]
        with_float = bool(control & _CONTROL_FPCA)
        top = (sp & ~7) - (_EXTENDED_BYTES if with_float else _BASIC_BYTES)
        frame[6] &= ~1
        frame[7] = xpsr & ~_REALIGNED | (_REALIGNED if sp & 4 else 0)
        if with_float:
            frame += [*self._engine.float_state(), 0]
        if not self._engine.set_memory(top, struct.pack(f"<{len(frame)}I", *frame)):
            raise FirmwareError("the stack is not in memory when an exception is taken", top)
        vector = self._engine.memory(vector_table + 4 * exception, 4)
        if vector is None:
            raise FirmwareError("the vector table is not in memory", vector_table)
        code = _RETURN | (0 if with_float else _RETURN_NO_FLOAT)
        if not xpsr & 0x1FF:
            code |= _RETURN_THREAD | (_RETURN_PSP if control & _CONTROL_SPSEL else 0)
        # The new exception number switches to the main stack, so the caller's stack pointer is written before.
        self._entry.write(top, xpsr & _XPSR_KEPT | _THUMB | exception)
        self._handler.write(control & ~_CONTROL_FPCA, code, int.from_bytes(vector, "little") | 1)
        self._interrupts.enter(exception)

    def leave(self, code: int) -> None:
        """Return as EXC_RETURN says.

        Raises:
            FirmwareError: no exception is active, or the stack is not in memory.
        """
        engine = self._engine
        number = engine.xpsr & 0x1FF
        if not number:
            raise FirmwareError(f"a return from an exception outside of one, to {code:#010x}")
        self._interrupts.leave(number)
        engine.clear_faultmask()
        thread = bool(code & _RETURN_THREAD)
        below = 0 if thread else (self._interrupts.active[-1] if self._interrupts.active else 0)
        engine.xpsr = engine.xpsr & ~0x1FF | below
        if thread and bool(engine.control & _CONTROL_SPSEL) != bool(code & _RETURN_PSP):
            engine.control = engine.control ^ _CONTROL_SPSEL
        with_float = not code & _RETURN_NO_FLOAT
        sp, control = engine.read(SP), engine.control
        size = _EXTENDED_BYTES if with_float else _BASIC_BYTES
        data = engine.memory(sp, size)
        if data is None:
            raise FirmwareError("the stack is not in memory when an exception returns", sp)
        frame = struct.unpack(f"<{size // 4}I", data)
        if with_float:
            engine.set_float_state(list(frame[8:25]))
        xpsr = frame[7]
        self._restored.write(
            *frame[:6],
            control | _CONTROL_FPCA if with_float else control & ~_CONTROL_FPCA,
            sp + size + (4 if xpsr & _REALIGNED else 0),
            xpsr & ~_REALIGNED & ~0x1FF | below,
            frame[6] | 1,
        )
