"""From a project folder to an image, with cmake and ninja."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from toolkit.board import Board
from toolkit.building.image import Image, read_image
from toolkit.building.pico_sdk import require_pico_sdk
from toolkit.building.tools import ARM_GCC, CMAKE, HOST_GCC, NINJA, require, version
from toolkit.building.uf2 import write_uf2
from toolkit.errors import BuildError
from toolkit.rendering import MANIFEST
from toolkit.resources import cache_folder, resource

_LINES_OF_OUTPUT = 30


def build(
    project: Path,
    board: Board,
    *,
    sanitize: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Image:
    """Build a rendered project.

    The kernel library is the same for every model of a board: it is built once into the cache and linked from there.

    Args:
        project: folder that `render` wrote.
        board: the board it was rendered for.
        sanitize: with address and undefined-behaviour sanitizers (board `host`).
        progress: told what is being done, a few words at a time.

    Raises:
        ToolError: a tool is missing.
        BuildError: configuring, compiling or linking failed; the message holds the tool's last lines.
    """
    if not (project / "CMakeLists.txt").is_file():
        raise BuildError(
            "there is no project here", where=str(project), hint="Make one: deploy render MODEL --out DIR."
        )
    kernels = _kernel_library(board, sanitize, _kernels_in_ram(project), progress)
    progress("compiling the runner")
    tree = tree_of(project, sanitize)
    definitions = [f"-DDEPLOY_KERNELS={kernels}"]
    if board.toolchain == "host":
        definitions.append(f"-DSANITIZE={'ON' if sanitize else 'OFF'}")
    _cmake_build(project, tree, [*_toolchain(board), *definitions])
    if board.toolchain == "pico-sdk":
        write_uf2(tree / "runner.elf", tree / "runner.uf2")
    return built_image(project, board, sanitize=sanitize)


def tree_of(project: Path, sanitize: bool = False) -> Path:
    """Where a project is built."""
    return project / ("build-sanitized" if sanitize else "build")


def built_image(project: Path, board: Board, *, sanitize: bool = False) -> Image:
    """The image of a project that was built before.

    Raises:
        BuildError: it was not.
    """
    elf = tree_of(project, sanitize) / ("runner" if board.toolchain == "host" else "runner.elf")
    if not elf.is_file():
        raise BuildError("the project is not built", where=str(project), hint=f"Build it: deploy build {project}.")
    return read_image(elf, project, board)


def _kernels_in_ram(project: Path) -> bool:
    """What the project was rendered for."""
    try:
        return bool(json.loads((project / MANIFEST).read_text(encoding="utf-8"))["kernels_in_ram"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _kernel_library(board: Board, sanitize: bool, in_ram: bool, progress: Callable[[str], None]) -> Path:
    """The built kernel library for a board's flags, compiler and this version of the sources."""
    source = resource("firmware") / "kernels"
    compiler = require(HOST_GCC if board.toolchain == "host" else ARM_GCC)
    flags = [*board.flags, *(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"] if sanitize else [])]
    digest = hashlib.sha256(repr((flags, in_ram, str(compiler), version(compiler))).encode())
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes())
    folder = cache_folder() / "kernels" / digest.hexdigest()[:16]
    library = folder / "libdeploy_kernels.a"
    if not library.is_file():
        progress("compiling the kernels (once)")
        # Built beside its final place, so that an interruption leaves nothing that looks finished.
        part = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        definitions = [
            f"-DCMAKE_C_FLAGS={' '.join(flags)}",
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DDEPLOY_KERNELS_IN_RAM={'ON' if in_ram else 'OFF'}",
        ]
        try:
            _cmake_build(source, part, [*_compiler(board), *definitions])
            folder.mkdir(parents=True, exist_ok=True)
            shutil.move(part / library.name, library)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return library


def _compiler(board: Board) -> list[str]:
    """Definitions that select the compiler, without the SDK around it."""
    if board.toolchain == "host":
        return []
    file = resource("cmake") / "arm-none-eabi.cmake"
    return [f"-DCMAKE_TOOLCHAIN_FILE={file}", f"-DARM_TOOLCHAIN_BIN={require(ARM_GCC).parent}"]


def _toolchain(board: Board) -> list[str]:
    """Definitions that select the compiler, and the SDK where there is one."""
    if board.toolchain != "pico-sdk":
        return _compiler(board)
    return [f"-DPICO_SDK_PATH={require_pico_sdk().path}", f"-DPICO_TOOLCHAIN_PATH={require(ARM_GCC).parent}"]


def _cmake_build(source: Path, tree: Path, definitions: Sequence[str]) -> None:
    cmake = require(CMAKE)
    ninja = require(NINJA)
    configure = [str(cmake), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", "-S", str(source), "-B", str(tree)]
    try:
        _run([*configure, *definitions], "configuring failed", source)
    except BuildError:
        if not tree.is_dir():
            raise
        # A tree of another place, compiler or version of cmake: begin anew.
        shutil.rmtree(tree)
        _run([*configure, *definitions], "configuring failed", source)
    _run([str(cmake), "--build", str(tree)], "compiling failed", source)


def _run(command: Sequence[str], what: str, where: Path) -> None:
    """Run a tool; when it fails, its last lines become the error's hint. It does not outlive an interruption."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,  # a group of its own: what the tool starts is stopped with it
    ) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode != 0:
        lines = output.strip().splitlines()[-_LINES_OF_OUTPUT:]
        raise BuildError(what, where=str(where), hint="\n  ".join(lines))
