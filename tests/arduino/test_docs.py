"""What the documentation shows is what sketches and board files have."""

import re
from dataclasses import fields
from pathlib import Path

from tests.arduino.conftest import compile_all, sources_of
from tests.conftest import golden_plan
from toolkit.board import Arduino, load_board
from toolkit.rendering.sketch import render_sketch

DOCS = Path(__file__).parents[2] / "docs"


def test_the_sketch_in_the_documentation_compiles(tmp_path):
    (code,) = re.findall(r"```cpp\n(.*?)```", (DOCS / "arduino.md").read_text(), re.DOTALL)
    rendered = render_sketch(golden_plan("dae", "nano33ble"), tmp_path / "Digits")
    rendered.sketch.write_text(code)
    compile_all(sources_of(rendered.folder), load_board("nano33ble").flags, tmp_path / "objects")


def test_every_key_of_an_arduino_board_is_described():
    text = (DOCS / "boards.md").read_text()
    for field in fields(Arduino):
        assert f"`{field.name}`" in text, field.name


def test_the_machines_of_the_twins_are_described():
    text = (DOCS / "boards.md").read_text()
    for name in ("nano33ble", "nano-rp2040", "giga-r1", "uno-q"):
        twin = load_board(name).twin
        assert f"| `{twin.machine}` | `{twin.flash_origin:#010x}` | `{twin.ram_origin:#010x}` |" in text


def test_links_lead_somewhere():
    for name in ("arduino.md", "boards.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (DOCS / name).read_text()):
            assert (DOCS / target).exists(), target
