"""Chains of elementwise operators become tables."""

import numpy as np
import pytest

from toolkit.board import load_board
from toolkit.planning import make_plan
from toolkit.program.types import Activation, Add, DType, Maximum, MaxPool2d, Minimum, Mul, Program, Softmax, Tensor

VALUES = np.arange(-128, 128)


def int8(id, size, values=None):
    return Tensor(id, (size,), DType.INT8, (0,), None if values is None else np.array(values, np.int8).tobytes())


def clip(kind, index, source, limit, output, size=8):
    shapes = {"input_shape": (size,), "other_shape": (1,), "output_shape": (size,)}
    return kind(index=index, name=kind.__name__, input=source, other=limit, output=output, **shapes)


def planned(tensors, operators, inputs, outputs):
    program = Program("forward", "00" * 32, {t.id: t for t in tensors}, tuple(operators), inputs, outputs)
    return make_plan(program, load_board("qemu-m33"), model="chain")


def table(plan, step):
    return np.frombuffer(plan.tensor(step.operator.lut).constant, np.int8)


def test_two_bounds_are_one_lookup():
    tensors = [int8(0, 8), int8(1, 1, [3]), int8(2, 1, [10]), int8(3, 8), int8(4, 8)]
    plan = planned(tensors, [clip(Maximum, 0, 0, 1, 3), clip(Minimum, 1, 3, 2, 4)], (0,), (4,))
    (step,) = plan.steps
    assert isinstance(step.operator, Activation)
    assert (step.operator.input, step.operator.output) == (0, 4)
    assert np.array_equal(table(plan, step), np.clip(VALUES, 3, 10))
    assert plan.constant_bytes == 256


def test_a_value_used_twice_is_still_one_lookup():
    shapes = {"input_shape": (8,), "other_shape": (8,), "output_shape": (8,)}
    square = Mul(
        index=1, name="mul", input=0, other=2, output=3, **shapes,
        input_zero_point=0, other_zero_point=0, output_zero_point=-7, multiplier=2**30, shift=-4,
    )  # fmt: skip
    plan = planned(
        [int8(0, 8), int8(1, 1, [30]), int8(2, 8), int8(3, 8)], [clip(Minimum, 0, 0, 1, 2), square], (0,), (3,)
    )
    (step,) = plan.steps
    right = np.floor(VALUES * np.minimum(VALUES, 30) / 32 + 0.5) - 7
    exact = np.abs(VALUES * np.minimum(VALUES, 30) % 32) != 16  # ties of the two roundings are another test's matter
    assert np.array_equal(table(plan, step)[exact], np.clip(right, -128, 127)[exact])


def test_what_others_read_stays():
    tensors = [int8(0, 8), int8(1, 1, [3]), int8(2, 1, [10]), int8(3, 8), int8(4, 8)]
    plan = planned(tensors, [clip(Maximum, 0, 0, 1, 3), clip(Minimum, 1, 3, 2, 4)], (0,), (3, 4))
    assert [step.operator.output for step in plan.steps] == [3, 4]
    assert np.array_equal(table(plan, plan.steps[0]), np.maximum(VALUES, 3))
    assert np.array_equal(table(plan, plan.steps[1]), np.clip(VALUES, 3, 10))


def pooled_and_clamped(bounds, low, high, outputs=(4,)):
    """A maximum pooling with bounds of its own, then a clamp from below and from above."""
    pool = MaxPool2d(
        index=0, name="pool", input=0, output=5, input_shape=(1, 1, 16, 1), output_shape=(1, 1, 8, 1), kernel=(1, 2),
        stride=(1, 2), padding=(0, 0), activation_min=bounds[0], activation_max=bounds[1],
    )  # fmt: skip
    tensors = [int8(0, 16), int8(1, 1, [low]), int8(2, 1, [high]), int8(3, 8), int8(4, 8), int8(5, 8)]
    return planned(tensors, [pool, clip(Maximum, 1, 5, 1, 3), clip(Minimum, 2, 3, 2, 4)], (0,), outputs)


@pytest.mark.parametrize(
    ("bounds", "low", "high", "expected"),
    [((-128, 127), -10, 127, (-10, 127)), ((-5, 100), -10, 50, (-5, 50)), ((-5, 100), -128, 127, (-5, 100)),
     ((20, 30), -10, 10, (10, 10))],
)  # fmt: skip
def test_a_clamp_behind_a_layer_is_part_of_it(bounds, low, high, expected):
    plan = pooled_and_clamped(bounds, low, high)
    (step,) = plan.steps
    assert isinstance(step.operator, MaxPool2d)
    assert (step.operator.activation_min, step.operator.activation_max) == expected
    assert (step.operator.input, step.operator.output) == (0, 4)
    assert plan.constant_bytes == 0


def test_a_layer_that_others_read_keeps_its_bounds():
    plan = pooled_and_clamped((-128, 127), -10, 10, outputs=(4, 5))
    assert [type(step.operator) for step in plan.steps] == [MaxPool2d, Activation]
    assert plan.steps[0].operator.activation_max == 127


def test_two_tensors_are_no_table():
    shapes = {"input_shape": (8,), "other_shape": (8,), "output_shape": (8,)}
    scales = {f"{name}_{part}": 0 for name in ("input", "other", "output") for part in ("zero_point", "shift")}
    multipliers = {f"{name}_multiplier": 2**30 for name in ("input", "other", "output")}
    add = Add(
        index=0, name="add", input=0, other=1, output=2, **shapes, **scales, **multipliers,
        activation_min=-128, activation_max=127,
    )  # fmt: skip
    plan = planned([int8(0, 8), int8(1, 8), int8(2, 8)], [add], (0, 1), (2,))
    assert plan.steps[0].operator == add


def test_a_constant_per_element_is_no_table():
    shapes = {"input_shape": (8,), "other_shape": (8,), "output_shape": (8,)}
    op = Minimum(index=0, name="minimum", input=0, other=1, output=2, **shapes)
    plan = planned([int8(0, 8), int8(1, 8, range(8)), int8(2, 8)], [op], (0,), (2,))
    assert plan.steps[0].operator == op


def test_what_is_not_elementwise_ends_a_chain():
    tensors = [int8(0, 8), int8(1, 1, [3]), int8(2, 8), int8(3, 8), int8(4, 1, [5]), int8(5, 8)]
    softmax = Softmax(
        index=1, name="softmax", input=2, output=3, rows=1, row_size=8, multiplier=2**30, shift=20, diff_min=-100
    )
    operators = [clip(Maximum, 0, 0, 1, 2), softmax, clip(Minimum, 2, 3, 4, 5)]
    plan = planned(tensors, operators, (0,), (5,))
    assert [type(step.operator) for step in plan.steps] == [Activation, Softmax, Activation]
    assert np.array_equal(table(plan, plan.steps[2]), np.minimum(VALUES, 5))
