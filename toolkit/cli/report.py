"""What a job found out, as data, and as a table for people."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.table import Table

from toolkit.board import Board
from toolkit.building import Image
from toolkit.cli.job import Lowered
from toolkit.planning import Plan
from toolkit.program.types import macs
from toolkit.rendering.names import operator_title
from toolkit.verification import Verdict


@dataclass(frozen=True, slots=True)
class Layers:
    """What the layers of a model gave, each run alone on the first sample.

    Attributes:
        ticks: per step, of the device's timer.
        results: by instruction of the program, logical shapes.
        wrong: position of the first step whose result is not the reference's, None when all are right.
    """

    ticks: tuple[int, ...]
    results: dict[int, npt.NDArray[Any]]
    wrong: int | None


@dataclass(frozen=True, slots=True)
class LayerCost:
    """What one step of the plan takes.

    Attributes:
        layer: name in the user's model, empty when unknown.
        operator: what it computes.
        kernel: the function that computes it.
        macs: multiply-accumulate operations.
        instructions: executed; None where they are not counted.
        microseconds: None where time is virtual.
    """

    layer: str
    operator: str
    kernel: str
    macs: int
    instructions: int | None
    microseconds: float | None


@dataclass(frozen=True, slots=True)
class OurLayer:
    """A step that our kernels compute although the plan uses another library.

    Attributes:
        position: of the step.
        layer: name in the user's model, empty when unknown.
        operator: what it computes.
        kernel: the function that computes it.
        reason: why.
    """

    position: int
    layer: str
    operator: str
    kernel: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the last tables say.

    Attributes:
        data: what `--json` prints.
        kernels: the kernel library and where it is, and what of code and constants is kept in RAM.
        ours: the steps that the kernel library does not compute.
        layers: cost per step; empty unless asked for.
        sizes: how large the board's flash and RAM are, and who says so; empty where only its own file does.
    """

    data: dict[str, Any]
    kernels: str
    ours: tuple[OurLayer, ...]
    layers: tuple[LayerCost, ...]
    sizes: str

    @property
    def verified(self) -> bool:
        return bool(self.data["verified"])


def make_report(
    lowered: Lowered, plan: Plan, image: Image, verdict: Verdict, layers: Layers | None, seconds: dict[str, float]
) -> Report:
    scale = _Scale(plan.board, verdict.ticks_per_s)
    ticks_per_run = verdict.ticks / verdict.samples if verdict.samples else 0.0
    data = {
        "board": plan.board.name,
        "model": lowered.name,
        "verified": verdict.verified and (layers is None or layers.wrong is None),
        "samples": verdict.samples,
        "bytes_compared": verdict.bytes_compared,
        "max_abs_diff_lsb": verdict.max_abs_diff_lsb,
        "accuracy": _accuracy(lowered, verdict),
        "instructions_per_inference": scale.instructions(ticks_per_run),
        "latency_us": scale.microseconds(ticks_per_run),
        "kernels": plan.kernels,
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
    costs = _layer_costs(plan, layers.ticks, scale) if layers else ()
    return Report(data, _kernels(plan), _our_layers(plan), costs, _sizes(plan.board))


@dataclass(frozen=True, slots=True)
class _Scale:
    """Ticks of a board's timer as instructions where those are counted, as time where time is real."""

    board: Board
    ticks_per_s: int

    def instructions(self, ticks: float) -> int | None:
        per_s = self.board.emulator.instructions_per_s if self.board.emulator else 0
        return round(ticks * per_s / self.ticks_per_s) if per_s else None

    def microseconds(self, ticks: float) -> float | None:
        return None if self.instructions(ticks) is not None else round(ticks * 1e6 / self.ticks_per_s, 1)


def _layer_costs(plan: Plan, ticks: Sequence[int], scale: _Scale) -> tuple[LayerCost, ...]:
    return tuple(
        LayerCost(
            layer=step.layer,
            operator=operator_title(step.operator),
            kernel=step.kernel.function,
            macs=macs(step.operator),
            instructions=scale.instructions(taken),
            microseconds=scale.microseconds(taken),
        )
        for step, taken in zip(plan.steps, ticks, strict=True)
    )


def _sizes(board: Board) -> str:
    if not board.sizes_from:
        return ""
    return f"{board.flash.size:,} bytes of flash and {board.ram.size:,} of RAM: {board.sizes_from}"


def _our_layers(plan: Plan) -> tuple[OurLayer, ...]:
    return tuple(
        OurLayer(position, step.layer, operator_title(step.operator), step.kernel.function, step.kernel.reason)
        for position, step in enumerate(plan.steps)
        if step.kernel.reason
    )


def _kernels(plan: Plan) -> str:
    text = plan.kernels
    if plan.library.folder is not None:
        text += f"; from {plan.library.folder}"
    if not plan.regions.code_in_ram:
        return text
    held, all_bytes = plan.constant_bytes_in_ram, plan.constant_bytes
    return f"{text}, run from RAM with {held:,} of {all_bytes:,} bytes of constants"


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
        details = {
            "placement": report.kernels,
            "sizes": report.sizes,
            "our_layers": [asdict(layer) for layer in report.ours],
            "layers": [asdict(layer) for layer in report.layers],
        }
        json.dump(report.data | details, stream, indent=2)
        stream.write("\n")
    Path(part).replace(folder / "report.json")


def print_report(report: Report, console: Console) -> None:
    data = report.data
    if report.layers:
        console.print()
        console.print(_layer_table(report.layers), highlight=False)
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


def _layer_table(layers: tuple[LayerCost, ...]) -> Table:
    counted = layers[0].instructions is not None
    costs = [float((layer.instructions if counted else layer.microseconds) or 0) for layer in layers]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("#", "layer", "operator", "instructions" if counted else "µs", "share", "MACs"):
        table.add_column(name, justify="left" if name in ("layer", "operator") else "right", no_wrap=True)
    for position, (layer, cost) in enumerate(zip(layers, costs, strict=True)):
        amount = f"{cost:,.0f}" if counted else f"{cost:,.1f}"
        share = f"{cost / max(sum(costs), 1e-9):.0%}"
        done = f"{layer.macs:,}" if layer.macs else ""
        table.add_row(f"{position:02d}", layer.layer, layer.operator, amount, share, done)
    return table


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
    if report.sizes:
        rows.append(("sizes", report.sizes))
    rows.append(("kernels", report.kernels))
    by_reason: dict[str, list[str]] = {}
    for layer in report.ours:
        by_reason.setdefault(layer.reason, []).append(f"{layer.position:02d} {layer.layer or layer.operator}")
    rows += [("ours", f"{', '.join(named)}: {reason}") for reason, named in by_reason.items()]
    rows.append(("time", ", ".join(f"{name} {seconds:.1f} s" for name, seconds in data["stages_s"].items())))
    rows.append(("project", data["project"]))
    return rows
