"""What goes to RAM where flash is slow."""

from dataclasses import replace

import pytest

from tests.conftest import golden_plan
from toolkit.board import Memory, load_board
from toolkit.errors import PlanError
from toolkit.planning import Place, make_plan
from toolkit.planning.regions import HOT_CODE
from toolkit.program.types import Conv2d, Dequantize, DType, Linear, Program, Quantize, Tensor


def planned(name, board, place=Place.AUTO, ram=None):
    board = load_board(board)
    if ram is not None:
        board = replace(board, ram=Memory(board.ram.origin, ram))
    return make_plan(golden_plan(name, "host").program, board, model=name, place=place)


@pytest.mark.parametrize("name", ["ds_cnn", "resnet8", "mbv1", "dae"])
def test_on_a_pico_2_every_golden_model_fits_in_ram(name):
    plan = planned(name, "pico2")
    assert plan.regions.code_in_ram
    assert plan.regions.constants_in_ram == set(plan.constants)
    assert plan.constant_bytes_in_ram == plan.constant_bytes


@pytest.mark.parametrize("board", ["qemu-m33", "host"])
def test_where_flash_is_fast_nothing_is_copied(board):
    assert planned("ds_cnn", board).regions.constants_in_ram == frozenset()
    assert planned("ds_cnn", board).regions.code_in_ram is False


def test_flash_and_ram_can_be_forced():
    flash = planned("dae", "pico2", Place.FLASH)
    assert (flash.regions.code_in_ram, flash.constant_bytes_in_ram) == (False, 0)
    ram = planned("dae", "qemu-m33", Place.RAM)
    assert (ram.regions.code_in_ram, ram.constant_bytes_in_ram) == (True, ram.constant_bytes)


def test_what_does_not_fit_in_ram_cannot_be_forced_there():
    with pytest.raises(PlanError, match=r"take 287,264 bytes of RAM; beside the arena") as caught:
        planned("dae", "pico2", Place.RAM, ram=200_000)
    assert "--place auto" in caught.value.hint


def test_when_room_is_short_the_constants_that_are_read_most_come_first():
    plan = planned("resnet8", "pico2", ram=49_728 + 12_288 + 4_096 + HOT_CODE + 30_000)
    chosen = plan.regions.constants_in_ram
    assert 15_000 < plan.constant_bytes_in_ram <= 30_000
    weights = {step.operator.weight: step.operator for step in plan.steps if isinstance(step.operator, Conv2d | Linear)}
    rows = {id: op.output_shape[1] if isinstance(op, Conv2d) else 1 for id, op in weights.items()}
    # The early layers have the most pixels: each of their weights is read over and over.
    assert all(id in chosen for id in weights if rows[id] == 32)
    assert all(rows[id] <= 16 for id in weights if id not in chosen)
    assert any(rows[id] == 8 for id in weights if id not in chosen)


def test_with_no_room_at_all_it_runs_from_flash():
    plan = planned("ds_cnn", "pico2", ram=16_256 + 12_288 + 4_096 + 8_000)
    assert plan.regions.code_in_ram is False
    assert plan.regions.constants_in_ram == frozenset()


def copying(size):
    """A program whose only input takes 4 * size bytes."""
    tensors = {0: Tensor(0, (1, size), DType.FLOAT32, (0, 1)), 1: Tensor(1, (1, size), DType.INT8, (0, 1))}
    tensors[2] = Tensor(2, (1, size), DType.FLOAT32, (0, 1))
    numbers = {"scale": 0.1, "zero_point": 0, "quant_min": -128, "quant_max": 127}
    operators = (
        Quantize(index=0, name="quantize", input=0, output=1, **numbers),
        Dequantize(index=1, name="dequantize", input=1, output=2, **numbers),
    )
    return Program("forward", "00" * 32, tensors, operators, (0,), (2,))


def test_an_arena_of_600_kilobytes_does_not_fit_a_pico_2():
    with pytest.raises(PlanError, match="does not fit the ram of pico2") as caught:
        make_plan(copying(150_000), load_board("pico2"), model="large")
    assert "of 532,480 bytes" in caught.value.hint
    assert "take a larger board" in caught.value.hint
