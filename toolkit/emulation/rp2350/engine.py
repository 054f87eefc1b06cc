"""The CPU: a Cortex-M33 that Unicorn emulates, behind the few calls the rest of the board needs.

Unicorn executes instructions. It knows nothing of the NVIC, of exceptions or of the RP2350's coprocessors: those reach
the handlers given here. It is an optional part of the toolkit and imported when a board is made.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolkit.errors import ToolError

SP, LR, PC = 13, 14, 15
_BlockCall = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_ReadCall = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint, ctypes.c_void_p)
_WriteCall = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint, ctypes.c_uint64, ctypes.c_void_p)
_UNTIL_NEVER = 0xFFFF_FFFE  # no code is there


@dataclass(frozen=True, slots=True)
class Masks:
    """PRIMASK, FAULTMASK and BASEPRI (Armv8-M, B3.21)."""

    primask: int
    faultmask: int
    basepri: int


class CpuError(Exception):
    """The CPU could not execute; the handlers for bad accesses and bad instructions have said more."""


def require_unicorn() -> Any:
    """The unicorn module.

    Raises:
        ToolError: it is not installed.
    """
    try:
        import unicorn
    except ImportError:
        raise ToolError(
            "the virtual Pico 2 needs the package unicorn", hint="Run: pip install 'mcu-deploy[virtual]'"
        ) from None
    return unicorn


class Group:
    """Registers that are read or written together, in one call and in this order.

    Args:
        library, handle: Unicorn's.
        ids: Unicorn's numbers.
    """

    def __init__(self, library: Any, handle: Any, ids: tuple[int, ...]) -> None:
        self._library = library
        self._handle = handle
        self._count = len(ids)
        self._ids = (ctypes.c_int * len(ids))(*ids)
        self._values = (ctypes.c_uint32 * len(ids))()
        start, size = ctypes.addressof(self._values), ctypes.sizeof(ctypes.c_uint32)
        self._where = (ctypes.c_void_p * len(ids))(*(start + size * number for number in range(len(ids))))

    def read(self) -> list[int]:
        self._library.uc_reg_read_batch(self._handle, self._ids, self._where, self._count)
        return list(self._values)

    def write(self, *values: int) -> None:
        self._values[:] = list(values)
        self._library.uc_reg_write_batch(self._handle, self._ids, self._where, self._count)


class Engine:
    """One emulated Cortex-M33."""

    def __init__(self) -> None:
        unicorn = require_unicorn()
        from unicorn import arm_const, unicorn_const
        from unicorn.unicorn_py3.unicorn import uclib

        self._arm: Any = arm_const
        self._const: Any = unicorn_const
        self._error: Any = unicorn.UcError
        self._uc: Any = unicorn.Uc(
            unicorn_const.UC_ARCH_ARM, unicorn_const.UC_MODE_THUMB | unicorn_const.UC_MODE_MCLASS
        )
        self._uc.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_M33)
        names = (*(f"R{number}" for number in range(13)), "SP", "LR", "PC")
        self._core = tuple(getattr(arm_const, f"UC_ARM_REG_{name}") for name in names)
        self._singles = tuple(getattr(arm_const, f"UC_ARM_REG_S{number}") for number in range(16))
        self._doubles = tuple(getattr(arm_const, f"UC_ARM_REG_D{number}") for number in range(16))
        self._memory: list[tuple[int, int, Any, bool]] = []
        self._kept: list[Any] = []
        self.library: Any = uclib
        self.handle: Any = self._uc._uch
        self.block_hook_kind = int(unicorn_const.UC_HOOK_BLOCK)
        self.code_hook_kind = int(unicorn_const.UC_HOOK_CODE)
        # Registers go past unicorn's own wrappers, which take several times as long.
        self._cell = ctypes.c_uint32()
        self._where = ctypes.byref(self._cell)
        self._state = self.group("pc", "xpsr")
        self._masks = self.group("primask", "faultmask", "basepri")
        self._floats = self.group(*(f"s{number}" for number in range(16)), "fpscr")

    def group(self, *names: str) -> Group:
        """Registers by name, to be read or written together: `r0`, `sp`, `xpsr`, `s3` …"""
        ids = tuple(int(getattr(self._arm, f"UC_ARM_REG_{name.upper()}")) for name in names)
        return Group(self.library, self.handle, ids)

    def _get(self, register: int) -> int:
        self.library.uc_reg_read(self.handle, register, self._where)
        return self._cell.value

    def _set(self, register: int, value: int) -> None:
        self._cell.value = value & 0xFFFF_FFFF
        self.library.uc_reg_write(self.handle, register, self._where)

    # --- memory ------------------------------------------------------------------------------------------------------

    def map_memory(self, base: int, buffer: Any, *, writable: bool) -> None:
        """Map a writable Python buffer; code can run from it."""
        whole = (ctypes.c_char * len(buffer)).from_buffer(buffer)
        self._kept.append(whole)
        self._memory.append((base, len(buffer), buffer, writable))
        rights = self._const.UC_PROT_ALL if writable else self._const.UC_PROT_READ | self._const.UC_PROT_EXEC
        self._uc.mem_map_ptr(base, len(buffer), rights, ctypes.addressof(whole))

    def map_device(
        self, base: int, size: int, read: Callable[[int, int], int], write: Callable[[int, int, int], None]
    ) -> None:
        """Map registers: `read(offset, size)`, `write(offset, size, value)`. Neither may raise."""
        self.map_native_device(
            base,
            size,
            _ReadCall(lambda _uc, offset, length, _data: read(offset, length)),
            _WriteCall(lambda _uc, offset, length, value, _data: write(offset, length, value)),
            None,
        )

    def map_native_device(self, base: int, size: int, read: Any, write: Any, data: int | None) -> None:
        """As `map_device`, with C functions (Unicorn's `uc_mmio_map`) and what they are given."""
        self._kept += (read, write)
        status = self.library.uc_mmio_map(
            self.handle,
            ctypes.c_uint64(base),
            ctypes.c_size_t(size),
            ctypes.cast(read, ctypes.c_void_p),
            ctypes.c_void_p(data),
            ctypes.cast(write, ctypes.c_void_p),
            ctypes.c_void_p(data),
        )
        if status:
            raise self._error(status)

    def memory(self, address: int, size: int) -> bytes | None:
        """Bytes of memory; None where there is none (registers are not memory)."""
        for base, length, buffer, _ in self._memory:
            offset = address - base
            if offset >= 0 and offset + size <= length:
                return bytes(buffer[offset : offset + size])
        return None

    def set_memory(self, address: int, data: bytes) -> bool:
        """Write memory that holds no code; False where there is none."""
        for base, length, buffer, writable in self._memory:
            offset = address - base
            if writable and offset >= 0 and offset + len(data) <= length:
                buffer[offset : offset + len(data)] = data
                return True
        return False

    def forget_code(self, address: int | None = None) -> None:
        """Translate again what is executed next: all code, or the block at an address."""
        if address is None:
            self._uc.ctl_flush_tb()
        else:
            self._uc.ctl_remove_cache(address, address + 2)

    # --- registers ---------------------------------------------------------------------------------------------------

    def read(self, number: int) -> int:
        """r0..r15 by number."""
        return self._get(self._core[number])

    def write(self, number: int, value: int) -> None:
        """Write r0..r14; for the program counter there is `jump`."""
        self._set(self._core[number], value)

    def jump(self, address: int) -> None:
        """Go on at an address, in Thumb state. Not to be called while the CPU executes."""
        self._set(self._core[PC], address | 1)

    def flags(self) -> int:
        """N, Z, C and V in bits 31..28."""
        return self._get(self._arm.UC_ARM_REG_APSR_NZCV)

    def set_flags(self, value: int) -> None:
        self._set(self._arm.UC_ARM_REG_APSR_NZCV, value & 0xF000_0000)

    @property
    def xpsr(self) -> int:
        return self._get(self._arm.UC_ARM_REG_XPSR)

    @xpsr.setter
    def xpsr(self, value: int) -> None:
        """Writing another exception number switches the stack as the hardware does."""
        self._set(self._arm.UC_ARM_REG_XPSR, value)

    @property
    def control(self) -> int:
        return self._get(self._arm.UC_ARM_REG_CONTROL)

    @control.setter
    def control(self, value: int) -> None:
        self._set(self._arm.UC_ARM_REG_CONTROL, value)

    def masks(self) -> Masks:
        primask, faultmask, basepri = self._masks.read()
        return Masks(primask, faultmask, basepri & 0xFF)

    def clear_faultmask(self) -> None:
        self._set(self._arm.UC_ARM_REG_FAULTMASK, 0)

    def float_state(self) -> list[int]:
        """S0..S15 and FPSCR."""
        return self._floats.read()

    def set_float_state(self, values: list[int]) -> None:
        self._floats.write(*values)

    def hook_ids(self) -> tuple[int, ...]:
        """Unicorn's numbers of r0..r14, PRIMASK, BASEPRI, FAULTMASK and the flags, in hook.c's order."""
        arm = self._arm
        masks = (arm.UC_ARM_REG_PRIMASK, arm.UC_ARM_REG_BASEPRI, arm.UC_ARM_REG_FAULTMASK, arm.UC_ARM_REG_APSR_NZCV)
        return (*self._core[:15], *masks)

    def double_ids(self) -> tuple[int, ...]:
        """Unicorn's numbers of D0..D15."""
        return self._doubles

    def everything(self) -> tuple[list[int], list[int]]:
        """r0..r14, masks and flags in the order of `hook_ids`, and D0..D15."""
        wide = ctypes.c_uint64()
        doubles = []
        for register in self._doubles:
            self.library.uc_reg_read(self.handle, register, ctypes.byref(wide))
            doubles.append(wide.value)
        return [self._get(register) for register in self.hook_ids()], doubles

    # --- execution ---------------------------------------------------------------------------------------------------

    def run(self, until: int = _UNTIL_NEVER) -> None:
        """Execute from where the program counter is, until something stops it or `until` is reached.

        Raises:
            CpuError: it cannot go on.
        """
        pc, xpsr = self._state.read()
        status = self.library.uc_emu_start(self.handle, pc | xpsr >> 24 & 1, until, 0, 0)
        raised, self._uc._hook_exception = self._uc._hook_exception, None
        if raised is not None:
            raise raised
        if status:
            raise CpuError(str(self._error(status)))

    def stop(self) -> None:
        """Stop the CPU, from within a hook. At an access to a device the instruction is executed again later."""
        self.library.uc_emu_stop(self.handle)

    def on_block(self, call: Callable[[int, int], None]) -> None:
        """Call at each basic block with its address and size. It may not raise."""
        self.add_native_hook(
            self._const.UC_HOOK_BLOCK, _BlockCall(lambda _uc, address, size, _data: call(address, size)), None
        )

    def on_instruction(self, address: int, call: Callable[[], None]) -> None:
        """Call before one instruction. It may not raise."""
        self.add_native_hook(self._const.UC_HOOK_CODE, _BlockCall(lambda *_: call()), None, address)

    def add_native_hook(self, kind: int, call: Any, data: int | None, address: int | None = None) -> None:
        """Hook a C function (Unicorn's `uc_hook_add`): everywhere, or at one address."""
        self._kept.append(call)
        handle = ctypes.c_size_t()
        begin, end = (1, 0) if address is None else (address, address)
        status = self.library.uc_hook_add(
            self.handle,
            ctypes.byref(handle),
            ctypes.c_int(kind),
            ctypes.cast(call, ctypes.c_void_p),
            ctypes.c_void_p(data),
            ctypes.c_uint64(begin),
            ctypes.c_uint64(end),
        )
        if status:
            raise self._error(status)

    def on_exception(self, call: Callable[[int], None]) -> None:
        """Call with QEMU's number of an exception: see exceptions.py."""
        self._uc.hook_add(self._const.UC_HOOK_INTR, lambda _uc, number, _data: call(number))

    def on_bad_instruction(self, call: Callable[[], bool]) -> None:
        """Call where an instruction is undefined; and at hints, which Unicorn does not execute."""
        self._uc.hook_add(self._const.UC_HOOK_INSN_INVALID, lambda _uc, _data: call())

    def on_bad_access(self, call: Callable[[int, int, int, int], bool]) -> None:
        """Call with kind (Unicorn's), address, size and value where there is no memory, or it is read-only."""
        self._uc.hook_add(
            self._const.UC_HOOK_MEM_INVALID,
            lambda _uc, kind, address, size, value, _data: call(kind, address, size, value),
        )

    def access_name(self, kind: int) -> str:
        """A kind of bad access, for people."""
        const = self._const
        return {
            const.UC_MEM_READ_UNMAPPED: "read of",
            const.UC_MEM_WRITE_UNMAPPED: "write to",
            const.UC_MEM_FETCH_UNMAPPED: "execution at",
            const.UC_MEM_WRITE_PROT: "write to read-only",
            const.UC_MEM_READ_PROT: "read of",
            const.UC_MEM_FETCH_PROT: "execution at",
        }.get(kind, "access to")
