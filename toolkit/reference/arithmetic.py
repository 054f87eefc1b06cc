"""The 32-bit fixed-point arithmetic of the int8 kernels, on arrays.

Specified in section 2 and, for softmax, section 3 of tests/golden/kernels/README.md. Arrays are int64 that hold int32
values, so that products are exact; results are int64 that hold int32 values again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)


def wrap(values: Ints) -> Ints:
    """Values modulo 2^32, as a 32-bit register holds them."""
    return values.astype(np.int32).astype(np.int64)


def high_multiply(a: Ints, b: Ints | int) -> Ints:
    """Rounding doubling high multiply, floor((a * b + 2^30) / 2^31): ties toward plus infinity; -2^31 squared wraps."""
    return wrap((a * b + 2**30) >> 31)


def high_multiply_saturating(a: Ints, b: Ints | int) -> Ints:
    """`high_multiply` in which -2^31 squared gives 2^31 - 1."""
    product: Ints = np.minimum((a * b + 2**30) >> 31, INT32_MAX)
    return product


def divide_by_power_of_two(values: Ints, exponent: Ints | int) -> Ints:
    """Division by 2^exponent (0 to 31), rounded to nearest with ties away from zero."""
    exponent = np.asarray(exponent, dtype=np.int64)
    half = (np.int64(1) << exponent) >> 1
    # Adding one less than a half to negative values makes the floor of the shift round their ties away from zero.
    negative = np.where(exponent > 0, values >> 63, 0)
    quotient: Ints = (values + half + negative) >> exponent
    return quotient


def requantize(values: Ints, multiplier: Ints | int, shift: Ints | int) -> Ints:
    """Values times multiplier / 2^31 * 2^shift, rounded twice as the kernels do.

    Args:
        values: accumulators.
        multiplier: Q0.31, one or one per element of the last axis.
        shift: likewise; a left shift (before the product, modulo 2^32) if positive, else a right shift after it.
    """
    shift = np.asarray(shift, dtype=np.int64)
    shifted = wrap(values << np.maximum(shift, 0)) if np.any(shift > 0) else values
    return divide_by_power_of_two(high_multiply(shifted, multiplier), np.maximum(-shift, 0))


def to_int8(values: Ints, offset: int, low: int, high: int) -> Array:
    """Adds the output offset and clamps."""
    clamped: Array = np.clip(values + offset, low, high).astype(np.int8)
    return clamped


def shift_left_saturating(values: Ints, exponent: int) -> Ints:
    """Values times 2^exponent, saturating to int32."""
    return np.clip(values << exponent, INT32_MIN, INT32_MAX)


_EXP_CONSTANTS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-2^(k - 2)) for k = 0 to 6, Q0.31."""


def exp_on_negative_values(values: Ints) -> Ints:
    """exp(x): x is Q5.26 and not positive, the result Q0.31."""
    fraction = (values & (2**24 - 1)) - 2**24
    remainder = fraction - values
    x = (fraction << 5) + 2**28
    x2 = high_multiply(x, x)
    x3 = high_multiply(x2, x)
    x4 = high_multiply(x2, x2)
    series = divide_by_power_of_two(
        high_multiply(divide_by_power_of_two(x4, 2) + x3, 715827883) + x2,
        1,
    )
    result = 1895147668 + high_multiply(x + series, 1895147668)
    for k, constant in enumerate(_EXP_CONSTANTS):
        result = np.where(remainder & (1 << (24 + k)), high_multiply(result, constant), result)
    return np.where(values == 0, INT32_MAX, result)


def one_over_one_plus(values: Ints) -> Ints:
    """1 / (1 + x) for x in [0, 1): both Q0.31; three Newton-Raphson steps."""
    total = values + INT32_MAX
    rounded = total + np.where(total >= 0, 1, -1)
    half = np.sign(rounded) * (np.abs(rounded) // 2)
    x = 1515870810 + high_multiply(half, -1010580540)
    for _ in range(3):
        x = x + shift_left_saturating(high_multiply(x, 2**29 - high_multiply(half, x)), 2)
    return shift_left_saturating(x, 1)
