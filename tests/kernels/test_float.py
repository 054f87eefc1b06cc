"""Kernels that touch float: quantize, dequantize, division; and the table."""

from dataclasses import replace

import numpy as np
import pytest

from .calls import Call, float_bits

BIG = 3.0e38


def round_half_even(values):
    """float32 to int32, ties to even, saturating; NaN gives 0."""
    exact = np.rint(np.nan_to_num(values.astype("f8"), nan=0.0, posinf=BIG, neginf=-BIG))
    return np.clip(exact, -(2**31), 2**31 - 1).astype("i8")


def quantize_call(values, inverse_scale, zero_point, low, high):
    scalars = (values.size, float_bits(inverse_scale), zero_point, low, high)
    return Call("deploy_quantize_f32_s8", scalars, (values,), values.shape)


@pytest.mark.parametrize("zero_point", [-128, 0, 5, 127])
@pytest.mark.parametrize(("low", "high"), [(-128, 127), (-127, 127), (0, 10)])
def test_quantize(driver, zero_point, low, high):
    random = np.random.default_rng(1)
    ties = np.arange(-300, 300, dtype="f4") / 2
    edges = [np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 2147483520.0, 3e9, -3e9, 1e-40, -0.0, 0.49999997]
    values = np.concatenate([ties, random.normal(0, 60, 500), edges]).astype("f4")
    inverse_scales = [1.0, 0.73, 12.5, 1e30]
    results = driver.run([quantize_call(values, s, zero_point, low, high) for s in inverse_scales])
    for scale, result in zip(inverse_scales, results, strict=True):
        with np.errstate(over="ignore"):
            scaled = values * np.float32(scale)
        expected = np.clip(round_half_even(scaled) + zero_point, low, high)
        np.testing.assert_array_equal(result.output, expected)
        assert result.broken_blocks == 0


def test_quantize_sizes(driver):
    values = np.linspace(-3, 3, 9, dtype="f4")
    results = driver.run([quantize_call(values[:size], 10.0, 3, -128, 127) for size in range(1, 10)])
    expected = np.rint(values * np.float32(10)) + 3
    for size, result in enumerate(results, start=1):
        np.testing.assert_array_equal(result.output, expected[:size])
        assert result.broken_blocks == 0


def test_quantize_over_its_input(driver):
    values = np.linspace(-9, 9, 23, dtype="f4")
    apart = quantize_call(values, 11.0, 3, -128, 127)
    expected, result = driver.run([apart, replace(apart, in_place=True)])
    np.testing.assert_array_equal(result.output, expected.output)


@pytest.mark.parametrize("zero_point", [-128, 0, 127])
def test_dequantize_every_value(driver, zero_point):
    codes = np.arange(-128, 128, dtype="i1")
    scale = np.float32(0.0123)
    scalars = (256, float_bits(float(scale)), zero_point)
    (result,) = driver.run([Call("deploy_dequantize_s8_f32", scalars, (codes,), (256,), "f4")])
    expected = (codes.astype("i4") - zero_point).astype("f4") * scale
    np.testing.assert_array_equal(result.output, expected)


def test_lookup_every_value(driver):
    random = np.random.default_rng(2)
    table = random.permutation(np.arange(-128, 128)).astype("i1")
    codes = random.permutation(np.arange(-128, 128)).astype("i1")
    call = Call("deploy_lookup_s8", (256,), (codes, table), (256,))
    for result in driver.run([call, replace(call, in_place=True)]):
        np.testing.assert_array_equal(result.output, table[codes.astype("i4") + 128])


@pytest.mark.parametrize(
    ("zero_point_1", "zero_point_2", "output_zero_point"), [(0, 0, 0), (-128, 5, 7), (127, -1, -128)]
)
def test_divide_every_pair(driver, zero_point_1, zero_point_2, output_zero_point):
    codes = np.arange(-128, 128, dtype="i1")
    a, b = (grid.ravel() for grid in np.meshgrid(codes, codes))
    scales = [np.float32(s) for s in (1.0, 0.5, 37.5)]
    calls = [
        Call(
            "deploy_div_s8",
            (zero_point_1, zero_point_2, float_bits(float(scale)), output_zero_point, a.size),
            (a, b),
            a.shape,
        )
        for scale in scales
    ]
    numerator = (a.astype("i4") - zero_point_1).astype("f4")
    divisor = (b.astype("i4") - zero_point_2).astype("f4")
    quotient = np.divide(numerator, divisor, out=np.zeros_like(numerator), where=divisor != 0)
    for scale, result in zip(scales, driver.run(calls), strict=True):
        expected = np.clip(np.rint(quotient * scale) + output_zero_point, -128, 127)
        np.testing.assert_array_equal(result.output, expected)
