"""An ExecuTorch that the user has built and installed for a board: where it is, and what it can run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.board import Board
from toolkit.errors import PlanError, ToolError
from toolkit.interpreter.archive import Target, registered_operators, registry_bytes, target_of
from toolkit.resources import resource

VARIABLE = "EXECUTORCH_PATH"
RELEASE = "1.5"
"""The release whose headers and allocations the runner and its pools are made for."""

CORE = "executorch_core"
_PRIMITIVES = "executorch"
_KERNEL_BYTES = 12
"""Of one entry of the runtime's table of kernels on a 32-bit target."""

_ARCHITECTURES = {
    "cortex-m0": {11, 12},
    "cortex-m0plus": {11, 12},
    "cortex-m3": {10, 11, 12},
    "cortex-m4": {10, 11, 12, 13},
    "cortex-m7": {10, 11, 12, 13},
    "cortex-m23": {11, 12, 16},
    "cortex-m33": {10, 11, 12, 13, 16, 17},
    "cortex-m55": {10, 11, 12, 13, 16, 17, 21},
    "cortex-m85": {10, 11, 12, 13, 16, 17, 21},
}
"""Architectures (Tag_CPU_arch) whose code a core runs: v7, v6-M, v6S-M, v7E-M, v8-M baseline and mainline, v8.1-M."""


@dataclass(frozen=True, slots=True)
class OperatorLibrary:
    """A static library that registers operators.

    Attributes:
        name: of its CMake target: the file's name without `lib` and `.a`.
        operators: full names.
    """

    name: str
    operators: frozenset[str]


@dataclass(frozen=True, slots=True)
class Installation:
    """An installed ExecuTorch.

    Attributes:
        path: folder that holds `include` and `lib`.
        target: what it was built for.
        libraries: those that register operators.
        registry: bytes of the runtime's table of kernels, in RAM; None when that is not known.
        archives: all static libraries.
    """

    path: Path
    target: Target
    libraries: tuple[OperatorLibrary, ...]
    registry: int | None
    archives: tuple[Path, ...]

    def libraries_for(self, operators: Sequence[str]) -> tuple[str, ...]:
        """Names of the fewest, smallest libraries that register all these operators.

        Raises:
            PlanError: operators are registered by none, or by two of the libraries, which the runtime takes for a
                mistake; or the table of kernels is too small.
        """
        missing = set(operators)
        chosen: list[OperatorLibrary] = []
        while missing:
            best = max(self.libraries, key=lambda library: _worth(library, missing), default=None)
            if best is None or not missing & best.operators:
                raise _missing(sorted(missing), operators, self)
            chosen.append(best)
            missing -= best.operators
        chosen.sort(key=lambda library: library.name)
        self._check_registration(chosen)
        return tuple(library.name for library in chosen)

    def _check_registration(self, chosen: Sequence[OperatorLibrary]) -> None:
        # The runtime's own library of primitive operators is linked with every other.
        primitives = [library for library in self.libraries if library.name == _PRIMITIVES and library not in chosen]
        seen: dict[str, str] = {}
        for library in (*chosen, *primitives):
            for operator in library.operators:
                if operator in seen:
                    raise PlanError(
                        f"{operator} is registered by {seen[operator]} and by {library.name}: ExecuTorch would stop at "
                        "start-up",
                        where=str(self.path),
                        hint="Build ExecuTorch so that one library registers it, e.g. with EXECUTORCH_SELECT_OPS_LIST.",
                    )
                seen[operator] = library.name
        if self.registry is not None and self.target.arm and len(seen) * _KERNEL_BYTES > self.registry:
            raise PlanError(
                f"the operator libraries register {len(seen)} kernels; the runtime has room for "
                f"{self.registry // _KERNEL_BYTES}",
                where=str(self.path),
                hint="Build ExecuTorch with a larger MAX_KERNEL_NUM, or with fewer operators.",
            )


def _worth(library: OperatorLibrary, missing: set[str]) -> tuple[int, int, str]:
    return len(library.operators & missing), -len(library.operators), library.name


def _missing(missing: Sequence[str], operators: Sequence[str], installation: Installation) -> PlanError:
    names = ", ".join(missing)
    several = "operators" if len(missing) > 1 else "operator"
    return PlanError(
        f"the installed ExecuTorch does not register the {several} {names}",
        where=str(installation.path),
        hint=f"Build it with {select_options(operators)}; or take the default engine, which needs no ExecuTorch.",
    )


def select_options(operators: Sequence[str]) -> str:
    """CMake options by which a build of ExecuTorch registers these operators."""
    options = []
    if any(name.startswith("cortex_m::") for name in operators):
        options.append("-DEXECUTORCH_BUILD_CORTEX_M=ON")
    if any(name.startswith("quantized_decomposed::") for name in operators):
        options.append("-DEXECUTORCH_BUILD_KERNELS_QUANTIZED=ON")
    others = [name for name in operators if name.split("::")[0] not in ("cortex_m", "quantized_decomposed")]
    if others:
        options.append(f'-DEXECUTORCH_SELECT_OPS_LIST="{",".join(others)}"')
    return " ".join(options)


def find_installation(named: Path | None, board: Board) -> Installation | None:
    """The installation that an option or EXECUTORCH_PATH names; None when neither does.

    Raises:
        ToolError: what is named is no ExecuTorch for this board.
    """
    path = named or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    return None if path is None else read_installation(path.resolve(), board)


def require_installation(named: Path | None, board: Board, operators: Sequence[str]) -> Installation:
    """The installation; raises ToolError with how to build one when none is named."""
    found = find_installation(named, board)
    if found is None:
        raise ToolError("no ExecuTorch is named that was built for this board", hint=how_to_build(board, operators))
    return found


def read_installation(path: Path, board: Board) -> Installation:
    """What an installed ExecuTorch can run.

    Raises:
        ToolError: there is none, or it was built for something else than this board.
    """
    library_folder = next((folder for folder in (path / "lib", path / "lib64") if folder.is_dir()), path / "lib")
    core = library_folder / f"lib{CORE}.a"
    hint = how_to_build(board, ())
    if not core.is_file() or not (path / "include" / "executorch").is_dir():
        what = "there is no ExecuTorch here: no lib/libexecutorch_core.a beside include/executorch"
        if (library_folder / "libexecutorch.so").is_file():
            what = "this is the Python package's ExecuTorch, which runs on this computer only"
        raise ToolError(what, where=str(path), hint=hint)
    target = target_of(core)
    if target is None:
        raise ToolError("the library holds no object files", where=str(core), hint=hint)
    _check_target(target, board, core, hint)
    libraries = []
    archives = tuple(sorted(library_folder.glob("lib*.a")))
    for file in archives:
        if operators := registered_operators(file):
            libraries.append(OperatorLibrary(file.stem.removeprefix("lib"), operators))
    return Installation(path, target, tuple(libraries), registry_bytes(core), archives)


def _check_target(target: Target, board: Board, core: Path, hint: str) -> None:
    if board.toolchain == "host":
        if target.arm:
            raise ToolError("this ExecuTorch was built for a microcontroller", where=str(core), hint=hint)
        return
    if not target.arm:
        raise ToolError("this ExecuTorch was not built for an Arm core", where=str(core), hint=hint)
    if target.architecture not in _ARCHITECTURES[board.cpu]:
        raise ToolError(f"this ExecuTorch was built for a core that {board.cpu} is not", where=str(core), hint=hint)
    if target.floats_in_registers != ("-mfloat-abi=hard" in board.flags):
        passed = {True: "registers of the FPU", False: "ordinary registers"}
        raise ToolError(
            f"this ExecuTorch passes floats in {passed[target.floats_in_registers]}, code for {board.name} in "
            f"{passed[not target.floats_in_registers]}",
            where=str(core),
            hint=hint,
        )


def how_to_build(board: Board, operators: Sequence[str]) -> str:
    """The commands that build an ExecuTorch for a board, as far as a hint can hold them."""
    options = [
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_INSTALL_PREFIX=PATH",
        "-DEXECUTORCH_PAL_DEFAULT=minimal",
        "-DEXECUTORCH_ENABLE_LOGGING=OFF",
        "-DEXECUTORCH_BUILD_EXECUTOR_RUNNER=OFF",
        "-DMAX_KERNEL_NUM=128",
        select_options(operators) or "-DEXECUTORCH_BUILD_CORTEX_M=ON",
    ]
    if board.toolchain != "host":
        flags = " ".join(board.flags)
        # A sketch folder has no room for a toolchain file.
        folder = "PROJECT/cmake" if board.arduino is None else str(resource("cmake"))
        options = [
            f"-DCMAKE_TOOLCHAIN_FILE={folder}/arm-none-eabi.cmake",
            "-DEXECUTORCH_BUILD_ARM_BAREMETAL=ON",
            f'-DCMAKE_C_FLAGS="{flags}" -DCMAKE_CXX_FLAGS="{flags}"',
            *options,
        ]
    lines = [
        f"Build release {RELEASE} of ExecuTorch (github.com/pytorch/executorch) with",
        *(f"    {option}" for option in options),
        f"install it (cmake --build . --target install), and name the folder with --executorch PATH or {VARIABLE}.",
        "docs/engines.md has the whole of it. The default engine needs none of this.",
    ]
    return "\n  ".join(lines)
