"""From a project folder to an image, with cmake and ninja."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from toolkit.board import Board
from toolkit.building.image import Image, read_image
from toolkit.building.tools import ARM_GCC, CMAKE, HOST_GCC, NINJA, require, version
from toolkit.errors import BuildError
from toolkit.resources import cache_folder, resource

_LINES_OF_OUTPUT = 30


def build(
    project: Path, board: Board, *, sanitize: bool = False, progress: Callable[[str], None] = lambda _: None
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
    kernels = _kernel_library(board, sanitize, progress)
    progress("compiling the runner")
    tree = project / ("build-sanitized" if sanitize else "build")
    definitions = [f"-DDEPLOY_KERNELS={kernels}", f"-DSANITIZE={'ON' if sanitize else 'OFF'}"]
    _cmake_build(project, tree, [*_toolchain(board, resource("cmake")), *definitions])
    elf = tree / ("runner.elf" if board.toolchain == "arm-none-eabi" else "runner")
    return read_image(elf, project, board.name)


def _kernel_library(board: Board, sanitize: bool, progress: Callable[[str], None]) -> Path:
    """The built kernel library for a board's flags, compiler and this version of the sources."""
    source = resource("firmware") / "kernels"
    compiler = require(ARM_GCC if board.toolchain == "arm-none-eabi" else HOST_GCC)
    flags = [*board.flags, *(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"] if sanitize else [])]
    digest = hashlib.sha256(repr((flags, str(compiler), version(compiler))).encode())
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes())
    folder = cache_folder() / "kernels" / digest.hexdigest()[:16]
    library = folder / "libdeploy_kernels.a"
    if not library.is_file():
        progress("compiling the kernels (once)")
        # Built beside its final place, so that an interruption leaves nothing that looks finished.
        part = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        joined = " ".join(flags)
        try:
            _cmake_build(
                source,
                part,
                [*_toolchain(board, resource("cmake")), f"-DCMAKE_C_FLAGS={joined}", "-DCMAKE_BUILD_TYPE=Release"],
            )
            folder.mkdir(parents=True, exist_ok=True)
            shutil.move(part / library.name, library)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return library


def _toolchain(board: Board, cmake_folder: Path) -> list[str]:
    if board.toolchain != "arm-none-eabi":
        require(HOST_GCC)
        return []
    folder = require(ARM_GCC).parent
    return [f"-DCMAKE_TOOLCHAIN_FILE={cmake_folder / 'arm-none-eabi.cmake'}", f"-DARM_TOOLCHAIN_BIN={folder}"]


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
