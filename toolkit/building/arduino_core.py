"""What an installed Arduino core says of its boards: `boards.txt`, read by `arduino-cli`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.board import Arduino, Board, Memory
from toolkit.building.arduino_cli import answer_of, call, find_arduino_cli
from toolkit.errors import ToolError

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class CoreLimits:
    """How much a sketch may take of a board, for its options.

    Attributes:
        version: of the core.
        flash: bytes, `upload.maximum_size`; None where the core does not say.
        ram: bytes, `upload.maximum_data_size`: what a core's heap and stacks take while it runs is in it. None where
            the core does not say.
    """

    version: str
    flash: int | None
    ram: int | None


def with_core_limits(board: Board) -> Board:
    """A real Arduino board with the sizes of its core's `boards.txt` in place of those of its own file.

    Any other board is returned as it is. Where there is no arduino-cli or no core, or where they tell nothing, the
    board keeps its sizes; `sizes_from` says which they are.

    Raises:
        ToolError: ARDUINO_CLI names something that cannot be run.
    """
    if board.arduino is None or board.emulator is not None:
        return board
    cli = find_arduino_cli()
    if cli is None:
        return replace(board, sizes_from=f"{board.sizes_from} (no arduino-cli to ask)")
    try:
        limits = core_limits(cli, board.arduino)
    except ToolError as error:
        return replace(board, sizes_from=f"{board.sizes_from} ({error.what})")
    if limits.flash is None and limits.ram is None:
        return replace(board, sizes_from=f"{board.sizes_from} (arduino-cli tells no limits)")
    return replace(
        board,
        flash=_limited(board.flash, limits.flash, board.arduino.linker_flash),
        ram=_limited(board.ram, limits.ram, board.arduino.linker_ram),
        sizes_from=f"boards.txt of {board.arduino.core} {limits.version}".rstrip(),
    )


def core_limits(cli: Path, arduino: Arduino) -> CoreLimits:
    """What `boards.txt` allows a sketch for a board and its options.

    Raises:
        ToolError: the core is not installed, or arduino-cli does not answer.
    """
    # Properties come expanded by default; older versions do not know the option that asks for it.
    answer, failed = call(cli, ["board", "details", "--fqbn", arduino.fqbn], _PATIENCE_S)
    if failed:
        error = str(answer.get("error") or "")
        # Not installed is "platform … is not installed", or without an index "unknown package" and "unknown platform".
        if any(words in error.lower() for words in ("not installed", "unknown package", "unknown platform")):
            raise ToolError(f"core {arduino.core} is not installed", where=arduino.fqbn)
        raise ToolError("arduino-cli does not know the board", where=arduino.fqbn, hint=error)
    listed = answer.get("build_properties")
    properties = dict(_pairs(listed if isinstance(listed, list) else []))
    version = answer.get("version")
    return CoreLimits(
        version=version if isinstance(version, str) else "",
        flash=_bytes(properties.get("upload.maximum_size", "")),
        ram=_bytes(properties.get("upload.maximum_data_size", "")),
    )


def installed_cores(cli: Path) -> dict[str, str]:
    """Versions of the installed cores, by id.

    Raises:
        ToolError: arduino-cli does not answer.
    """
    answer, _ = answer_of(cli, ["core", "list"], _PATIENCE_S)
    # A list until 0.35, with other names in it.
    rows = answer.get("platforms") if isinstance(answer, dict) else answer
    cores = {}
    for row in rows if isinstance(rows, list) else []:
        version = (row.get("installed_version") or row.get("installed")) if isinstance(row, dict) else None
        if version and row.get("id"):
            cores[str(row["id"])] = str(version)
    return cores


def cli_version(cli: Path) -> str:
    """The version arduino-cli says of itself, empty when it says none; raises ToolError when it does not answer."""
    return str(call(cli, ["version"], _PATIENCE_S)[0].get("VersionString") or "")


def _limited(memory: Memory, core: int | None, linker: int | None) -> Memory:
    """A memory with the core's size, and no larger than its linker script has."""
    if core is None:
        return memory
    return replace(memory, size=core if linker is None else min(core, linker))


def _pairs(properties: Iterable[object]) -> Iterable[tuple[str, str]]:
    for line in properties:
        name, equals, value = str(line).partition("=")
        if equals:
            yield name, value


def _bytes(text: str) -> int | None:
    """A positive number of bytes, decimal; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None
