"""The rendered project: readable, safe, complete, and its own."""

import json
import re
import shutil
import subprocess

import pytest

from tests.conftest import golden_plan
from toolkit.board import load_board
from toolkit.building import build, find
from toolkit.building.tools import CMAKE, NINJA
from toolkit.errors import DeployError
from toolkit.planning import make_plan
from toolkit.rendering import MANIFEST, render


def test_it_builds_by_plain_cmake_without_this_toolkit(tmp_path):
    render(golden_plan("dae", "qemu-m33"), tmp_path / "elsewhere")
    moved = shutil.move(tmp_path / "elsewhere", tmp_path / "moved")
    cmake, ninja = find(CMAKE), find(NINJA)
    configure = [cmake, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", "-S", ".", "-B", "build"]
    for command in (configure, [cmake, "--build", "build"]):
        subprocess.run(command, cwd=moved, check=True, env={"PATH": "/usr/bin:/bin"})
    assert (tmp_path / "moved" / "build" / "runner.elf").is_file()


HOSTILE = 'x*/ int main(){}/*\n#error "no"\\\n??/ "); system("rm") // \u202e'


def test_names_from_a_model_never_reach_c_unsanitised(tmp_path):
    plan = golden_plan("dae", "host")
    plan = make_plan(plan.program, plan.board, model=HOSTILE, layer_names=[HOSTILE] * 20)
    render(plan, tmp_path / "p")
    build(tmp_path / "p", plan.board)  # it still compiles, without a warning
    for name in ("model.cpp", "model.h", "model_data.c", "model_data.h"):
        text = (tmp_path / "p" / name).read_text()
        assert text.isascii()
        assert not any(fragment in text for fragment in ("*/ int", "#error", "??/", "system(")), name
    header = (tmp_path / "p" / "model.h").read_text()
    (name,) = re.findall(r'#define MODEL_NAME "(.*)"', header)
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,80}", name)


def test_the_code_says_which_layer_it_is(tmp_path):
    plan = golden_plan("dae", "host")
    names = [f"net.{index}" for index in range(20)]
    render(make_plan(plan.program, load_board("host"), model="dae", layer_names=names), tmp_path / "p")
    code = (tmp_path / "p" / "model.cpp").read_text()
    assert (
        '// 01  Linear  "net.1"\n//     int8 (1, 640) -> int8 (1, 128)\n'
        "//     input zero point -15, output zero point -128, clamped to -128..127\n"
        "bool layer_01() {\n"
    ) in code


def test_no_line_of_the_model_is_too_long(tmp_path):
    render(golden_plan("mbv1", "host"), tmp_path / "p")
    for name in ("model.cpp", "model.h", "model_data.c", "model_data.h"):
        long = [line for line in (tmp_path / "p" / name).read_text().splitlines() if len(line) > 120]
        assert long == [], name


def test_rendering_again_touches_nothing(tmp_path):
    plan = golden_plan("dae", "host")
    render(plan, tmp_path / "p")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "p").rglob("*") if path.name != MANIFEST}
    render(plan, tmp_path / "p")
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "p").rglob("*") if path.name != MANIFEST}
    assert before == after


def test_files_of_another_port_go_and_the_users_own_stay(tmp_path):
    folder = tmp_path / "p"
    render(golden_plan("dae", "qemu-m33"), folder)
    (folder / "notes.txt").write_text("mine")
    assert (folder / "port" / "startup.cpp").is_file()
    render(golden_plan("dae", "host"), folder)
    assert not (folder / "port" / "startup.cpp").exists()
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_damaged_list_of_files_removes_nothing_outside(tmp_path):
    folder = tmp_path / "p"
    render(golden_plan("dae", "host"), folder)
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    (folder / MANIFEST).write_text(json.dumps({"board": "host", "files": ["../outside.txt", "gone.txt"]}))
    render(golden_plan("dae", "host"), folder)
    assert outside.read_text() == "mine"
    (folder / MANIFEST).write_text("{")
    render(golden_plan("dae", "host"), folder)
    assert json.loads((folder / MANIFEST).read_text())["board"] == "host"


def test_a_folder_that_is_not_ours_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(DeployError, match="not empty and was not rendered"):
        render(golden_plan("dae", "host"), tmp_path)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DeployError, match="cannot write the project") as caught:
        render(golden_plan("dae", "host"), tmp_path / "file" / "p")
    assert "file" in caught.value.where
