"""Sketches of golden models, and what compiles them."""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import golden_plan
from toolkit.building import find
from toolkit.building.tools import ARM_GCC
from toolkit.rendering.sketch import render_sketch
from toolkit.resources import resource

CORE = resource("firmware") / "ports" / "arduino-core"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


@pytest.fixture
def sketch(tmp_path):
    """Renders a golden model as a sketch: what `render_sketch` returns."""

    def make(model="dae", board="nano33ble", name="Sketch", **words):
        return render_sketch(golden_plan(model, board), tmp_path / name, **words)

    return make


def compile_all(sources, flags, folder, include=(), standard="gnu++14"):
    """Compile every source as an Arduino core would, with the core's macros before the first line of each."""
    compiler = find(ARM_GCC)
    folder.mkdir(exist_ok=True)
    for number, source in enumerate(sources):
        c = source.suffix in (".c", ".S")
        language = {".c": "c", ".S": "assembler-with-cpp"}.get(source.suffix, "c++")
        before = "Arduino.h" if source.suffix == ".ino" else "hostile.h"
        words = [compiler, *flags, "-Os", "-x", language, "-c", source, "-o", folder / f"{number}.o", "-I", CORE]
        if source.suffix != ".S":
            (folder / "hostile.h").write_text(HOSTILE)
            words += [*WARNINGS, f"-std={'gnu11' if c else standard}", "-I", folder, "-include", before]
            words += [] if c else ["-fno-exceptions", "-fno-rtti"]
        words += [word for path in include for word in ("-I", path)]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{source}\n{done.stderr}"


HOSTILE = """
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "macros.h"
"""


def sources_of(folder: Path):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".c", ".cpp", ".S", ".ino"))
