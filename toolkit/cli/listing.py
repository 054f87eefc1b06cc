"""What there is: boards, and the tools they need."""

from __future__ import annotations

import importlib.metadata
import json
import sys

from rich import box
from rich.console import Console
from rich.table import Table

from toolkit.board import board_names, load_board
from toolkit.building import TOOLS, find, find_cmsis_nn, version
from toolkit.building.pico_sdk import fetch_pico_sdk, require_pico_sdk
from toolkit.errors import ToolError

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
    missing = [row for row in rows if row["hint"]]
    if as_json:
        print(json.dumps(rows))
        return 1 if missing else 0
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "tool", "version", "where, or how to get it"):
        table.add_column(name, overflow="fold")
    for row in rows:
        mark = "[red]✗[/red]" if row["hint"] else "[green]✓[/green]"
        table.add_row(mark, row["tool"], row["version"], row["hint"] or row["path"] or row.get("note", ""))
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
