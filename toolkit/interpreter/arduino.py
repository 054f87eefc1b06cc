"""How an Arduino core is told of an installed ExecuTorch: properties of its build recipes, which arduino-cli overrides.

An Arduino core compiles a sketch by the recipes in its `platform.txt`; no sketch can add a search path, a language
standard or a library to them. Which properties the recipes leave to the user differs from core to core:

- Compiling: Mbed OS, Zephyr and Arduino-Pico have `compiler.cpp.extra_flags` behind their own language standard. The
  first releases for Renesas have `build.extra_flags` alone, which is empty there; C++17 is their own standard.
- Linking: in every one `compiler.libraries.ldflags` stands behind the sketch's objects, inside a group that the
  linker goes through until nothing is missing, so that the order of the archives does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolkit.board import Arduino
from toolkit.errors import ToolError
from toolkit.interpreter.installation import Installation

LINKING = "compiler.libraries.ldflags"
_COMPILING = "compiler.cpp.extra_flags"
_OF_EVERY_FILE = "build.extra_flags"
_STANDARD = "-std=gnu++17"
"""As ExecuTorch's headers need."""

_TYPES = "include/executorch/runtime/core/portable_type/c10"
_DEFINITION = "-DC10_USING_CUSTOM_GENERATED_MACROS"
"""The headers' copy of c10 would otherwise look for a file that only PyTorch's own build makes."""


def build_properties(installation: Installation, libraries: Sequence[str], arduino: Arduino) -> dict[str, str]:
    """Properties by which a core finds an ExecuTorch's headers and links its archives.

    Args:
        installation: where ExecuTorch is.
        libraries: names of those that register the program's operators: they are linked whole, because nothing refers
            to the constructors that do it. Of those that register other operators, nothing is linked; of all others,
            what is referred to.
        arduino: says which core.

    Raises:
        ToolError: the installation's path has a character that stands for something else in a property.
    """
    path = installation.path
    if any(character in str(path) for character in "\"'{}"):
        raise ToolError(
            "arduino-cli takes no quotes and braces in this path",
            where=str(path),
            hint="Move the installed ExecuTorch elsewhere.",
        )
    # Not -isystem: old compilers may take C++ in system headers of bare-metal targets for C.
    flags = [_quoted(f"-I{path / 'include'}"), _quoted(f"-I{path / _TYPES}"), _DEFINITION]
    if arduino.core.startswith("arduino:renesas"):
        compiling = {_OF_EVERY_FILE: " ".join(flags)}
    else:
        compiling = {_COMPILING: " ".join([_STANDARD, *flags])}
    return compiling | {LINKING: " ".join(_archives(installation, libraries))}


def _archives(installation: Installation, libraries: Sequence[str]) -> list[str]:
    """Words for the linker."""
    registering = {library.name for library in installation.libraries}
    whole = [path for path in installation.archives if _name(path) in libraries]
    others = [path for path in installation.archives if _name(path) not in registering]
    return [
        "-Wl,--whole-archive",
        *(_quoted(str(path)) for path in whole),
        "-Wl,--no-whole-archive",
        *(_quoted(str(path)) for path in others),
    ]


def _name(archive: Path) -> str:
    return archive.stem.removeprefix("lib")


def _quoted(word: str) -> str:
    return f'"{word}"'
