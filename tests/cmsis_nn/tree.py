"""Folders that look like Arm's CMSIS-NN: a source checkout, a CMSIS-Pack, and an installed library.

The prototypes are the published ones; behind them stand this project's own kernels under other names (`standin.c`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from toolkit.board import Board
from toolkit.building.tools import ARM_GCC, CMAKE, NINJA, find

from . import published

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "firmware" / "kernels" / "source"
LEFT_OUT = ("copy.c", "quantize.c")  # functions that CMSIS-NN does not have


def checkout(folder: Path, version: str = "", *, definitions: str = "") -> Path:
    """A source checkout with build files of its own; `definitions` say what the stand-in is like."""
    _sources(folder)
    named = f"VERSION {version} " if version else ""
    (folder / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.15.6)\nproject(CMSISNN {named}LANGUAGES C CXX)\n"
        "add_library(cmsis-nn STATIC)\n"
        "target_compile_options(cmsis-nn PRIVATE -Ofast)\n"
        f"target_compile_definitions(cmsis-nn PRIVATE {definitions})\n"
        "target_include_directories(cmsis-nn PUBLIC Include)\n"
        "add_subdirectory(Source)\n"
    )
    (folder / "Source" / "CMakeLists.txt").write_text(
        'file(GLOB sources "*.c")\ntarget_sources(cmsis-nn PRIVATE ${sources})\n'
    )
    return folder


def pack(folder: Path, version: str = "7.0.0") -> Path:
    """The folder of an unpacked CMSIS-Pack: sources as its description lists them, no build files."""
    _sources(folder)
    files = [path.relative_to(folder) for path in sorted((folder / "Source").glob("*.c"))]
    listed = "\n".join(f'        <file category="source" name="{file}"/>' for file in files)
    (folder / "ARM.CMSIS-NN.pdsc").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<package schemaVersion="1.7.7">\n  <name>CMSIS-NN</name>\n'
        f'  <releases>\n    <release version="{version}" date="2024-11-28">\n      A release.\n    </release>\n'
        '    <release version="6.0.0">\n      An older one.\n    </release>\n  </releases>\n'
        '  <components>\n    <component Cclass="CMSIS" Cgroup="NN Lib" Cversion="0.0.0">\n      <files>\n'
        '        <file category="header" name="Include/arm_nnfunctions.h"/>\n'
        f"{listed}\n"
        "      </files>\n    </component>\n  </components>\n</package>\n"
    )
    return folder


def installed(folder: Path, board: Board) -> Path:
    """A library that is built for a board, with its headers."""
    tree = checkout(folder.with_name(f"{folder.name}-sources"), version="7.1.0")
    build = folder.with_name(f"{folder.name}-build")
    target = [f"-DCMAKE_C_FLAGS={' '.join(board.flags)}"]
    if board.toolchain != "host":
        target += [
            f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / 'arm-none-eabi.cmake'}",
            f"-DARM_TOOLCHAIN_BIN={find(ARM_GCC).parent}",
        ]
    make = [str(find(CMAKE)), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={find(NINJA)}", "-S", str(tree), "-B", str(build)]
    subprocess.run([*make, *target], check=True, capture_output=True)
    subprocess.run([str(find(CMAKE)), "--build", str(build)], check=True, capture_output=True)
    shutil.copytree(tree / "Include", folder / "include")
    (folder / "lib").mkdir()
    shutil.copy(build / "libcmsis-nn.a", folder / "lib")
    return folder


def headers(folder: Path, revision: str = "V.18.0.0", leave_out: tuple[str, ...] = ()) -> None:
    """The public headers."""
    folder.mkdir(parents=True)
    (folder / "arm_nn_types.h").write_text(published.types_header())
    (folder / "arm_nnfunctions.h").write_text(published.functions_header(revision, leave_out))


def _sources(folder: Path) -> None:
    headers(folder / "Include")
    source = folder / "Source"
    source.mkdir()
    shutil.copy(Path(__file__).with_name("standin.c"), source)
    copied = [path for path in sorted(KERNELS.glob("*.c")) if path.name not in LEFT_OUT]
    names = sorted(set().union(*(_global_names(path) for path in copied)))
    # Without DSP instructions: a pack's description lists no assembly.
    defines = ["#undef __ARM_FEATURE_DSP", *(f"#define {name} standin_{name}" for name in names)]
    (source / "standin_names.h").write_text("\n".join([*defines, ""]))
    for path in sorted(KERNELS.glob("*.h")):
        shutil.copy(path, source)
    for path in copied:
        (source / path.name).write_text(f'#include "standin_names.h"\n{path.read_text()}')


def _global_names(source: Path) -> set[str]:
    """Functions that a file of our kernels defines for others, by their unindented definitions."""
    return set(re.findall(r"(?m)^(?!static|typedef|extern)\w[\w *]*?\b(\w+)\([^;]*?\)\s*\{", source.read_text()))
