"""Kernels that move elements: blocks with gaps, repeated blocks, and blocks of several tensors in turn."""

import numpy as np
import pytest

from .calls import Call


def codes(random, *shape):
    return random.integers(-128, 128, shape).astype("i1")


@pytest.mark.parametrize("block", [1, 2, 3, 4, 7, 16, 33])
def test_blocks_are_copied_from_step_to_step(driver, block):
    """Dense, from a slice, to every second pixel, and one block again and again."""
    random = np.random.default_rng(block)
    calls, expected = [], []
    for count, input_step in [(1, block), (5, block), (6, 2 * block), (4, block + 3), (9, 0), (1, 0)]:
        source = codes(random, max(count * input_step, block))
        taken = np.stack([source[i * input_step : i * input_step + block] for i in range(count)])
        calls.append(Call("deploy_copy_s8", (input_step, block, block, count), (source,), taken.shape))
        expected.append(taken)
    for result, right in zip(driver.run(calls), expected, strict=True):
        np.testing.assert_array_equal(result.output, right)
        assert result.broken_blocks == 0


def test_what_lies_between_the_blocks_stays(driver):
    random = np.random.default_rng(1)
    for block in (1, 3):
        source = codes(random, 4, block)
        before = np.zeros((3 * 5 + block,), "i1")
        call = Call("deploy_copy_s8", (block, 5, block, 4), (source,), before.shape)
        written, untouched = driver.run([call])[0].output, [i for i in range(3 * 5) if i % 5 >= block]
        for i in range(4):
            np.testing.assert_array_equal(written[5 * i : 5 * i + block], source[i])
        assert len(set(written[untouched].tolist())) == 1  # what the memory held before


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenations(driver, axis):
    random = np.random.default_rng(axis)
    shapes = [[3, 4, 5] for _ in range(4)]
    for shape, size in zip(shapes, (1, 6, 2, 3), strict=True):
        shape[axis] = size
    parts = [codes(random, *shape) for shape in shapes]
    right = np.concatenate(parts, axis)
    blocks = [int(np.prod(shape[axis:])) for shape in shapes]
    rows = int(np.prod(right.shape[:axis]))
    calls = [Call("deploy_concatenate_s8", (rows, len(parts), *blocks), tuple(parts), right.shape)]
    calls.append(Call("deploy_concatenate_s8", (rows, 1, blocks[1]), (parts[1],), parts[1].shape))
    for result, expected in zip(driver.run(calls), (right, parts[1]), strict=True):
        np.testing.assert_array_equal(result.output, expected)
        assert result.broken_blocks == 0
