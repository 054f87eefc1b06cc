"""Repetitions between transposes, against the operators as they were."""

import numpy as np
import pytest

from toolkit.planning.repetitions import without_repetitions
from toolkit.program.types import DType, Expand, Program, Tensor, Transpose
from toolkit.reference import execute


def program(shape, first, times, last, *, inner):
    """A transpose, a repetition of every axis (each element, or the whole axis), and another transpose."""
    moved = tuple(shape[axis] for axis in first)
    before, after = [], []
    for size, count in zip(moved, times, strict=True):
        before += [size] if count == 1 else [size, 1] if inner else [1, size]
        after += [size] if count == 1 else [size, count] if inner else [count, size]
    large = tuple(size * count for size, count in zip(moved, times, strict=True))
    result = tuple(large[axis] for axis in last)
    tensors = {
        id: Tensor(id, sizes, DType.INT8, tuple(range(len(sizes))))
        for id, sizes in enumerate([shape, moved, tuple(after), result])
    }
    operators = (
        Transpose(index=0, name="t", output=1, input=0, input_shape=shape, permutation=first),
        Expand(index=1, name="e", output=2, input=1, input_shape=tuple(before), output_shape=tuple(after)),
        Transpose(index=2, name="t", output=3, input=2, input_shape=large, permutation=last),
    )
    return Program("forward", "", tensors, operators, (0,), (3,))


def simplified(original):
    return Program("forward", "", original.tensors, without_repetitions(original.operators), (0,), (3,))


def result(of, values):
    return execute(of, [values]).outputs[0]


def test_what_becomes_of_them_is_the_same():
    """Random shapes, permutations and counts; many turn into one repetition, many do not, and none changes a value."""
    random = np.random.default_rng(5)
    kinds = set()
    for number in range(600):
        rank = int(random.integers(2, 5))
        shape = tuple(int(size) for size in random.integers(1, 4, rank))
        first = tuple(int(axis) for axis in random.permutation(rank))
        back = tuple(first.index(axis) for axis in range(rank))
        last = back if number % 2 else tuple(int(axis) for axis in random.permutation(rank))
        times = tuple(int(count) for count in random.integers(1, 4, rank))
        original = program(shape, first, times, last, inner=bool(random.integers(2)))
        changed = simplified(original)
        values = random.integers(-128, 128, shape).astype(np.int8)
        np.testing.assert_array_equal(result(changed, values), result(original, values))
        kinds.add((number % 2, type(changed.operators[-1])))
    assert kinds == {(0, Expand), (0, Transpose), (1, Expand)}  # what a transpose undoes always turns


@pytest.mark.parametrize("inner", [True, False])
def test_upsampling_of_a_channels_last_image_is_one_repetition(inner):
    original = program((1, 4, 5, 3), (0, 3, 1, 2), (1, 1, 2, 2), (0, 2, 3, 1), inner=inner)
    last = simplified(original).operators[-1]
    assert (last.input, last.output, last.index) == (0, 3, 2)
    assert last.output_shape == ((1, 4, 2, 5, 2, 3) if inner else (1, 2, 4, 2, 5, 3))


def test_axes_that_a_view_has_joined_stay_where_they_are():
    original = program((1, 4, 5, 3), (0, 3, 1, 2), (1, 1, 2, 2), (0, 2, 3, 1), inner=True)
    first, expand, last = original.operators
    joined = Expand(index=1, name="e", output=2, input=1, input_shape=(60, 1), output_shape=(60, 4))
    operators = without_repetitions([first, joined, last])
    assert operators == (first, joined, last)
    assert without_repetitions([first, expand, last])[-1] != last
