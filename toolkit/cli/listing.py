"""What there is: boards, and the tools they need."""

from __future__ import annotations

import importlib.metadata
import json
import sys

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from toolkit.board import board_names, load_board
from toolkit.building import TOOLS, find, find_cmsis_nn, version
from toolkit.building.arduino_cli import find_arduino_cli
from toolkit.building.arduino_core import cli_version, installed_cores
from toolkit.building.pico_sdk import fetch_pico_sdk, require_pico_sdk
from toolkit.errors import ToolError
from toolkit.flashing.arduino.running import find_uploader

_PACKAGES = ("torch", "executorch", "cmake", "ninja", "pyserial", "jinja2", "numpy", "flatbuffers")


def boards(as_json: bool) -> None:
    """All boards with core and memories."""
    all_boards = [load_board(name) for name in board_names()]
    if as_json:
        rows = [
            {
                "name": board.name,
                "title": board.title,
                "cpu": board.cpu,
                "flash": board.flash.size,
                "ram": board.ram.size,
                "virtual": board.emulator is not None,
            }
            for board in all_boards
        ]
        print(json.dumps(rows))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("board", "core", "flash", "RAM", ""):
        table.add_column(name, justify="right" if name in ("flash", "RAM") else "left")
    for board in all_boards:
        table.add_row(board.name, board.cpu, _kib(board.flash.size), _kib(board.ram.size), board.title)
    Console().print(table, highlight=False)


def _kib(nbytes: int) -> str:
    return f"{nbytes // 1024:,} KiB"


def doctor(as_json: bool, fix: bool = False) -> int:
    """All tools and packages; 0 when nothing is missing.

    Args:
        as_json: print JSON instead of a table.
        fix: first fetch what can be fetched.
    """
    rows = [
        {
            "tool": "python",
            "version": ".".join(map(str, sys.version_info[:3])),
            "path": sys.executable,
            "hint": "",
        }
    ]
    for tool in TOOLS:
        path = find(tool)
        rows.append(
            {
                "tool": tool.name,
                "version": version(path) if path else "",
                "path": str(path) if path else "",
                "hint": "" if path else f"{tool.purpose}: sudo apt-get install {tool.package}",
            }
        )
    for package in _PACKAGES:
        try:
            rows.append({"tool": package, "version": importlib.metadata.version(package), "path": "", "hint": ""})
        except importlib.metadata.PackageNotFoundError:
            rows.append({"tool": package, "version": "", "path": "", "hint": f"pip install {package}"})
    rows.append(_pico_sdk(fix))
    rows.append(_cmsis_nn())
    rows += [_arduino_cli(), _uploader("bossac", "bossa-cli", "--help"), _uploader("dfu-util", "dfu-util", "--version")]
    missing = [row for row in rows if row["hint"]]
    if as_json:
        print(json.dumps(rows))
        return 1 if missing else 0
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "tool", "version", "where, or how to get it"):
        table.add_column(name, overflow="fold")
    for row in rows:
        there = "[green]✓[/green]" if row["version"] or row["path"] else "-"
        where = row["hint"] or "; ".join(filter(None, (row["path"], row.get("note", ""))))
        table.add_row("[red]✗[/red]" if row["hint"] else there, row["tool"], row["version"], escape(where))
    Console().print(table, highlight=False)
    return 1 if missing else 0


def _pico_sdk(fix: bool) -> dict[str, str]:
    row = {"tool": "Pico SDK", "version": "", "path": "", "hint": ""}
    try:
        sdk = fetch_pico_sdk() if fix else require_pico_sdk()
    except ToolError as error:
        return row | {"hint": f"{error.what}. {error.hint}"}
    return row | {"version": sdk.version, "path": str(sdk.path)}


def _cmsis_nn() -> dict[str, str]:
    """Arm's CMSIS-NN, which nothing needs: it is wrong only where one is named and cannot be used."""
    row = {"tool": "CMSIS-NN", "version": "", "path": "", "hint": ""}
    try:
        found = find_cmsis_nn()
    except ToolError as error:
        return row | {"hint": f"CMSIS_NN_PATH leads to {error.where}: {error.what}"}
    if found is None:
        return row | {"note": "not needed: our kernels do its work; CMSIS_NN_PATH would name a copy"}
    return row | {"version": found.version or found.revision, "path": str(found.path)}


def _arduino_cli() -> dict[str, str]:
    """What compiles sketches for real boards, and its cores: wrong only where one is named and does not answer."""
    row = {"tool": "arduino-cli", "version": "", "path": "", "hint": ""}
    try:
        cli = find_arduino_cli()
        if cli is None:
            return row | {"note": "only for real Arduino boards: put it on PATH, or name it by ARDUINO_CLI"}
        row |= {"version": cli_version(cli), "path": str(cli)}
        cores = installed_cores(cli)
    except ToolError as error:
        return row | {"hint": f"{error.where}: {error.what}"}
    wanted = _cores_of_boards()
    there = ", ".join(f"{core} {number}" for core, number in sorted(cores.items()))
    missing = ", ".join(f"{core} ({', '.join(names)})" for core, names in wanted.items() if core not in cores)
    notes = [f"cores: {there or 'none'}"]
    if missing:
        notes.append(f"`arduino-cli core install` brings {missing}")
    return row | {"note": "; ".join(notes)}


def _cores_of_boards() -> dict[str, list[str]]:
    """Names of the Arduino boards, by their core."""
    cores: dict[str, list[str]] = {}
    for board in map(load_board, board_names()):
        if board.arduino is not None:
            cores.setdefault(board.arduino.core, []).append(board.name)
    return cores


def _uploader(name: str, package: str, asks_version: str) -> dict[str, str]:
    """What uploads to some Arduino boards: wrong only where a variable names one that is not there."""
    row = {"tool": name, "version": "", "path": "", "hint": ""}
    boards = [board for board in map(load_board, board_names()) if board.arduino and board.arduino.upload == name]
    note = f"uploads to {', '.join(board.name for board in boards)}"
    try:
        path = find_uploader(name, package)
    except ToolError as error:
        if error.where != name:
            return row | {"hint": f"{name.upper().replace('-', '_')} names no program: {error.where}"}
        return row | {"note": f"only for real Arduino boards ({note}): comes with their core, or as package {package}"}
    return row | {"version": version(path, asks_version), "path": str(path), "note": note}
