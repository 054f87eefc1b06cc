"""The library: a folder and a `.zip` that the Arduino IDE adds."""

import re
import zipfile

import pytest

from tests.arduino.conftest import compile_all, sources_of
from tests.conftest import golden_plan
from toolkit.board import load_board
from toolkit.errors import UsageError
from toolkit.rendering.sketch import Form, render_sketch


@pytest.fixture
def library(sketch):
    return sketch(name="KeyWords", form=Form.LIBRARY)


def test_it_has_what_the_specification_asks_for(library):
    lines = (library.folder / "library.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines)
    assert properties["name"] == "KeyWords"
    assert properties["includes"] == "KeyWords.h"
    assert re.fullmatch(r"\d+\.\d+\.\d+", properties["version"])
    assert properties["category"] == "Data Processing"
    assert set(properties) >= {"author", "maintainer", "sentence", "paragraph", "url", "architectures"}
    rows = [line for line in (library.folder / "keywords.txt").read_text().splitlines() if not line.startswith("#")]
    assert {"model\tKEYWORD1", "run\tKEYWORD2", "input\tKEYWORD2"} <= set(rows)
    assert (library.folder / "src" / "KeyWords.h").is_file()
    assert library.sketch == library.folder / "examples" / "KeyWords" / "KeyWords.ino"
    assert "#include <KeyWords.h>" in library.sketch.read_text()
    assert not (library.folder / "sketch.yaml").exists()


@pytest.mark.parametrize("board", ["nano33ble", "uno-q", "giga-r1", "nano-rp2040"])
def test_it_compiles_behind_the_macros_of_the_cores(sketch, tmp_path, board):
    rendered = sketch("resnet8" if board == "giga-r1" else "dae", board, name="Lib", form=Form.LIBRARY)
    sources = sources_of(rendered.folder)
    compile_all(sources, load_board(board).flags, tmp_path / "objects", include=[rendered.folder / "src"])


def test_only_the_header_lies_on_the_path_of_a_sketch(library):
    """Names such as stack.h must not stand in the way of other libraries."""
    assert [path.name for path in (library.folder / "src").iterdir() if path.is_file()] == ["KeyWords.h"]


def test_the_archive_holds_the_folder(library):
    assert library.archive == library.folder.with_name("KeyWords.zip")
    with zipfile.ZipFile(library.archive) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    present = {
        f"KeyWords/{path.relative_to(library.folder)}": path.read_bytes()
        for path in library.folder.rglob("*")
        if path.is_file() and path.name != "rendered.json"
    }
    assert held == present


def test_the_archive_is_the_same_every_time(tmp_path):
    plan = golden_plan("dae", "nano33ble")
    first = render_sketch(plan, tmp_path / "a" / "Lib", form=Form.LIBRARY).archive.read_bytes()
    second = render_sketch(plan, tmp_path / "b" / "Lib", form=Form.LIBRARY)
    assert second.archive.read_bytes() == first
    second.sketch.write_text("// mine\n")
    again = render_sketch(plan, tmp_path / "b" / "Lib", form=Form.LIBRARY)
    assert again.kept
    assert again.sketch.read_text() == "// mine\n"
    assert again.archive.read_bytes() == first  # the example that everybody gets


def test_a_board_that_arduino_does_not_know(tmp_path):
    with pytest.raises(UsageError, match="qemu-m33 is not an Arduino board") as caught:
        render_sketch(golden_plan("dae", "qemu-m33"), tmp_path / "Lib", form=Form.LIBRARY)
    assert "nano33ble" in caught.value.hint
