"""Random sequences of misbehaviour on a virtual Pico 2, each followed by a run without any.

    python -m tests.flashing.sequences --count 200 [--seed N]

Every run ends verified or in a DeployError that says what to do next; the run after it, on the same board with whatever
is in its flash, ends verified; no process stays. Prints how the runs ended.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import golden_input, golden_plan
from toolkit.building import Image, build
from toolkit.device import Device, Timeouts, Transport
from toolkit.emulation import rp2350
from toolkit.errors import DeployError
from toolkit.flashing.desk import FolderDesk
from toolkit.flashing.uf2_drive import Patience, Uf2Flasher
from toolkit.planning import Plan
from toolkit.rendering import render
from toolkit.verification import verify

MODEL = "dae"
LONGEST_S = 90.0
PATIENCE = Patience(drive=6, person=6, port=15, access=3)
TIMEOUTS = Timeouts(repeat=0.3, answer=4, inference=10, greeting=6)


def random_faults(source: random.Random) -> list[rp2350.Fault]:
    """One to three misbehaviours."""
    kinds = [
        lambda: rp2350.PortGone(seconds=source.uniform(0.5, 5), after=source.choice(["flash", "reboot", "any"])),
        lambda: rp2350.PortRenamed(times=source.randint(1, 3)),
        lambda: rp2350.BytesLost(
            direction=source.choice(["from-board", "to-board"]),
            after=source.randint(0, 6000),
            count=source.randint(1, 40),
            times=source.randint(1, 5),
        ),
        lambda: rp2350.Silent(after=source.randint(0, 3000)),
        lambda: rp2350.VolumeFull(),
        lambda: rp2350.TornWrite(blocks=source.randint(1, 1000), times=source.randint(1, 4)),
        lambda: rp2350.RebootAt(instructions=source.randint(1_000, 20_000_000)),
    ]
    return [source.choice(kinds)() for _ in range(source.randint(1, 3))]


def run_once(
    desk: Path, image: Image, plan: Plan, faults: Sequence[rp2350.Fault] = (), *, bootsel: bool = False
) -> str:
    """Flash and verify; `verified`, or the class of an error, which says what to do next."""
    with rp2350.start(desk, elf=image.elf, faults=faults, keep_flash=True, bootsel=bootsel) as board:
        try:
            flasher = Uf2Flasher(plan.board, FolderDesk(desk), patience=PATIENCE)
            port = flasher.flash(image.elf.with_suffix(".uf2"))
            with Transport(port) as transport:
                device = Device(transport, timeouts=TIMEOUTS, stopped=board.stopped)
                verdict = verify(device, plan, [(golden_input(MODEL),)])
        except DeployError as error:
            return type(error).__name__ if error.hint else f"an error without a next step: {error}"
        assert verdict.verified, (faults, verdict.difference)
        return "verified"


def repaired(desk: Path, image: Image, plan: Plan) -> bool:
    """Whether a run without faults ends verified; half an image needs the button that the tool asks for."""
    ending = run_once(desk, image, plan)
    if ending == "FlashError":
        ending = run_once(desk, image, plan, bootsel=True)
    return ending == "verified"


def children() -> set[int]:
    """Processes that this one has started and that still run."""
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text(encoding="utf-8")
    return {int(word) for word in listed.split()}


def run_sequences(image: Image, plan: Plan, count: int, seed: int) -> Counter[str]:
    """How `count` faulty runs ended; raises AssertionError at the first that ends otherwise than it may."""
    source = random.Random(seed)
    endings: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="desk-") as folder:
        desk = Path(folder)
        for number in range(count):
            faults = random_faults(source)
            before = children()
            started = time.monotonic()
            ending = run_once(desk, image, plan, faults)
            assert time.monotonic() - started < LONGEST_S, faults
            assert ending in ("verified", "FlashError", "DeviceError"), (faults, ending)
            endings[ending] += 1
            assert repaired(desk, image, plan), (number, faults, ending)
            assert children() == before, faults
    return endings


def built_image(folder: Path) -> tuple[Plan, Image]:
    plan = golden_plan(MODEL, "pico2")
    render(plan, folder)
    return plan, build(folder, plan.board)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plan, image = built_image(Path(folder) / "project")
        started = time.monotonic()
        endings = run_sequences(image, plan, words.count, words.seed)
    print(f"{words.count} sequences in {time.monotonic() - started:.0f} s: {dict(endings)}")


if __name__ == "__main__":
    main()
