"""The double coprocessor: bit for bit what IEEE 754 says, as Python's floats do it. Denormals are zero on this chip."""

import math
import random
import struct
from fractions import Fraction

import pytest

from toolkit.emulation.rp2350.report import read_symbols

SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1.5, 3.0, 0.1, 1 / 3, math.inf, -math.inf, math.nan),
    *(1e308, -1e308, 2.3e-308, 1 + 2**-52, 2 - 2**-52, 1 - 2**-53, 4503599627370497.0, 2.0**53 - 1, 2.0**-1022),
    *(
        1.7976931348623157e308,
        5e-324,
        2147483647.5,
        -2147483648.5,
        4294967295.0,
        0.49999999999999994,
        0.5000000000000001,
    ),
)
PER_OPERATION = 100


def bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def value_of(word):
    return struct.unpack("<d", struct.pack("<Q", word))[0]


def flushed(value):
    """Denormals are zero, on the way in and out (datasheet, section 3.6.2.9)."""
    return math.copysign(0.0, value) if abs(value) < 2.0**-1022 else value


def operands(seed):
    chosen = random.Random(seed)
    while True:
        kind = chosen.random()
        if kind < 0.25:
            yield chosen.choice(SPECIAL)
        elif kind < 0.45:
            yield value_of(chosen.getrandbits(64))
        elif kind < 0.65:
            yield chosen.uniform(-10, 10)
        else:
            yield chosen.uniform(1, 2) * 2.0 ** chosen.randint(-60, 60) * chosen.choice((-1, 1))


def divided(a, b):
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def root(a, _):
    return math.sqrt(a) if a >= 0 else math.nan if a < 0 or a != a else a


OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": divided,
    "sqrt": root,
}


def ask(bench, name, *words):
    return int(bench.ask(f"d:{name} {' '.join(f'{word:x}' for word in words)}").split()[1], 16)


@pytest.mark.parametrize("name", OPERATIONS)
def test_arithmetic(bench, name):
    source = operands(seed=name)
    for _ in range(PER_OPERATION):
        a, b = next(source), next(source)
        expected = flushed(OPERATIONS[name](flushed(a), flushed(b)))
        result = value_of(ask(bench, name, bits(a), bits(b)))
        same = bits(result) == bits(expected) or (result != result and expected != expected)
        assert same, (a.hex(), b.hex(), result.hex(), expected.hex())


def rounded(exact):
    """A fraction, rounded to the nearest double."""
    return float(exact.numerator / exact.denominator) if exact else 0.0


def test_fused_multiply_add(bench):
    chosen = random.Random(11)
    for _ in range(PER_OPERATION):
        a, b = (chosen.uniform(-2, 2) * 2.0 ** chosen.randint(-40, 40) for _ in range(2))
        c = -a * b * (1 + chosen.choice((0, 2**-52, -(2**-53)))) if chosen.random() < 0.4 else chosen.uniform(-1e9, 1e9)
        expected = rounded(Fraction(a) * Fraction(b) + Fraction(c))
        assert ask(bench, "fma", bits(a), bits(b), bits(c)) == bits(expected), (a.hex(), b.hex(), c.hex())


def test_comparisons(bench):
    source = operands(seed=3)
    for _ in range(60):
        a, b = next(source), next(source)
        if random.Random(a.hex()).random() < 0.3:
            b = a
        a, b = flushed(a), flushed(b)
        for name, expected in (("lt", a < b), ("le", a <= b), ("eq", a == b)):
            assert ask(bench, name, bits(a), bits(b)) == expected, (name, a, b)


def clamped(value, low, high):
    """Towards zero; what does not fit is the nearest, as the SDK says of these conversions."""
    if value != value:
        return high
    return max(low, min(high, math.trunc(value) if not math.isinf(value) else math.copysign(10**30, value)))


def test_to_integers(bench):
    source = operands(seed=5)
    for _ in range(PER_OPERATION):
        a = flushed(next(source))
        assert ask(bench, "to_int", bits(a)) == int(clamped(a, -(2**31), 2**31 - 1)) & 0xFFFF_FFFF, a
        assert ask(bench, "to_uint", bits(a)) == int(clamped(a, 0, 2**32 - 1)), a
        assert ask(bench, "to_int64", bits(a)) == int(clamped(a, -(2**63), 2**63 - 1)) & (1 << 64) - 1, a


def test_to_single(bench):
    source = operands(seed=6)
    for _ in range(PER_OPERATION):
        a = flushed(next(source))
        try:
            (expected,) = struct.unpack("<I", struct.pack("<f", a))
        except OverflowError:
            expected = 0x7F80_0000 | (a < 0) << 31
        if a != a:
            expected = 0x7FC0_0000
        elif expected >> 23 & 0xFF == 0:
            expected &= 0x8000_0000
        assert ask(bench, "to_float", bits(a)) == expected, a.hex()


def test_from_integers(bench):
    chosen = random.Random(9)
    for _ in range(60):
        word = chosen.getrandbits(chosen.choice((8, 31, 32)))
        signed = word - (1 << 32) if word >> 31 else word
        assert ask(bench, "from_int", word) == bits(float(signed))
        assert ask(bench, "from_uint", word) == bits(float(word))
        wide = chosen.getrandbits(64)
        assert ask(bench, "from_int64", wide) == bits(float(wide - (1 << 64) if wide >> 63 else wide))


def test_an_interrupt_that_uses_doubles_does_not_disturb(bench):
    """The SDK saves the coprocessor's state when an interrupt comes in the middle of an operation, and restores it."""
    symbols = read_symbols(bench.probe.elf)
    saving = next(
        start
        for start, (_, name) in zip(symbols.starts, symbols.functions, strict=True)
        if name == "generic_save_state"
    )
    saves = []
    bench.machine.engine.on_instruction(saving, lambda: saves.append(1))
    bench.machine.engine.forget_code()
    total, term = 0.0, 1.0
    for i in range(1, 700):
        term = math.sqrt(term * 1.0000001) + 1.0 / i
        total = total + term * 0.5
    assert ask(bench, "interrupted") == bits(total)
    assert len(saves) > 2
