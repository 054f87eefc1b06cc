"""Every golden kernel case, run as a program of one operator; and the primitives underneath."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit.reference import arithmetic

from .single import Case, evaluate, single_operator

GOLDEN = Path(__file__).parent.parent / "golden"

OPERATORS = (
    "arm_avgpool_s8",
    "arm_batch_matmul_s8",
    "arm_convolve_wrapper_s8",
    "arm_depthwise_conv_wrapper_s8",
    "arm_elementwise_add_s8",
    "arm_elementwise_mul_s8",
    "arm_fully_connected_per_channel_s8",
    "arm_fully_connected_s8",
    "arm_max_pool_s8",
    "arm_maximum_s8",
    "arm_minimum_s8",
    "arm_pad_s8",
    "arm_softmax_s8",
    "arm_transpose_conv_wrapper_s8",
    "arm_transpose_s8",
)
PRIMITIVES: dict[str, Callable[[Case], Any]] = {
    "arm_nn_requantize": lambda c: arithmetic.requantize(c.int64("input"), c.int64("multipliers"), c.int64("shifts")),
    "arm_nn_doubling_high_mult": lambda c: arithmetic.high_multiply_saturating(
        c.int64("input"), c.int64("multipliers")
    ),
    "arm_nn_doubling_high_mult_no_sat": lambda c: arithmetic.high_multiply(c.int64("input"), c.int64("multipliers")),
    "arm_nn_divide_by_power_of_two": lambda c: arithmetic.divide_by_power_of_two(c.int64("input"), c.int64("shifts")),
    "arm_nn_exp_on_negative_values": lambda c: arithmetic.exp_on_negative_values(c.int64("input")),
    "arm_nn_one_over_one_plus_x_for_x_in_0_1": lambda c: arithmetic.one_over_one_plus(c.int64("input")),
}
NOT_IN_PROGRAMS = {
    # Sums in programs are always shifted by 20.
    *(f"left_shift_{shift}" for shift in (0, 4, 8, 12, 15, 16, 18)),
    # The reader refuses windows without a sample.
    "window_all_padding",
}
"""Quirk cases for what programs do not have."""


def cases(folder: str, names: tuple[str, ...]) -> list[Any]:
    found: list[Any] = []
    for name in names:
        path = GOLDEN / folder / f"{name}.npz"
        if not path.exists():
            continue
        arrays = np.load(path)
        for index in range(int(arrays["n_cases"])):
            params = json.loads(str(arrays[f"case{index}_params"]))
            prefix = f"case{index}_"
            case = Case(
                function=name,
                params=params,
                arrays={key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)},
            )
            if params["family"] not in NOT_IN_PROGRAMS:
                found.append(pytest.param(case, id=f"{name}-{params['family']}"))
    return found


@pytest.mark.parametrize("case", cases("kernels", OPERATORS))
def test_operator_equals_golden_output(case: Case) -> None:
    np.testing.assert_array_equal(evaluate(single_operator(case), case), case.arrays["output"])


@pytest.mark.parametrize("case", cases("quirks", OPERATORS))
def test_operator_equals_the_right_answer_where_the_library_is_wrong(case: Case) -> None:
    # A softmax over a long row shifts too far for C; the reference does what every Arm core does there.
    right = "output_m33" if case.function == "arm_softmax_s8" else "output_model"
    np.testing.assert_array_equal(evaluate(single_operator(case), case), case.arrays[right])


@pytest.mark.parametrize("case", cases("kernels", tuple(PRIMITIVES)))
def test_primitive_equals_golden_output(case: Case) -> None:
    np.testing.assert_array_equal(PRIMITIVES[case.function](case), case.arrays["output"])


@pytest.mark.parametrize("case", cases("quirks", tuple(PRIMITIVES)))
def test_primitive_outside_its_documented_range(case: Case) -> None:
    np.testing.assert_array_equal(PRIMITIVES[case.function](case), case.arrays["output_model"])


def test_every_golden_file_is_covered_or_named_as_no_operator() -> None:
    files = {path.stem for folder in ("kernels", "quirks") for path in (GOLDEN / folder).glob("*.npz")}
    assert files == {*OPERATORS, *PRIMITIVES, "arm_vector_sum_s8"}
