"""Loops around elementwise kernels, against numpy's broadcasting."""

from itertools import product

import numpy as np
import pytest

from toolkit.rendering.broadcasting import loops_of


def walked(first, second, shape):
    """The sum of two arrays, computed by walking the loops over flat memory."""
    loops, block = loops_of(first.shape, second.shape, shape)
    a, b, out = first.ravel(), second.ravel(), np.full(int(np.prod(shape)), -1)
    for steps in product(*(range(loop.count) for loop in loops)):
        i = sum(step * loop.input_step for step, loop in zip(steps, loops, strict=True))
        j = sum(step * loop.other_step for step, loop in zip(steps, loops, strict=True))
        k = sum(step * loop.output_step for step, loop in zip(steps, loops, strict=True))
        out[k : k + block] = a[i : i + block] + b[j : j + block]
    return out.reshape(shape)


SHAPES = [(2, 3, 4, 5), (1, 3, 4, 5), (1, 1, 1, 5), (5,), (4, 5), (1, 3, 1, 1), (2, 1, 4, 1), (1, 1, 1, 1), ()]


@pytest.mark.parametrize(("first", "second"), list(product(SHAPES, SHAPES)))
def test_as_numpy_does(first, second):
    source = np.random.default_rng(1)
    a, b = source.integers(0, 1000, first), source.integers(0, 1000, second)
    right = a + b
    assert np.array_equal(walked(a, b, right.shape), right)


def test_equal_shapes_need_no_loop():
    assert loops_of((2, 3, 4), (2, 3, 4), (2, 3, 4)) == ((), 24)


def test_a_value_per_channel_is_one_loop():
    loops, block = loops_of((1, 7, 9, 16), (16,), (1, 7, 9, 16))
    assert (len(loops), loops[0].count, block) == (1, 63, 16)
