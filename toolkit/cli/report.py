"""What a job found out, as data, and as a table for people."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from toolkit.board import Board
from toolkit.building import Image
from toolkit.cli.job import Lowered
from toolkit.planning import Plan
from toolkit.verification import Verdict


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the last table says.

    Attributes:
        data: what `--json` prints.
        kernels: the kernel library, and what of code and constants is kept in RAM.
    """

    data: dict[str, Any]
    kernels: str

    @property
    def verified(self) -> bool:
        return bool(self.data["verified"])


def make_report(
    lowered: Lowered, plan: Plan, board: Board, image: Image, verdict: Verdict, seconds: dict[str, float]
) -> Report:
    ticks_per_run = verdict.ticks / verdict.samples if verdict.samples else 0.0
    per_s = board.emulator.instructions_per_s if board.emulator else 0
    counted = bool(per_s)
    # Virtual time says nothing about a real board's; the timer of a real board or of this computer does.
    timed = not counted
    data = {
        "board": board.name,
        "model": lowered.name,
        "verified": verdict.verified,
        "samples": verdict.samples,
        "bytes_compared": verdict.bytes_compared,
        "max_abs_diff_lsb": verdict.max_abs_diff_lsb,
        "accuracy": _accuracy(lowered, verdict),
        "instructions_per_inference": round(ticks_per_run * per_s / verdict.ticks_per_s) if counted else None,
        "latency_us": round(ticks_per_run * 1e6 / verdict.ticks_per_s, 1) if timed else None,
        "kernels": plan.library,
        "flash": {"code": image.flash.code, "constants": image.flash.constants, "total": image.flash.total},
        "ram": {
            "arena": image.ram.arena,
            "static": image.ram.static,
            "stack": verdict.stack,
            "total": image.ram.arena + image.ram.static + verdict.stack,
        },
        "stages_s": seconds,
        "image": str(image.elf),
        "project": str(image.project),
    }
    return Report(data, _kernels(plan))


def _kernels(plan: Plan) -> str:
    if not plan.regions.code_in_ram:
        return plan.library
    held, all_bytes = plan.constant_bytes_in_ram, plan.constant_bytes
    return f"{plan.library}, run from RAM with {held:,} of {all_bytes:,} bytes of constants"


def _accuracy(lowered: Lowered, verdict: Verdict) -> dict[str, float] | None:
    if lowered.labels is None or lowered.float_outputs is None:
        return None
    labels = np.asarray(lowered.labels)

    def score(outputs: list[Any]) -> float:
        predicted = np.array([int(np.argmax(output)) for output in outputs])
        return round(float((predicted == labels).mean()), 6)

    return {
        "float": score(list(lowered.float_outputs)),
        "host": score([outputs[0] for outputs in verdict.host]),
        "device": score([outputs[0] for outputs in verdict.device]),
    }


def save_report(report: Report, folder: Path) -> None:
    """Write `report.json` into a folder, whole or not at all."""
    descriptor, part = tempfile.mkstemp(dir=folder, prefix=".report-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(report.data, stream, indent=2)
        stream.write("\n")
    Path(part).replace(folder / "report.json")


def print_report(report: Report, console: Console) -> None:
    data = report.data
    table = Table(box=box.SIMPLE_HEAD, show_header=False, pad_edge=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    for name, value in _rows(report):
        table.add_row(name, value)
    console.print()
    console.print(table, highlight=False)
    if data["verified"]:
        console.print(
            f"[bold green]verified[/bold green]: {data['model']} on {data['board']} answers every byte as it should",
            highlight=False,
        )


def _rows(report: Report) -> list[tuple[str, str]]:
    data = report.data
    rows = []
    if accuracy := data["accuracy"]:
        rows.append(
            (
                "accuracy",
                f"{accuracy['float']:.2%} float on this computer, {accuracy['host']:.2%} int8 on this computer, "
                f"{accuracy['device']:.2%} int8 on the device",
            )
        )
    rows.append(
        (
            "compared",
            f"{data['bytes_compared']:,} output bytes of {data['samples']:,} samples, "
            f"largest difference {data['max_abs_diff_lsb']} LSB",
        )
    )
    if data["instructions_per_inference"] is not None:
        rows.append(("speed", f"{data['instructions_per_inference']:,} instructions per inference"))
    if data["latency_us"] is not None:
        rows.append(("latency", f"{data['latency_us']:,.1f} µs per inference"))
    flash, ram = data["flash"], data["ram"]
    rows.append(("flash", f"{flash['total']:,} bytes: {flash['code']:,} code, {flash['constants']:,} constants"))
    rows.append(
        (
            "RAM",
            f"{ram['total']:,} bytes: {ram['arena']:,} arena, {ram['static']:,} static, {ram['stack']:,} deepest stack",
        )
    )
    rows.append(("kernels", report.kernels))
    rows.append(("time", ", ".join(f"{name} {seconds:.1f} s" for name, seconds in data["stages_s"].items())))
    rows.append(("project", data["project"]))
    return rows
