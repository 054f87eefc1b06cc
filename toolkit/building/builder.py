"""From a project folder to an image, with cmake and ninja."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.board import Board
from toolkit.building.arduino import (
    core_folder,
    ide_hint,
    properties_hint,
    require_sketch,
    sketch_definitions,
    virtual_tree,
)
from toolkit.building.arduino_cli import compile_sketch, device_elf, find_arduino_cli
from toolkit.building.cmsis_nn import CmsisNn, require_cmsis_nn
from toolkit.building.image import Image, read_image
from toolkit.building.pico_sdk import require_pico_sdk
from toolkit.building.tools import ARM_GCC, CMAKE, HOST_GCC, NINJA, require, version
from toolkit.building.uf2 import write_uf2
from toolkit.errors import BuildError, ToolError
from toolkit.rendering import MANIFEST
from toolkit.resources import cache_folder, resource

_LINES_OF_OUTPUT = 30


def build(
    project: Path,
    board: Board,
    *,
    sanitize: bool = False,
    cmsis_nn: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Image:
    """Build a rendered project.

    Kernel libraries are the same for every model of a board: they are built once into the cache and linked from there.

    Args:
        project: folder that `render` wrote.
        board: the board it was rendered for.
        sanitize: with address and undefined-behaviour sanitizers (board `host`).
        cmsis_nn: folder of the CMSIS-NN to link, for a project that is rendered for it; the one that it was rendered
            for when None.
        progress: told what is being done, a few words at a time.

    Raises:
        ToolError: a tool or the CMSIS-NN is missing.
        BuildError: configuring, compiling or linking failed; the message holds the tool's last lines.
    """
    if board.arduino is not None:
        return build_sketch(project, board, progress=progress)
    require_project(project)
    definitions = _libraries(board, sanitize, _rendered(project), cmsis_nn, progress)
    progress("compiling the runner")
    return build_runner(project, board, definitions, sanitize=sanitize)


def build_sketch(
    project: Path,
    board: Board,
    *,
    definitions: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Image:
    """Compile a sketch folder as it is.

    Args:
        project: its folder.
        board: the board it was rendered for, or its virtual twin.
        definitions: of CMake, for a virtual board, besides those of the sketch and the board.
        properties: of the build recipes of a real board's core.
        progress: told what is being done, a few words at a time.

    Raises:
        ToolError: a tool, or the board's core, is missing.
        BuildError: compiling or linking failed.
    """
    require_sketch(project)
    if board.emulator is None:
        return _build_for_device(project, board, properties or {}, progress)
    progress("compiling the sketch")
    about_sketch = sketch_definitions(project.resolve(), board)
    _cmake_build(core_folder(), virtual_tree(project), [*_compiler(board), *about_sketch, *definitions])
    return built_image(project, board)


def _build_for_device(
    project: Path, board: Board, properties: Mapping[str, str], progress: Callable[[str], None]
) -> Image:
    """Compile a sketch with the board's own core."""
    cli = find_arduino_cli()
    if cli is None or board.arduino is None:
        raise ToolError(
            f"arduino-cli is not installed; it compiles for {board.title}",
            where=str(project),
            hint=properties_hint(properties) if properties else ide_hint(project, board),
        )
    progress("compiling the sketch with arduino-cli")
    compile_sketch(cli, project, board.arduino, properties)
    return built_image(project, board)


def require_project(project: Path) -> None:
    """Raise BuildError when a folder holds no project."""
    if not (project / "CMakeLists.txt").is_file():
        raise BuildError(
            "there is no project here", where=str(project), hint="Make one: deploy render MODEL --out DIR."
        )


def build_runner(project: Path, board: Board, definitions: Sequence[str], *, sanitize: bool = False) -> Image:
    """Configure and build a project whose libraries are at hand.

    Args:
        project: its folder.
        board: the board it was rendered for.
        definitions: of CMake, besides those that select compiler and SDK.
        sanitize: with sanitizers (board `host`).

    Raises:
        ToolError: a tool is missing.
        BuildError: configuring, compiling or linking failed.
    """
    tree = tree_of(project, sanitize)
    sanitizers = [f"-DSANITIZE={'ON' if sanitize else 'OFF'}"] if board.toolchain == "host" else []
    _cmake_build(project, tree, [*_toolchain(board), *definitions, *sanitizers])
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
    if board.arduino is not None:
        elf = device_elf(project) if board.emulator is None else virtual_tree(project) / "runner.elf"
    if not elf.is_file():
        raise BuildError("the project is not built", where=str(project), hint=f"Build it: deploy build {project}.")
    return read_image(elf, project, board)


@dataclass(frozen=True, slots=True)
class _Rendered:
    """What a project was rendered for: the folder of its CMSIS-NN (None for our kernels alone), and where code runs."""

    cmsis_nn: Path | None = None
    kernels_in_ram: bool = False


def _rendered(project: Path) -> _Rendered:
    try:
        about = json.loads((project / MANIFEST).read_text(encoding="utf-8"))
        folder = about.get("cmsis_nn")
        return _Rendered(Path(folder) if folder else None, bool(about["kernels_in_ram"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return _Rendered()


def _libraries(
    board: Board, sanitize: bool, rendered: _Rendered, cmsis_nn: str | None, progress: Callable[[str], None]
) -> list[str]:
    """Definitions that name the libraries to link, built before."""
    ours = _kernel_library(board, sanitize, rendered, progress)
    if rendered.cmsis_nn is None:
        return [f"-DDEPLOY_KERNELS={ours}"]
    found = require_cmsis_nn(cmsis_nn if cmsis_nn is not None else str(rendered.cmsis_nn))
    arms = _cmsis_nn_library(found, board, rendered.kernels_in_ram, progress)
    return [f"-DDEPLOY_KERNELS={ours}", f"-DCMSIS_NN_PATH={found.path}", f"-DCMSIS_NN_LIBRARY={arms}"]


def _kernel_library(board: Board, sanitize: bool, rendered: _Rendered, progress: Callable[[str], None]) -> Path:
    """Our kernel library for a board's flags, compiler and this version of the sources."""
    flags = [*board.flags, *(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"] if sanitize else [])]
    definitions = [
        f"-DCMAKE_C_FLAGS={' '.join(flags)}",
        f"-DDEPLOY_KERNELS_IN_RAM={'ON' if rendered.kernels_in_ram else 'OFF'}",
        f"-DDEPLOY_KERNELS_BESIDE_CMSIS_NN={'ON' if rendered.cmsis_nn else 'OFF'}",
    ]
    source = resource("firmware") / "kernels"
    files = sorted(path for path in source.rglob("*") if path.is_file())
    return _built_once(
        board, source, "libdeploy_kernels.a", definitions, files, "compiling the kernels (once)", progress
    )


def _cmsis_nn_library(found: CmsisNn, board: Board, in_ram: bool, progress: Callable[[str], None]) -> Path:
    """Arm's library for a board's flags: as it is installed, or built from its sources by its own build files."""
    if found.archive is not None and not in_ram:
        return found.archive
    definitions = [
        f"-DCMAKE_C_FLAGS={' '.join(board.flags)}",
        f"-DCMSIS_NN_PATH={found.path}",
        f"-DCmsisNN_IN_RAM={'ON' if in_ram else 'OFF'}",
    ]
    source = resource("cmake") / "cmsis-nn"
    files = [*found.files(), resource("cmake") / "FindCmsisNN.cmake", *source.iterdir()]
    return _built_once(board, source, "libcmsis-nn.a", definitions, files, f"compiling {found.title} (once)", progress)


def _built_once(
    board: Board,
    source: Path,
    name: str,
    definitions: Sequence[str],
    files: Sequence[Path],
    doing: str,
    progress: Callable[[str], None],
) -> Path:
    """A library in the cache, built there when it is new.

    Args:
        source: folder of the CMake project that builds it.
        name: of the archive in the build tree.
        definitions, files: what it depends on besides the compiler.
    """
    compiler = require(HOST_GCC if board.toolchain == "host" else ARM_GCC)
    digest = hashlib.sha256(repr((definitions, str(compiler), version(compiler))).encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    folder = cache_folder() / "kernels" / digest.hexdigest()[:16]
    library = folder / name
    if not library.is_file():
        progress(doing)
        # Built beside its final place, so that an interruption leaves nothing that looks finished.
        part = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        try:
            _cmake_build(source, part, [*_compiler(board), "-DCMAKE_BUILD_TYPE=Release", *definitions])
            folder.mkdir(parents=True, exist_ok=True)
            shutil.move(part / name, library)
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
