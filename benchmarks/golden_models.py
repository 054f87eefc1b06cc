"""The golden models on the virtual Cortex-M33, beside the stock stack.

    python -m benchmarks.golden_models [MODEL…]

Prints one row per model: executed instructions per inference, bytes of flash and RAM, and what the stock stack takes
(ExecuTorch's runtime and Cortex-M operators with CMSIS-NN, gcc 12.2 -O2, the same board).
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from toolkit import flashing
from toolkit.board import load_board
from toolkit.building import build
from toolkit.device import Device, Transport
from toolkit.planning import make_plan
from toolkit.program import read_program
from toolkit.rendering import render
from toolkit.verification import verify

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "models"


@dataclass(frozen=True)
class Figures:
    """Instructions per inference, and bytes."""

    instructions: int
    flash: int
    ram: int


STOCK = {
    "ds_cnn": Figures(8_272_843, 51_884 + 50_992, 32_518),
    "resnet8": Figures(30_002_272, 43_692 + 171_976, 66_130),
    "mbv1": Figures(24_468_384, 47_528 + 299_976, 175_486),
    "dae": Figures(598_224, 31_040 + 278_048, 12_158),
}


def measure(name: str, board_name: str = "qemu-m33") -> Figures:
    """Deploy one golden model and measure it; raises when its answer is not the golden one."""
    board = load_board(board_name)
    program = read_program((GOLDEN / name / f"{name}.pte").read_bytes(), source=name)
    plan = make_plan(program, board, model=name)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        render(plan, project)
        image = build(project, board)
        with flashing.flash(image, board) as running, Transport(running.port) as transport:
            device = Device(transport, stopped=running.stopped)
            verdict = verify(device, plan, [(np.load(GOLDEN / name / "input.npy"),)])
    if not verdict.verified:
        raise SystemExit(f"{name} answers wrong: {verdict.difference}")
    per_s = board.emulator.instructions_per_s if board.emulator else 0
    return Figures(
        instructions=round(verdict.ticks * per_s / verdict.ticks_per_s),
        flash=image.flash.total,
        ram=image.ram.arena + image.ram.static + verdict.stack,
    )


def main() -> None:
    names = sys.argv[1:] or list(STOCK)
    print("| model | instructions | stock | flash | stock | RAM | stock |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in names:
        ours, stock = measure(name), STOCK[name]
        print(
            f"| {name} | {ours.instructions:,} | {stock.instructions:,} | {ours.flash:,} | {stock.flash:,} "
            f"| {ours.ram:,} | {stock.ram:,} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
