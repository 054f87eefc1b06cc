"""The boot ROM as firmware sees it: a table of functions, each carried out here (datasheet, section 5.4).

Every function is a BKPT in ROM, at which the CPU stops and this module does the function's work. Addresses are this
ROM's own: firmware may only look functions up.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.engine import LR, Engine
from toolkit.emulation.rp2350.registers import Alias, Block, FirmwareError

HEADER_BYTES = 0x1000  # the first page: header only, so that stores through a null pointer have no effect on code
_MAGIC = 0x10
_LOOKUP_POINTER = 0x16
_LOOKUP = 0x1000
_FIRST_FUNCTION = 0x1010
_DATA = 0x2000
_STUB = struct.pack("<HH", 0xBE00, 0x4770)  # BKPT; BX LR

_FLAG_DATA = 0x40
_OK = 0
_ERROR_INVALID_ARG = -5
_ERROR_INVALID_ADDRESS = -10
_ERROR_BUFFER_TOO_SMALL = -13
_ERROR_NOT_FOUND = -17

_INFO_CHIP = 0x01
_INFO_CRITICAL = 0x02
_INFO_CPU = 0x04
_INFO_FLASH = 0x08
_INFO_RANDOM = 0x10
_INFO_NONCE = 0x20
_INFO_BOOT = 0x40

REBOOT_NORMAL = 0
REBOOT_BOOTSEL = 2
REBOOT_PC_SP = 0xD
_REBOOT_NO_RETURN = 0x100
_DEVINFO_4MB = 0x0A00  # CS0_SIZE: 4 KB << 10
_BOOTRAM = 0x400E_0000
_BOOTRAM_DEVINFO = 0x300
_BOOTRAM_PARTITIONS = 0x320

_FUNCTIONS = (
    *("SR", "GS", "RB", "IF", "EX", "FC", "CX", "RE", "RP", "FO", "RA", "XM", "SS", "OA", "GP", "LP", "GB", "GU"),
    *("FA", "AB", "CI", "EB", "RC", "SP", "VB", "SC"),
)


@dataclass(frozen=True, slots=True)
class Reboot:
    """What the chip is to do after a reset.

    Attributes:
        kind: REBOOT_NORMAL, REBOOT_BOOTSEL, REBOOT_PC_SP.
        parameters: as the ROM function got them.
        reason: WATCHDOG_REASON after the reset.
    """

    kind: int
    parameters: tuple[int, int] = (0, 0)
    reason: int = 0


@dataclass(frozen=True, slots=True)
class RomServices:
    """What ROM functions do to the rest of the board.

    Attributes:
        reboot: (what, delay in ms, whether the function does not return).
        erase: (offset, bytes) of flash.
        program: (offset, data) of flash.
        unique_id: the chip's 64-bit id.
        boot: what the last boot was.
    """

    reboot: Callable[[Reboot, int, bool], None]
    erase: Callable[[int, int], None]
    program: Callable[[int, bytes], None]
    unique_id: int
    boot: Reboot


class RomHeader(Block):
    """The first page of the ROM; writes have no effect."""

    def __init__(self) -> None:
        super().__init__()
        header = bytearray(32)
        struct.pack_into("<II", header, 0, chip.SRAM_BASE + chip.SRAM_BYTES, _LOOKUP | 1)
        header[_MAGIC : _MAGIC + 4] = b"Mu\x02\x02"
        struct.pack_into("<H", header, _LOOKUP_POINTER, _LOOKUP | 1)
        for position in range(0, len(header), 4):
            self.set(position, int.from_bytes(header[position : position + 4], "little"))
        self.stored(range(0, 0x1000, 4))

    def write(self, offset: int, value: int, alias: Alias) -> None:
        pass


class BootRam(Block):
    """BOOTRAM: 1 KB of memory, with what the ROM leaves in it, and its boot locks, which are always free."""

    _XIP_SETUP_END = 0x100
    _RETURN_TWICE = 0x4770_4770  # BX LR: setting up execution from flash takes no code here
    _LOCKS = range(0x80C, 0x82C, 4)

    def __init__(self) -> None:
        super().__init__()
        for offset in range(0, self._XIP_SETUP_END, 4):
            self.set(offset, self._RETURN_TWICE)
        self.set(_BOOTRAM_DEVINFO, _DEVINFO_4MB)
        self.stored(offset for offset in range(0, 0x1000, 4) if offset not in self._LOCKS)

    def read(self, offset: int) -> int:
        return 1 << (offset - self._LOCKS.start) // 4 if offset in self._LOCKS else self.value(offset)


class BootRom:
    """The functions.

    Args:
        engine: the CPU.
        services: the rest of the board.
    """

    def __init__(self, engine: Engine, services: RomServices) -> None:
        self._engine = engine
        self._services = services
        self._at = {_FIRST_FUNCTION + 4 * number: code for number, code in enumerate(_FUNCTIONS)}
        self._addresses = {code: address | 1 for address, code in self._at.items()}
        self._data = {"FD": _DATA, "PT": _DATA + 0x10, "GR": _DATA + 0x20, "XF": _DATA + 0x30}

    @staticmethod
    def contents() -> bytes:
        """The ROM after its first page."""
        rom = bytearray(chip.ROM_BYTES - HEADER_BYTES)
        rom[_LOOKUP - HEADER_BYTES : _LOOKUP - HEADER_BYTES + 4] = _STUB
        for number in range(len(_FUNCTIONS)):
            start = _FIRST_FUNCTION + 4 * number - HEADER_BYTES
            rom[start : start + 4] = _STUB
        data = _DATA - HEADER_BYTES
        struct.pack_into("<I", rom, data, _BOOTRAM + _BOOTRAM_DEVINFO)
        struct.pack_into("<I", rom, data + 0x10, _BOOTRAM + _BOOTRAM_PARTITIONS)
        struct.pack_into("<I", rom, data + 0x30, _BOOTRAM)
        return bytes(rom)

    def call(self, address: int) -> bool:
        """Carry out the function whose BKPT is at an address; False where there is none.

        Raises:
            FirmwareError: the function is not modelled, or the firmware calls it wrongly.
        """
        arguments = [self._engine.read(number) for number in range(4)]
        if address == _LOOKUP:
            result: int | None = self._look_up(arguments[0], arguments[1])
        elif address in self._at:
            result = self._carry_out(self._at[address], arguments)
        else:
            return False
        if result is not None:
            self._engine.write(0, result)
        self._engine.jump(self._engine.read(LR))
        return True

    def _look_up(self, code: int, mask: int) -> int:
        name = chr(code & 0xFF) + chr(code >> 8 & 0xFF)
        return self._data.get(name, 0) if mask & _FLAG_DATA else self._addresses.get(name, 0)

    def _carry_out(self, name: str, arguments: list[int]) -> int | None:
        known: dict[str, Callable[[list[int]], int | None]] = {
            "SR": lambda _: _OK,
            "SS": lambda _: _OK,
            "LP": lambda _: _OK,
            "GP": lambda _: _ERROR_NOT_FOUND,
            "GB": lambda _: _ERROR_NOT_FOUND,
            "GU": lambda _: _ERROR_NOT_FOUND,
            "AB": lambda _: _ERROR_NOT_FOUND,
            "GS": self._system_info,
            "RB": self._reboot,
            "IF": lambda _: None,
            "EX": lambda _: None,
            "FC": lambda _: None,
            "CX": lambda _: None,
            "RA": lambda _: None,
            "XM": lambda _: None,
            "RE": self._erase,
            "RP": self._program,
            "FO": self._flash_operation,
            "FA": lambda given: given[0],
        }
        function = known.get(name)
        if function is None:
            raise FirmwareError(f"the boot ROM's function {name!r} is not modelled")
        return function(arguments)

    def _system_info(self, arguments: list[int]) -> int:
        """get_sys_info(buffer, words, flags)."""
        buffer, room, flags = arguments[:3]
        identity, boot = self._services.unique_id, self._services.boot
        parts = (
            (_INFO_CHIP, [1, identity & 0xFFFF_FFFF, identity >> 32]),
            (_INFO_CRITICAL, [0]),
            (_INFO_CPU, [0x0300]),  # Arm now; both are supported
            (_INFO_FLASH, [_DEVINFO_4MB]),
            (_INFO_RANDOM, [0x6B8B_4567, 0x327B_23C6, 0x643C_9869, 0x6633_4873]),
            (_INFO_NONCE, [0x74B0_DC51, 0x1949_5CFF]),
            (_INFO_BOOT, [boot.kind, 0, *boot.parameters]),
        )
        words = [flags & 0x7F]
        for flag, values in parts:
            if flags & flag:
                words += values
        if len(words) > room:
            return _ERROR_BUFFER_TOO_SMALL
        self._engine.set_memory(buffer, struct.pack(f"<{len(words)}I", *words))
        return len(words)

    def _reboot(self, arguments: list[int]) -> int:
        """reboot(flags, delay in ms, parameter 0, parameter 1)."""
        flags, delay_ms, first, second = arguments
        kind = flags & 0xF
        if kind not in (REBOOT_NORMAL, REBOOT_BOOTSEL, REBOOT_PC_SP):
            return _ERROR_INVALID_ARG
        self._services.reboot(Reboot(kind, (first, second)), delay_ms, bool(flags & _REBOOT_NO_RETURN))
        return _OK

    def _erase(self, arguments: list[int]) -> None:
        """flash_range_erase(offset, bytes, block size, block command)."""
        offset, size = arguments[:2]
        if offset % chip.FLASH_SECTOR or size % chip.FLASH_SECTOR or offset + size > chip.FLASH_BYTES:
            raise FirmwareError(f"flash_range_erase of {size:#x} bytes at {offset:#x}")
        self._services.erase(offset, size)

    def _program(self, arguments: list[int]) -> None:
        """flash_range_program(offset, data, bytes)."""
        offset, source, size = arguments[:3]
        if offset % chip.FLASH_PAGE or size % chip.FLASH_PAGE or offset + size > chip.FLASH_BYTES:
            raise FirmwareError(f"flash_range_program of {size:#x} bytes at {offset:#x}")
        if chip.XIP_BASE <= source < chip.SRAM_BASE:
            raise FirmwareError("flash_range_program from flash, which cannot be read meanwhile", source)
        data = self._engine.memory(source, size)
        if data is None:
            raise FirmwareError("flash_range_program from where no memory is", source)
        self._services.program(offset, data)

    def _flash_operation(self, arguments: list[int]) -> int:
        """flash_op(flags, address, bytes, buffer): erase, program or read, checked."""
        flags, address, size, buffer = arguments
        offset = address - chip.XIP_BASE
        if not 0 <= offset <= chip.FLASH_BYTES - size:
            return _ERROR_INVALID_ADDRESS
        operation = flags >> 16 & 7
        if operation == 0:
            self._erase([offset, size])
        elif operation == 1:
            self._program([offset, buffer, size])
        elif operation == 2:
            self._engine.set_memory(buffer, self._engine.memory(address, size) or b"")
        else:
            return _ERROR_INVALID_ARG
        return _OK
