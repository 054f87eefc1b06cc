"""Programs of another core are refused: the stock interpreter would answer wrong numbers and say that all is well."""

from dataclasses import replace

import pytest

from tests.interpreter.conftest import GOLDEN, PROGRAMS, changed
from tests.program.document import argument, operator_names
from toolkit.board import load_board
from toolkit.errors import PlanError
from toolkit.interpreter.isa import check_isa

M33 = load_board("qemu-m33")
M55 = replace(M33, name="an-m55", cpu="cortex-m55")
M0 = replace(M33, name="an-m0", cpu="cortex-m0")


def check(name, board):
    path = PROGRAMS[name]
    check_isa(path.read_bytes(), board, source=path.name)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "linears_m55"])
def test_programs_for_this_core_are_taken(name):
    check(name, M33)


def test_a_kernel_sum_stands_in_for_a_bias_on_mve_only():
    with pytest.raises(PlanError) as caught:
        check("linears_m55", M33)
    assert caught.value.where == "linears_m55.pte, operator 1 (cortex_m::quantized_linear)"
    assert caught.value.what == (
        "its bias is only in a kernel sum, which this core's kernel does not read: wrong numbers. "
        "The program fits a core with MVE; qemu-m33 has a core with DSP"
    )
    assert "cortex-m33" in caught.value.hint
    check("linears_m55", M55)


@pytest.mark.parametrize("name", GOLDEN)
def test_programs_for_an_m33_are_refused_on_an_m55(name):
    with pytest.raises(PlanError, match="The program fits a core without DSP or a core with DSP; an-m55 has a core"):
        check(name, M55)


def test_too_little_scratch_is_refused():
    with pytest.raises(PlanError, match="it has 112 bytes of scratch and needs 128"):
        check("convolutions_explicit", M55)


def test_more_scratch_than_needed_is_no_reason():
    """What a core with DSP asks for is never less than what one without it does."""
    for name in PROGRAMS:
        if name != "linears_m55":
            check(name, M0)


def test_a_program_for_a_core_without_dsp_lacks_scratch_on_one_with_it():
    """Such a lowering gives average pooling no scratch; with DSP it needs a sum per channel."""

    def change(document):
        (pool,) = [
            index for index, name in enumerate(operator_names(document)) if name == "cortex_m::quantized_avg_pool2d"
        ]
        argument(document, pool, 8).update(sizes=[0], allocation_info={"memory_id": 1})

    pte = changed("ds_cnn", change)
    check_isa(pte, M0, source="ds_cnn.pte")
    with pytest.raises(PlanError, match="it has 0 bytes of scratch and needs 256") as caught:
        check_isa(pte, M33, source="ds_cnn.pte")
    assert "fits a core without DSP; qemu-m33 has a core with DSP" in caught.value.what
    assert caught.value.where == "ds_cnn.pte, operator 13 (cortex_m::quantized_avg_pool2d)"
