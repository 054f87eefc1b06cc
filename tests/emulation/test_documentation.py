"""The page about the virtual board says what the code has: blocks, parts, misbehaviours."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from toolkit.emulation.rp2350 import chip
from toolkit.emulation.rp2350.misbehaviour import KINDS, parse

PAGE = (Path(__file__).parents[2] / "docs" / "virtual-pico2.md").read_text(encoding="utf-8")


def rows(heading):
    """Cells of the table below a row that begins with a heading."""
    lines = PAGE.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def test_every_block_of_the_address_map_is_in_the_table():
    expected = [[area.name, f"`{area.base:#010x}`", area.section, area.model.value, area.note] for area in chip.AREAS]
    assert rows("block") == expected


def test_every_part_beside_the_address_map_is_in_the_table():
    assert rows("beside the address map") == [[name, model.value, note] for name, model, note in chip.PARTS]


def test_blocks_do_not_overlap():
    ordered = sorted(chip.AREAS, key=lambda area: area.base)
    for one, next_one in pairwise(ordered):
        assert one.base + one.size <= next_one.base, (one.name, next_one.name)


@pytest.mark.parametrize("name", KINDS)
def test_every_misbehaviour_is_described_by_an_example_that_works(name):
    examples = [spec for cells in rows("SPEC") for spec in re.findall(r"`([^`]+)`", cells[0])]
    (example,) = [spec for spec in examples if spec.split(":")[0] == name]
    assert isinstance(parse(example), KINDS[name])


def test_what_is_not_modelled_is_really_not_there(probe):
    from tests.emulation.bench import Bench

    machine = Bench(probe).machine
    mapped = [(begin, end) for begin, end, _ in machine.engine._uc.mem_regions()]
    for area in chip.AREAS:
        there = any(begin <= area.base <= end for begin, end in mapped)
        assert there is (area.model is not chip.Model.NONE), area.name
