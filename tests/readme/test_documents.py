"""Tables of the documents are what the code says."""

from pathlib import Path

import pytest

from toolkit.emulation import rp2350
from toolkit.emulation.rp2350.chip import AREAS, PARTS

DOCS = Path(__file__).parents[2] / "docs"
VIRTUAL_PICO2 = (DOCS / "virtual-pico2.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
def test_every_block_of_the_chip_is_in_the_table(area):
    row = f"| {area.name} | `{area.base:#010x}` | {area.section} | {area.model.value} | {area.note} |"
    assert row in VIRTUAL_PICO2.splitlines()


def test_the_table_has_no_other_rows():
    rows = [line for line in VIRTUAL_PICO2.splitlines() if line.startswith("| ") and "`0x" in line]
    assert len(rows) == len(AREAS)
    for name, model, note in PARTS:
        assert f"| {name} | {model.value} | {note} |" in VIRTUAL_PICO2.splitlines()


def test_every_misbehaviour_is_shown_with_an_example_that_works():
    shown = [
        line.split("`")[1]
        for line in VIRTUAL_PICO2.splitlines()
        if line.startswith("| `") and line.split("`")[1].split(":")[0] in rp2350.misbehaviour.KINDS
    ]
    assert {rp2350.misbehaviour.text_of(rp2350.parse_fault(text)).split(":")[0] for text in shown} == set(
        rp2350.misbehaviour.KINDS
    )
