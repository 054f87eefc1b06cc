"""What planning knows of Arm's CMSIS-NN, against what was measured of it."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import golden_plan
from toolkit.board import Isa, load_board
from toolkit.errors import PlanError
from toolkit.planning import OUR_KERNELS, KernelLibrary, Place, make_plan
from toolkit.planning.cmsis_nn import add_quirk, compiled_isa, kernel_sums, quirk_of, scratch_of
from toolkit.planning.kernels import choose_kernels
from toolkit.planning.regions import HOT_CODE, HOT_CODE_OF_CMSIS_NN
from toolkit.planning.simplify import Graph
from toolkit.program.types import Dequantize, Linear, Quantize

from .cases import GOLDEN, cases, constants_of, operator_of

ARM = KernelLibrary("Arm CMSIS-NN 7.0.0", Path("/somewhere"))
BUILDS = {Isa.SCALAR: "plain_c", Isa.DSP: "m33", Isa.MVE: "m55"}
LINEAR = ("arm_fully_connected_s8", "arm_fully_connected_per_channel_s8")


@pytest.mark.parametrize("isa", Isa)
@pytest.mark.parametrize(
    ("function", "count"),
    [
        ("arm_avgpool_s8", 26),
        ("arm_batch_matmul_s8", 21),
        ("arm_convolve_wrapper_s8", 72),
        ("arm_depthwise_conv_wrapper_s8", 57),
        ("arm_transpose_conv_wrapper_s8", 46),
    ],
)
def test_scratch_is_what_the_library_asked_for(function, count, isa):
    checked = 0
    for case in cases("kernels", function):
        stored = case.params["scratch"]
        wanted = (stored[BUILDS[isa]], stored.get("reverse_conv_ctx", 0))
        assert scratch_of(operator_of(case), isa) == wanted, case.family
        checked += 1
    assert checked == count


@pytest.mark.parametrize("function", LINEAR)
def test_linear_layers_need_their_sums_in_vector_code_and_nothing_elsewhere(function):
    for case in cases("kernels", function):
        op = operator_of(case)
        sums = kernel_sums(op, constants_of(case))
        assert sums.dtype == np.int32
        assert np.array_equal(sums, case.arrays["kernel_sum"]), case.family
        assert case.params["scratch"] == case.params["scratch"] | {"plain_c": 0, "m33": 0, "m55": sums.nbytes}
        assert {scratch_of(op, isa) for isa in Isa} == {(0, 0)}


# --- where the library is wrong --------------------------------------------------------------------------------------

MACHINES = {"host": Isa.SCALAR, "m3": Isa.SCALAR, "m33": Isa.DSP, "m55": Isa.MVE}

# Right by coincidence, swapping the axes of one row moves nothing: the library is not trusted with it all the same.
LUCKY = {("arm_transpose_s8", "2d_identity_row")}
# Our kernels answer these with the same error.
REFUSED_BY_BOTH = {("arm_avgpool_s8", "window_all_padding")}
# Arithmetic inside kernels, out of the domain of what ExecuTorch passes; no operator.
NO_OPERATOR = {"arm_nn_doubling_high_mult_no_sat", "arm_nn_requantize"}


def wrong_on(case, machine):
    """Whether a build gave anything but the right answer, or wrote outside of its memory."""
    right = case.arrays["output_model"]
    answers = [case.arrays.get(f"output_{machine}{fill}") for fill in ("", "_fill2")]
    if any(answer is None or not np.array_equal(answer, right) for answer in answers):
        return True
    seen = case.params["observed"][machine]
    return bool(seen["output_bytes_past_end"] or seen["scratch_bytes_past_reported_size"] or any(seen["status"]))


def quirk(case, isa):
    if case.function == "arm_elementwise_add_s8":
        return add_quirk(case.params["left_shift"], isa)
    return quirk_of(operator_of(case), isa)


def quirk_functions():
    return sorted(path.stem for path in (GOLDEN / "quirks").glob("*.npz"))


@pytest.mark.parametrize("function", sorted(set(quirk_functions()) - NO_OPERATOR))
def test_every_call_that_is_wrong_somewhere_is_kept_from_the_library_there(function):
    for case in cases("quirks", function):
        for machine, isa in MACHINES.items():
            expected = wrong_on(case, machine) or (function, case.family) in LUCKY
            if (function, case.family) in REFUSED_BY_BOTH:
                expected = False
            assert bool(quirk(case, isa)) is expected, (case.family, machine)


# Of these functions no quirk is known.
SOUND = {"arm_elementwise_mul_s8", "arm_max_pool_s8", "arm_pad_s8", "arm_vector_sum_s8"}
WITH_QUIRKS = sorted({path.stem for path in (GOLDEN / "kernels").glob("arm_*_s8.npz")} - SOUND)


@pytest.mark.parametrize("function", WITH_QUIRKS)
def test_every_golden_call_may_go_to_the_library_where_it_was_right(function):
    kept = Counter()
    for case in cases("kernels", function):
        for isa in Isa:
            if quirk(case, isa):
                kept[case.family, isa] += 1
    expected = {
        "arm_convolve_wrapper_s8": {
            ("1xn_same_s2", Isa.MVE),
            ("1xn_valid_s2_leftover", Isa.MVE),
            ("1xn_valid_s2_exact", Isa.MVE),  # of the same kind, right in this one case
        },
        "arm_fully_connected_per_channel_s8": {
            (case.family, Isa.MVE)
            for case in cases("kernels", "arm_fully_connected_per_channel_s8")
            if case.params["isa_dependent"]
        },
        "arm_softmax_s8": {
            (case.family, isa)
            for case in cases("kernels", "arm_softmax_s8")
            if case.params["row_size"] >= 512
            for isa in Isa
        },
    }.get(function, set())
    assert set(kept) == expected


def test_what_depends_on_the_build_in_golden_data_is_kept_from_the_library():
    flagged = 0
    for function in WITH_QUIRKS:
        for case in cases("kernels", function):
            if case.params["isa_dependent"]:
                flagged += 1
                assert any(quirk(case, isa) for isa in Isa), (function, case.family)
    assert flagged == 6


# --- plans -----------------------------------------------------------------------------------------------------------


def planned(name, board, **changes):
    board = replace(load_board(board), **changes)
    return make_plan(golden_plan(name, "host").program, board, model=name, library=ARM)


def test_layers_are_arms_where_it_has_the_function():
    plan = planned("ds_cnn", "qemu-m33")
    for step in plan.steps:
        if isinstance(step.operator, Quantize | Dequantize):
            assert step.kernel.reason == "CMSIS-NN has no such function"
            assert step.kernel.function.startswith("deploy_")
        else:
            assert step.kernel.reason == ""
            assert step.kernel.function.startswith("arm_")
    assert plan.kernels == "Arm CMSIS-NN 7.0.0: 11 of 13 layers, ours for 2"
    assert make_plan(plan.program, plan.board, model="x").kernels == OUR_KERNELS.name


def test_scratch_is_planned_for_the_library():
    """ds_cnn's first layer has one input channel, its pointwise ones are 1x1: our kernels need memory there."""
    plan = planned("ds_cnn", "qemu-m33")
    assert [step.scratch.nbytes for step in plan.steps if step.scratch] == [4 * 64]  # the average pool
    ours = golden_plan("ds_cnn", "qemu-m33")
    assert ours.arena > plan.arena


@pytest.mark.parametrize(("board", "isa"), [("host", Isa.SCALAR), ("qemu-m33", Isa.DSP)])
def test_on_the_development_machine_it_is_plain_c(board, isa):
    assert compiled_isa(load_board(board)) is isa


def test_vector_code_gets_kernel_sums_instead_of_biases():
    plan = planned("dae", "qemu-m33", cpu="cortex-m55")
    linears = [step for step in plan.steps if isinstance(step.operator, Linear)]
    assert len(linears) == 10
    for step in linears:
        original = next(op for op in plan.program.operators if op.index == step.operator.index)
        sums = plan.tensor(step.kernel.kernel_sum)
        weights = np.frombuffer(plan.program.tensors[original.weight].constant, np.int8)
        bias = np.frombuffer(plan.program.tensors[original.bias].constant, np.int32)
        expected = bias + original.input_offset * weights.reshape(original.outputs, -1).sum(axis=1, dtype=np.int32)
        assert np.array_equal(np.frombuffer(sums.constant, np.int32), expected)
        assert step.operator.bias is None
        assert step.kernel.kernel_sum in plan.constants
    assert all(step.kernel.kernel_sum is None for step in planned("dae", "qemu-m33").steps)


def test_a_second_buffer_follows_the_first_and_is_aligned():
    seconds = []
    for case in cases("kernels", "arm_transpose_conv_wrapper_s8"):
        op = operator_of(case)
        first, second = scratch_of(op, Isa.DSP)
        _, (kernel,) = choose_kernels(Graph((op,), (), (), {}, {}), ARM, load_board("qemu-m33"))
        assert (kernel.scratch, kernel.second_scratch) == (first + second, second)
        if second:
            seconds.append(first % 16)
    assert set(seconds) == {0}


def test_more_ram_is_kept_for_code_that_is_compiled_for_speed():
    program = golden_plan("dae", "host").program
    board = load_board("pico2")
    plan = make_plan(program, board, model="dae", library=ARM)
    assert plan.regions.code_in_ram
    room = plan.constant_bytes + HOT_CODE
    tight = replace(board.ram, size=board.reserved_ram + board.stack + plan.arena + room)
    ours = make_plan(program, replace(board, ram=tight), model="dae", place=Place.RAM)
    assert ours.regions.code_in_ram
    with pytest.raises(PlanError, match=f"{plan.constant_bytes + HOT_CODE_OF_CMSIS_NN:,} bytes of RAM"):
        make_plan(program, replace(board, ram=tight), model="dae", place=Place.RAM, library=ARM)
