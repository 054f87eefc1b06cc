"""What the README claims is a command, and here it runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.golden_models import STOCK, measure

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands():
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_every_command_in_order(tmp_path):
    """In a folder that looks like a clone from outside; `./deploy test` is what runs this."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    listed = commands()
    assert len(listed) >= 10
    for command in listed:
        program, *words = shlex.split(command)
        assert program == "./deploy"
        if words == ["test"]:
            continue
        done = subprocess.run(
            [sys.executable, "-c", "from toolkit.cli import main; main()", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("name", STOCK)
def test_the_table_of_figures(name):
    """The figures are one compiler's; another version's may differ by a few per cent."""
    (row,) = re.findall(rf"^\| {name} \|(.*)\|$", README, re.MULTILINE)
    instructions, stock_instructions, flash, stock_flash, ram, stock_ram = (
        int(cell.replace(",", "")) for cell in row.split("|")
    )
    stock = STOCK[name]
    assert (stock_instructions, stock_flash, stock_ram) == (stock.instructions, stock.flash, stock.ram)
    ours = measure(name)
    assert ours.instructions == pytest.approx(instructions, rel=0.05)
    assert ours.flash == pytest.approx(flash, rel=0.03)
    assert ours.ram == pytest.approx(ram, rel=0.03)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target
