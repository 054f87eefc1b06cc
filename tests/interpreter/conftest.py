"""What the tests of this folder share: real programs, and ExecuTorch's runtime as the wheel brings it."""

import subprocess
from pathlib import Path

import pytest

from tests.interpreter.trees import board_installation, package
from tests.program import document
from toolkit.building.tools import HOST_GCC, require

ROOT = Path(__file__).parents[2]
GOLDEN = {
    name: ROOT / "tests" / "golden" / "models" / name / f"{name}.pte" for name in ("ds_cnn", "resnet8", "mbv1", "dae")
}
LOWERED = {path.stem: path for path in sorted((ROOT / "tests" / "program" / "lowered").glob("*.pte"))}
PROGRAMS = GOLDEN | LOWERED


def changed(name, change, *, in_segment=True):
    """The bytes of a sample after a change, its constants in a segment as today's exporters put them."""
    content = document.load(PROGRAMS[name].read_bytes())
    change(content)
    return document.dump(content, in_segment=in_segment)


@pytest.fixture(scope="session")
def wheel() -> Path:
    """Folder of the installed Python package."""
    return package()


@pytest.fixture(scope="session")
def header_flags(wheel) -> list[str]:
    """Compiler flags by which the public headers are found, as system headers."""
    include = wheel / "include"
    c10 = include / "executorch" / "runtime" / "core" / "portable_type" / "c10"
    return ["-std=c++17", "-DC10_USING_CUSTOM_GENERATED_MACROS", "-isystem", str(include), "-isystem", str(c10)]


@pytest.fixture(scope="session")
def host_program(wheel, header_flags, tmp_path_factory):
    """Builds a C++ program of this folder against the wheel's runtime; its path."""

    def build(source: Path) -> Path:
        program = tmp_path_factory.mktemp("host") / source.stem
        link = [f"-L{wheel / 'lib'}", "-lexecutorch", f"-Wl,-rpath,{wheel / 'lib'}"]
        command = [str(require(HOST_GCC)), "-O1", "-Wall", "-Wextra", "-Werror", *header_flags, str(source)]
        done = subprocess.run([*command, "-o", str(program), *link], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return program

    return build


@pytest.fixture(scope="session")
def for_board(tmp_path_factory, wheel):
    """An installation for a board, with a stand-in for the runtime, made once; its folder."""
    made = {}

    def get(board):
        if board.name not in made:
            folder = tmp_path_factory.mktemp(board.name) / "executorch"
            made[board.name] = board_installation(folder, board, wheel)
        return made[board.name]

    return get
