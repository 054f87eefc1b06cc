"""Plans of the golden models, and what planning takes away."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import golden_plan
from toolkit.board import Memory, load_board
from toolkit.errors import PlanError
from toolkit.planning import make_plan, parts
from toolkit.planning.simplify import moves_nothing
from toolkit.program import read_program
from toolkit.program.types import (
    Concatenate,
    Conv2d,
    Copy,
    DepthwiseConv2d,
    DType,
    Expand,
    Linear,
    Mul,
    Pad,
    Tensor,
    Transpose,
    View,
)

MODELS = ("ds_cnn", "resnet8", "mbv1", "dae")


def test_clones_views_and_empty_pads_are_gone():
    plan = golden_plan("ds_cnn", "qemu-m33")
    kinds = [type(step.operator) for step in plan.steps]
    assert not {Copy, View, Pad} & set(kinds)
    # The .pte has 16 instructions; two clones and an empty pad compute nothing.
    assert len(kinds) == 13
    assert set(plan.results) == set(range(16))
    assert plan.results[2] == plan.results[1]  # the first clone gives what the convolution before it gave
    assert plan.results[11] == plan.results[12] == plan.results[10]


@pytest.mark.parametrize("name", MODELS)
def test_biases_of_zeros_take_no_flash(name):
    plan = golden_plan(name, "qemu-m33")
    for step in plan.steps:
        if isinstance(step.operator, Conv2d | DepthwiseConv2d | Linear) and step.operator.bias is not None:
            assert np.frombuffer(plan.tensor(step.operator.bias).constant, np.int32).any()


@pytest.mark.parametrize("name", MODELS)
def test_only_what_a_step_reads_is_kept(name):
    plan = golden_plan(name, "qemu-m33")
    read = {id for step in plan.steps for id in step.operator.inputs}
    assert set(plan.constants) <= read
    whole = sum(tensor.nbytes for tensor in plan.program.tensors.values() if tensor.constant is not None)
    assert 0 < plan.constant_bytes <= whole


@pytest.mark.parametrize("name", MODELS)
def test_what_is_live_at_the_same_step_lies_apart(name):
    plan = golden_plan(name, "qemu-m33")
    for position, step in enumerate(plan.steps):
        live = [p for p in plan.activations.values() if p.first <= position <= p.last]
        output = plan.activations[step.operator.output]
        if step.kernel.in_place:
            live = [p for p in live if p is output or p.last != position]
        spans = sorted((p.span.offset, p.span.offset + p.span.nbytes) for p in live)
        if step.scratch:
            spans = sorted([*spans, (step.scratch.offset, step.scratch.offset + step.scratch.nbytes)])
        for (_, end), (start, _) in pairwise(spans):
            assert end <= start
        assert spans[-1][1] <= plan.arena


def lowered_plan(name):
    path = Path(__file__).parents[1] / "program" / "lowered" / f"{name}.pte"
    return make_plan(read_program(path.read_bytes(), source=name), load_board("qemu-m33"), model=name)


def test_what_is_computed_twice_is_computed_once():
    """Each of two convolutions has a transpose of its own in front of it, of the same input."""
    plan = lowered_plan("joining_explicit")
    transposes = [op for op in plan.program.operators if isinstance(op, Transpose)]
    source = transposes[0].input
    assert [op.index for op in transposes if op.input == source] == [1, 4]
    assert [step.operator.index for step in plan.steps if isinstance(step.operator, Transpose)][:1] == [1]
    assert not [step for step in plan.steps if step.operator.index == 4]
    assert plan.results[4] == plan.results[1]


def test_sums_and_products_repeat_their_operands_themselves():
    program = lowered_plan("joining_explicit").program
    expand = next(op for op in program.operators if isinstance(op, Expand))
    other = Tensor(9999, program.tensors[expand.output].shape, DType.INT8, (0, 1, 2, 3))
    shape = expand.output_shape
    words = {"index": 99, "name": "cortex_m::quantized_mul", "output": other.id, "input_shape": shape}
    words |= {"input_zero_point": 0, "other_zero_point": 0, "output_zero_point": 0, "multiplier": 2**30, "shift": -5}
    large = next(op.output for op in program.operators if isinstance(op, Concatenate))
    mul = Mul(input=large, other=expand.output, other_shape=shape, output_shape=shape, **words)
    changed = replace(
        program, operators=(*program.operators, mul), tensors=program.tensors | {other.id: other}, outputs=(other.id,)
    )
    plan = make_plan(changed, load_board("qemu-m33"), model="m")
    assert not [step for step in plan.steps if isinstance(step.operator, Expand)]
    last = plan.steps[-1].operator
    assert (last.other, last.other_shape) == (plan.results[14], expand.input_shape)


def test_an_input_is_quantised_in_place():
    plan = golden_plan("mbv1", "qemu-m33")
    source, result = plan.activations[plan.inputs[0]], plan.activations[plan.steps[0].operator.output]
    assert source.span.offset == result.span.offset
    assert plan.arena == 96 * 96 * 3 * 4  # the float image and nothing else


@pytest.mark.parametrize(
    ("shape", "permutation", "nothing"),
    [
        ((1, 1, 49, 10), (0, 2, 3, 1), True),
        ((1, 64, 25, 5), (0, 1, 2, 3), True),
        ((1, 64, 25, 5), (0, 2, 3, 1), False),
        ((2, 1, 3), (1, 0, 2), True),
        ((2, 1, 3), (2, 1, 0), False),
    ],
)
def test_permutations_of_axes_of_size_one_move_nothing(shape, permutation, nothing):
    assert moves_nothing(shape, permutation) is nothing
    x = np.arange(np.prod(shape)).reshape(shape)
    assert np.array_equal(x.ravel(), np.transpose(x, permutation).ravel()) is nothing


def small(board, *, flash=None, ram=None):
    """The board with less memory."""
    board = replace(board, name="small")
    if flash:
        board = replace(board, flash=Memory(board.flash.origin, flash))
    return replace(board, ram=Memory(board.ram.origin, ram)) if ram else board


def test_a_model_that_does_not_fit_is_refused_with_a_table():
    plan = golden_plan("mbv1", "qemu-m33")
    with pytest.raises(PlanError, match="does not fit the ram of small") as caught:
        make_plan(plan.program, small(plan.board, ram=100 * 1024), model="mbv1")
    table = caught.value.hint
    assert "arena" in table
    assert "110,592" in table
    assert f"of {100 * 1024:,} bytes" in table
    assert "The arena is fullest in" in table


def test_constants_that_do_not_fit_name_the_largest():
    plan = golden_plan("dae", "qemu-m33")
    layers = [""] * 20
    layers[1] = "encoder.0"
    with pytest.raises(PlanError, match="does not fit the flash of small") as caught:
        make_plan(plan.program, small(plan.board, flash=256 * 1024), model="dae", layer_names=layers)
    assert "81,920 bytes, in encoder.0" in caught.value.hint


def test_parts_add_up():
    plan = golden_plan("dae", "qemu-m33")
    board = load_board("qemu-m33")
    taken = {(part.memory, part.name): part.nbytes for part in parts(plan)}
    assert taken["flash", "constants"] == plan.constant_bytes
    assert taken["ram", "arena"] == plan.arena
    assert taken["ram", "stack"] == board.stack
