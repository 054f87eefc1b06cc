"""The redundancy coprocessor, p7: hardware-checked assertions (datasheet, section 3.6.3). Its delays take no time."""

from __future__ import annotations

from toolkit.emulation.rp2350.registers import FirmwareError

_TRUE = 0xA500_A500
_FALSE = 0x00C3_00C3
_PARITY = 0x9600_9600
_BOOLEANS = (_TRUE, _FALSE)


class RedundancyCoprocessor:
    """RCP of core 0, with the salt that the boot ROM gave it."""

    def __init__(self, salt: int) -> None:
        self._salt = salt
        self._sequence = 0
        self._random = salt >> 40 or 1

    def read(self, opc1: int, crn: int, crm: int, *, flags: bool) -> int:
        """MRC: canary, whether there is a salt, or a random byte."""
        if opc1 == 0:
            return self._canary(crn << 4 | crm)
        if opc1 == 1:
            return 0xA000_0000 if flags else _TRUE
        if opc1 == 2:
            return self._random_byte()
        raise FirmwareError("an instruction that the redundancy coprocessor does not have")

    def write(self, opc1: int, crn: int, crm: int, value: int) -> None:
        """MCR: assertions about one word."""
        tag = crn << 4 | crm
        if opc1 == 4:
            self._sequence = tag
            return
        if opc1 == 5:
            self._assert(tag == self._sequence, "rcp_count_check")
            self._sequence = self._sequence + 1 & 0xFF
            return
        held = {
            0: value == self._canary(tag),
            1: value in _BOOLEANS,
            2: value == _TRUE,
            3: value == _FALSE,
        }
        names = ("rcp_canary_check", "rcp_bvalid", "rcp_btrue", "rcp_bfalse")
        self._assert(held.get(opc1, False), names[opc1] if opc1 < 4 else "an instruction it does not have")

    def write_both(self, opc1: int, low: int, high: int) -> None:
        """MCRR: assertions about two words."""
        both = low ^ high
        valid = low in _BOOLEANS and high in _BOOLEANS
        checks = (
            ("rcp_b2valid", valid),
            ("rcp_b2and", low == high == _TRUE),
            ("rcp_b2or", valid and _TRUE in (low, high)),
            ("rcp_bxorvalid", both in _BOOLEANS),
            ("rcp_bxortrue", both == _TRUE),
            ("rcp_bxorfalse", both == _FALSE),
            ("rcp_ivalid", both == _PARITY),
            ("rcp_iequal", low == high),
            ("rcp_salt, though there is one", False),
        )
        name, held = checks[opc1] if opc1 < len(checks) else ("an instruction it does not have", False)
        self._assert(held, name)

    @staticmethod
    def _assert(held: bool, name: str) -> None:
        if not held:
            raise FirmwareError(f"the redundancy coprocessor's assertion failed: {name}")

    def panic(self) -> None:
        """CDP: rcp_panic."""
        raise FirmwareError("rcp_panic")

    def _canary(self, tag: int) -> int:
        """Section 3.6.3.5."""
        expanded = tag | (~tag & 0xFF) << 8 | tag << 16
        expanded &= 0xFF_0000 | self._salt >> 24 & 0xFFFF
        return ((expanded ^ self._salt) & 0xFF_FFFF) << 8

    def _random_byte(self) -> int:
        feedback = (self._random ^ self._random >> 1 ^ self._random >> 2 ^ self._random >> 7) & 1
        self._random = self._random >> 1 | feedback << 23
        return self._random & 0xFF
