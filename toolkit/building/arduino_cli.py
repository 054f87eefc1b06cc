"""Compiling a sketch for a real board with `arduino-cli`, which knows the board's core, its flags and its limits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.board import Arduino
from toolkit.errors import BuildError, ToolError

_LINES_OF_OUTPUT = 30


def find_arduino_cli() -> Path | None:
    """Where `arduino-cli` is: what ARDUINO_CLI names, or on PATH; None when it is nowhere.

    Raises:
        ToolError: ARDUINO_CLI names something that cannot be run.
    """
    named = os.environ.get("ARDUINO_CLI")
    found = shutil.which(named or "arduino-cli")
    if named and found is None:
        raise ToolError("ARDUINO_CLI names no program", where=named, hint="Correct the variable, or remove it.")
    return Path(found) if found else None


def device_elf(project: Path) -> Path:
    """The executable of a sketch that was compiled for a real board."""
    return project / "build" / "device" / f"{project.name}.ino.elf"


def compile_sketch(cli: Path, project: Path, arduino: Arduino, properties: Mapping[str, str]) -> Path:
    """Compile a sketch folder; the executable, with the other formats beside it.

    Args:
        cli: arduino-cli.
        project: the folder.
        arduino: says which board.
        properties: of the core's build recipes, which take the place of those in its `platform.txt`.

    Raises:
        ToolError: the board's core is not installed.
        BuildError: the compiler refused the sketch, or it is larger than the core's boards.txt allows.
    """
    folder = device_elf(project).parent
    words = ["compile", "--fqbn", arduino.fqbn]
    words += [word for name, value in properties.items() for word in ("--build-property", f"{name}={value}")]
    words += ["--output-dir", str(folder), str(project)]
    answer, failed = call(cli, words)
    if failed:
        raise _refusal(answer, project, arduino)
    too_large = [
        f"{part['name']}: {part['size']:,} of {part['max_size']:,} bytes"
        for part in answer.get("builder_result", {}).get("executable_sections_size") or ()
        if part.get("max_size") and part["size"] > part["max_size"]
    ]
    if too_large:
        raise BuildError("the sketch is too large for the board", where=str(project), hint="\n  ".join(too_large))
    elf = device_elf(project)
    if not elf.is_file():
        raise BuildError("arduino-cli compiled, but left no executable", where=str(elf), hint="Is it up to date?")
    return elf


def call(cli: Path, words: Sequence[str], timeout_s: float = 900) -> tuple[dict[str, Any], bool]:
    """What `arduino-cli` answers as a JSON object, and whether it failed; raises ToolError as `answer_of` does."""
    answer, failed = answer_of(cli, words, timeout_s)
    return (answer, failed) if isinstance(answer, dict) else ({}, True)


def answer_of(cli: Path, words: Sequence[str], timeout_s: float) -> tuple[Any, bool]:
    """What `arduino-cli` answers as JSON, and whether it failed.

    Raises:
        ToolError: it does not answer JSON, does not start, or takes too long.
    """
    try:
        done = subprocess.run(
            [str(cli), *words, "--format", "json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"arduino-cli {words[0]} took longer than {timeout_s:.0f} s", where=str(cli)) from None
    except OSError as error:
        raise ToolError(f"arduino-cli does not start: {error.strerror}", where=str(cli)) from None
    # A refused compilation is a result, on standard output; any other failure is written to standard error.
    for text in (done.stdout, done.stderr):
        try:
            return json.loads(text), done.returncode != 0
        except ValueError:
            continue
    said = (done.stderr or done.stdout).strip().splitlines()[-_LINES_OF_OUTPUT:]
    raise ToolError("arduino-cli gave no JSON", where=str(cli), hint="\n  ".join(said))


def _refusal(answer: dict[str, Any], project: Path, arduino: Arduino) -> ToolError:
    error = str(answer.get("error", "") or "")
    if "platform not installed" in error.lower() or "platform not found" in error.lower():
        return ToolError(
            f"the core {arduino.core} is not installed",
            where=arduino.fqbn,
            hint=f"arduino-cli core install {arduino.core} (in the IDE's boards manager: {arduino.board_manager!r}).",
        )
    said = str(answer.get("compiler_err", "") or "").strip().splitlines()[-_LINES_OF_OUTPUT:]
    return BuildError("arduino-cli could not compile the sketch", where=str(project), hint="\n  ".join([*said, error]))
