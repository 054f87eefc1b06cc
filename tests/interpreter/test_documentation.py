"""The figures of docs/engines.md are what was measured, and what is planned today."""

import re

import pytest

from benchmarks.golden_models import STOCK
from tests.interpreter.conftest import GOLDEN, ROOT
from tests.interpreter.test_pools import MEASURED, PLANNED
from toolkit.board import load_board
from toolkit.interpreter import make_interpreter_plan

DOCUMENT = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GOLDEN)
def test_the_table_of_bytes(name):
    (row,) = re.findall(rf"^\| {name} \|(.*)\|$", DOCUMENT, re.MULTILINE)
    runtime, program, planned, measured, method, temporary = (int(cell.replace(",", "")) for cell in row.split("|"))
    pools = make_interpreter_plan(GOLDEN[name].read_bytes(), load_board("qemu-m33"), model=name, source=name).pools
    assert (planned, method, temporary) == (*pools.planned, pools.method, pools.temporary)
    assert (planned, measured) == (PLANNED[name], MEASURED[name])
    assert program == GOLDEN[name].stat().st_size
    assert runtime + program == STOCK[name].flash


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", DOCUMENT):
        assert (ROOT / "docs" / target).resolve().exists(), target
    assert re.search(r"^## What you get$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_options_are_those_that_the_error_names():
    from toolkit.interpreter.installation import how_to_build

    hint = how_to_build(load_board("qemu-m33"), ("cortex_m::pad.out", "dim_order_ops::_clone_dim_order.out"))
    options = set(re.findall(r"-D[A-Z_]+", hint))
    assert len(options) >= 10
    assert options <= set(re.findall(r"-D[A-Z_]+", DOCUMENT))
    assert '-DEXECUTORCH_SELECT_OPS_LIST="dim_order_ops::_clone_dim_order.out"' in hint
