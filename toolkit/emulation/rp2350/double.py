"""The double coprocessor, p4 (datasheet, section 3.6.2).

The coprocessor has no multiplier: mantissas go to the CPU and come back. Its datapath is modelled as the datasheet
describes it: two unpacked numbers X and Y, an adder, a shifter that normalises, and special cases decided when the
result is read. Where the datasheet gives no number format, the one is used that the SDK's instruction sequences imply.

The two tables of first approximations (reciprocal, reciprocal square root) are not published. The sequences that round
correctly give the same result with any tables of this precision; `ddiv_fast` and `dsqrt_fast` can differ from silicon
in the last place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

_U32 = 0xFFFF_FFFF
_U64 = (1 << 64) - 1
_ONE = 1 << 62  # the mantissa 1.0, Q62
_BIAS = 1023
_EXPONENT_MASK = 0x3FFF  # the exponent registers have 14 bits
_CONVERSION = (1 << 52) + (1 << 32)  # what integer conversions add (table 109)
_QUIET_NAN = 0x7FF8_0000_0000_0000
_QUIET_NAN_SINGLE = 0x7FC0_0000
_TABLE_BITS = 9

_EQUAL, _GREATER, _LESS = 0, 1, 2


@dataclass(frozen=True, slots=True)
class _Number:
    """One unpacked number: `mantissa` (Q62, 64 bits), biased `exponent` (14 bits, signed), and its kind."""

    mantissa: int = 0
    exponent: int = 0
    negative: bool = False
    zero: bool = False
    infinite: bool = False
    nan: bool = False

    @property
    def flags(self) -> int:
        return self.negative << 3 | self.zero << 2 | self.infinite << 1 | self.nan

    def with_flags(self, flags: int) -> _Number:
        return replace(
            self, negative=bool(flags & 8), zero=bool(flags & 4), infinite=bool(flags & 2), nan=bool(flags & 1)
        )


def _unpacked(bits: int) -> _Number:
    """A double; denormals are zero (section 3.6.2.9)."""
    fraction, exponent = bits & (1 << 52) - 1, bits >> 52 & 0x7FF
    return _Number(
        _ONE | fraction << 10,
        exponent,
        bool(bits >> 63),
        exponent == 0,
        exponent == 0x7FF and not fraction,
        exponent == 0x7FF and bool(fraction),
    )


def _unpacked_single(bits: int) -> _Number:
    fraction, exponent = bits & (1 << 23) - 1, bits >> 23 & 0xFF
    return _Number(
        _ONE | fraction << 39,
        exponent - 127 + _BIAS if exponent else 0,
        bool(bits >> 31),
        exponent == 0,
        exponent == 0xFF and not fraction,
        exponent == 0xFF and bool(fraction),
    )


def _jammed(value: int, shift: int) -> int:
    """Shifted right; what falls off is kept as a sticky lowest bit."""
    if shift <= 0:
        return value
    return value >> shift | bool(value & (1 << shift) - 1)


class DoubleCoprocessor:
    """The instance of the Secure state."""

    def __init__(self) -> None:
        self._x = _Number()
        self._y = _Number()
        self._shift = 0
        self._compared = _EQUAL
        self._engaged = False

    # --- MCRR (table 109) --------------------------------------------------------------------------------------------

    def write(self, opc1: int, crm: int, low: int, high: int) -> bool:
        """False where there is no such instruction."""
        value = low | high << 32
        self._engaged = True
        key = (opc1, crm)
        if key == (1, 0):  # WXUP
            self._x = _unpacked(value)
        elif key == (1, 1):  # WYUP
            self._y = _unpacked(value)
        elif key == (1, 2):  # WXYU
            self._x, self._y = _unpacked_single(low), _unpacked_single(high)
        elif key == (2, 0):  # WXMS
            self._x = replace(self._x, mantissa=self._x.mantissa & ~1 | bool(value))
        elif key in _RETURNS:
            self._take_back(*_RETURNS[key], value)
        elif key in ((6, 0), (7, 0)):  # WXUC, WXIC
            integer = low - (1 << 32) if opc1 == 7 and low >> 31 else low
            self._x, self._y = _integer(_CONVERSION + integer), _integer(_CONVERSION)
        elif key in ((8, 0), (9, 2)):  # WXDC, WXFC
            self._x = _unpacked(value) if opc1 == 8 else _unpacked_single(low)
            self._y = _integer(_CONVERSION)
        elif key in ((0, 0), (0, 1), (0, 2)):  # WXMD, WYMD, WEFD
            self._restore(crm, value)
        else:
            return False
        return True

    def _take_back(self, operation: str, fraction_bits: int, value: int) -> None:
        """WXMO, WXDD, WXDQ, WXFM, WXFD, WXFQ: the CPU's mantissa, in its own format, with X and Y's exponents."""
        x, y = self._x, self._y
        exponent, negative = x.exponent, x.negative
        if operation == "multiply":
            exponent, negative = x.exponent + y.exponent - _BIAS, x.negative != y.negative
        elif operation == "divide":
            exponent, negative = x.exponent - y.exponent + _BIAS, x.negative != y.negative
        if fraction_bits == 60 and operation == "multiply":
            value |= x.mantissa & 1  # WXMS's sticky bit
        self._x = replace(x, mantissa=value, exponent=exponent + 62 - fraction_bits, negative=negative)

    def _restore(self, crm: int, value: int) -> None:
        if crm == 0:
            self._x = replace(self._x, mantissa=value)
        elif crm == 1:
            self._y = replace(self._y, mantissa=value)
        else:
            low, high = value & _U32, value >> 32
            self._x = replace(self._x, exponent=_signed14(low)).with_flags(low >> 28)
            self._y = replace(self._y, exponent=_signed14(high)).with_flags(high >> 28)
            self._shift = low >> 14 & 0x3F
            self._compared = low >> 20 & 3
            self._engaged = bool(low >> 22 & 1)

    # --- CDP (table 110) ---------------------------------------------------------------------------------------------

    def operate(self, opc1: int, crm: int, opc2: int) -> bool:
        """False where there is no such instruction."""
        key = (opc1, crm, opc2)
        self._engaged = True
        if key == (0, 0, 0):  # INIT
            self._x, self._y, self._shift, self._compared = _Number(), _Number(), 0, _EQUAL
        elif key == (0, 1, 0):  # ADD0
            self._compare()
        elif key in ((1, 1, 0), (1, 1, 1)):  # ADD1, SUB1
            self._add(subtract=opc2 == 1)
        elif key == (2, 1, 0):  # SQR0
            even = (self._x.exponent - _BIAS) % 2 == 0
            half = (self._x.exponent - _BIAS - (0 if even else 1)) // 2 + _BIAS
            self._x = replace(self._x, exponent=half, mantissa=self._x.mantissa << (0 if even else 1) & _U64)
        elif key == (8, 2, 0):  # NORM
            self._normalise(64)
        elif key == (8, 2, 1):  # NRDF
            self._normalise(24)
        elif key == (8, 0, 1):  # NRDD
            self._normalise(53)
        elif key in ((8, 0, 2), (8, 0, 3)):  # NTDC, NRDC
            self._to_integer(truncate=opc2 == 2)
        else:
            return False
        return True

    def _compare(self) -> None:
        x, y = self._x, self._y
        left = (not x.zero, x.exponent, x.mantissa) if not x.zero else (False, 0, 0)
        right = (not y.zero, y.exponent, y.mantissa) if not y.zero else (False, 0, 0)
        self._compared = _EQUAL if left == right else _GREATER if left > right else _LESS
        self._shift = min(63, abs(x.exponent - y.exponent))

    def _add(self, *, subtract: bool) -> None:
        x, y = self._x, self._y
        large, small = (y, x) if self._compared == _LESS else (x, y)
        shifted = 0 if small.zero else _jammed(small.mantissa, self._shift)
        base = 0 if large.zero else large.mantissa
        opposite = (x.negative != y.negative) != subtract
        self._x = replace(x, mantissa=base - shifted if opposite else base + shifted, exponent=large.exponent)

    def _normalise(self, bits: int) -> None:
        """Normalise; round to nearest, ties to even, at so many bits."""
        mantissa, exponent = self._x.mantissa, self._x.exponent
        if mantissa == 0:
            return
        shift = mantissa.bit_length() - 63
        mantissa = _jammed(mantissa, shift) if shift > 0 else mantissa << -shift
        exponent += shift
        if bits < 63:
            unit = 1 << 63 - bits
            rest = mantissa & unit - 1
            mantissa -= rest
            if rest > unit // 2 or (rest == unit // 2 and mantissa & unit):
                mantissa += unit
            if mantissa >> 63:
                mantissa, exponent = mantissa >> 1, exponent + 1
        self._x = replace(self._x, mantissa=mantissa, exponent=exponent)

    def _to_integer(self, *, truncate: bool) -> None:
        """X holds 2^52 + 2^32 plus the number: leave the number, rounded to an integer, in the mantissa."""
        x = self._x
        negative = x.negative if self._compared == _GREATER else False
        scaled = -x.mantissa if negative else x.mantissa
        shift = x.exponent - _BIAS - 62  # of the binary point
        if shift >= 0:
            integer, rest, unit = (scaled << min(shift, 64)) - _CONVERSION, 0, 1
        else:
            unit = 1 << min(-shift, 1100)
            integer, rest = divmod(scaled - _CONVERSION * unit, unit)
        if truncate:
            integer += 1 if integer < 0 and rest else 0
        elif rest * 2 > unit or (rest * 2 == unit and integer & 1):
            integer += 1
        clamped = max(-(1 << 62), min((1 << 62) - 1, integer))
        self._x = replace(x, mantissa=clamped & _U64)

    # --- MRC and MRRC (table 111) ------------------------------------------------------------------------------------

    def read(self, crm: int, opc2: int, *, peek: bool) -> int | None:
        """MRC (MRC2 peeks: it leaves the engaged flag alone); None where there is no such instruction."""
        result: int | None = None
        if (crm, opc2) == (0, 0):  # RXVD
            result = self._x.flags << 28
        elif (crm, opc2) == (0, 1):  # RCMP, PCMP: N is the engaged flag, which is what the SDK asks for
            result = self._engaged << 31 | self._comparison() << 28
        elif crm == 2 and opc2 < len(_READS):
            result = self._packed(_READS[opc2], single=True)
        elif crm == 3 and opc2 < 2:
            result = self._converted(signed=opc2 == 0)
        if not peek:
            self._engaged = False
        return result

    def read_pair(self, opc1: int, crm: int, *, peek: bool) -> int | None:
        """MRRC (MRRC2 peeks); None where there is no such instruction."""
        x, y = self._x, self._y
        if crm == 0 and opc1 & 1 and opc1 >> 1 < len(_READS):
            if not peek:
                self._engaged = False
            return self._packed(_READS[opc1 >> 1], single=False)
        if crm in (8, 9, 10) and opc1 == 0:  # RXMD, RYMD, REFD
            return self._saved(crm, peek)
        if not peek:
            self._engaged = True
        if crm == 4:  # RXMS
            return x.mantissa >> opc1
        if crm == 5:  # RYMS
            return y.mantissa >> opc1
        if (crm, opc1) == (1, 1):  # RXYH: both Q30
            return x.mantissa >> 32 | y.mantissa >> 32 << 32
        if (crm, opc1) == (1, 2):  # RYMR: the reciprocal Q31, y Q31
            return _reciprocal(y.mantissa) | (y.mantissa >> 31 & _U32) << 32
        if (crm, opc1) == (1, 4):  # RXMQ: the reciprocal square root Q31, x Q30
            return _reciprocal_root(x.mantissa) | x.mantissa >> 32 << 32
        return None

    def _saved(self, crm: int, peek: bool) -> int:
        if crm == 8:
            return self._x.mantissa
        if crm == 9:
            if not peek:
                self._engaged = False
            return self._y.mantissa
        status = self._shift | self._compared << 6 | self._engaged << 8
        low = self._x.flags << 28 | status << 14 | self._x.exponent & _EXPONENT_MASK
        high = self._y.flags << 28 | self._y.exponent & _EXPONENT_MASK
        return low | high << 32

    def _comparison(self) -> int:
        """Z, C, V as VCMP gives them."""
        x, y = self._x, self._y
        if x.nan or y.nan:
            return 0b011
        if self._compared == _EQUAL and (x.negative == y.negative or x.zero):
            return 0b110
        less = x.negative if x.negative != y.negative else (self._compared == _LESS) != x.negative
        return 0 if less else 0b010

    def _converted(self, *, signed: bool) -> int:
        """RDIC, RDUC: out of range gives the nearest; a NaN counts as +infinity, as in the SDK's 64-bit conversions."""
        low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, _U32)
        x = self._x
        if x.nan or x.infinite:
            return (low if x.negative and not x.nan else high) & _U32
        value = x.mantissa - (1 << 64) if x.mantissa >> 63 else x.mantissa
        return max(low, min(high, value)) & _U32

    def _packed(self, operation: str, *, single: bool) -> int:
        """A result in its IEEE format, special cases included."""
        negative, kind = _special(operation, self._x, self._y, self._compared)
        infinity, nan = (0x7F80_0000, _QUIET_NAN_SINGLE) if single else (0x7FF << 52, _QUIET_NAN)
        if kind == "nan":
            return nan
        sign = negative << (31 if single else 63)
        exponent = self._x.exponent - (_BIAS - 127 if single else 0)
        if kind == "infinity" or (kind == "number" and exponent >= (0xFF if single else 0x7FF)):
            return sign | infinity
        if kind == "zero" or exponent < 1:
            return sign
        if self._x.mantissa == 0:  # exact cancellation
            return 0 if operation in ("add", "subtract") else sign
        fraction = self._x.mantissa & _ONE - 1
        return sign | (exponent << 23 | fraction >> 39 if single else exponent << 52 | fraction >> 10)


_READS = ("add", "subtract", "multiply", "divide", "root", "general")

# Instructions that bring a mantissa back from the CPU: what it is, and the bits after its binary point.
_RETURNS = {
    (3, 0): ("multiply", 60),  # WXMO
    (4, 0): ("divide", 57),  # WXDD
    (5, 0): ("root", 60),  # WXDQ
    (10, 0): ("multiply", 60),  # WXFM
    (11, 0): ("divide", 61),  # WXFD
    (12, 0): ("root", 61),  # WXFQ
}


def _special(operation: str, x: _Number, y: _Number, compared: int) -> tuple[bool, str]:
    """Sign and kind of a result. X's sign is already that of a product or quotient."""
    if operation in ("add", "subtract"):
        other = y.negative != (operation == "subtract")
        if x.nan or y.nan or (x.infinite and y.infinite and x.negative != other):
            return False, "nan"
        if x.infinite or y.infinite:
            return x.negative if x.infinite else other, "infinity"
        if x.zero and y.zero:
            return x.negative and other, "zero"
        return other if compared == _LESS else x.negative, "number"
    if operation == "multiply":
        nan = x.nan or y.nan or (x.infinite and y.zero) or (x.zero and y.infinite)
        infinite, zero = x.infinite or y.infinite, x.zero or y.zero
    elif operation == "divide":
        nan = x.nan or y.nan or (x.infinite and y.infinite) or (x.zero and y.zero)
        infinite, zero = x.infinite or y.zero, x.zero or y.infinite
    else:
        nan = x.nan or (operation == "root" and x.negative and not x.zero)
        infinite, zero = x.infinite, x.zero
    return x.negative, "nan" if nan else "infinity" if infinite else "zero" if zero else "number"


def _integer(value: int) -> _Number:
    """A positive integer below 2^53, unpacked."""
    length = value.bit_length()
    return _Number(value << 63 - length, _BIAS + length - 1)


def _signed14(value: int) -> int:
    value &= _EXPONENT_MASK
    return value - (1 << 14) if value >> 13 else value


def _reciprocal(mantissa: int) -> int:
    """A first approximation of 1/y for y in [1, 2), Q31, always below 1."""
    index = mantissa >> 62 - _TABLE_BITS & (1 << _TABLE_BITS) - 1
    middle = 2 * ((1 << _TABLE_BITS) + index) + 1  # of the interval, in units of 2^-(bits + 1)
    return (1 << 31 + _TABLE_BITS + 1) // middle >> 20 << 20


def _reciprocal_root(mantissa: int) -> int:
    """A first approximation of 1/sqrt(x) for x in [1, 4), Q31, always below 1."""
    index = mantissa >> 62 - _TABLE_BITS
    middle = 2 * index + 1
    return math.isqrt((1 << 62 + _TABLE_BITS + 1) // middle) >> 20 << 20
