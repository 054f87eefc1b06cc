"""Random sequences of misbehaviour on a virtual Pico 2, each followed by a run without any.

    python -m tests.flashing.sequences --count 200 [--seed N]

Every run ends verified or in a DeployError that says what to do next; the run after it, on the same board with whatever
is in its flash, ends verified; no process stays. Prints how the runs ended.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from tests import sequences
from tests.conftest import golden_input, golden_plan
from tests.sequences import Trial
from toolkit.building import Image, build
from toolkit.device import Device, Timeouts, Transport
from toolkit.emulation import rp2350
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

        def flash_and_verify() -> None:
            flasher = Uf2Flasher(plan.board, FolderDesk(desk), patience=PATIENCE)
            port = flasher.flash(image.elf.with_suffix(".uf2"))
            with Transport(port) as transport:
                device = Device(transport, timeouts=TIMEOUTS, stopped=board.stopped)
                verdict = verify(device, plan, [(golden_input(MODEL),)])
            assert verdict.verified, (faults, verdict.difference)

        return sequences.ending_of(flash_and_verify, "verified")


def repaired(desk: Path, image: Image, plan: Plan) -> bool:
    """Whether a run without faults ends verified; half an image needs the button that the tool asks for."""
    ending = run_once(desk, image, plan)
    if ending == "FlashError":
        ending = run_once(desk, image, plan, bootsel=True)
    return ending == "verified"


@dataclass(frozen=True)
class VirtualPico:
    """A virtual Pico 2 whose flash lasts from one run to the next."""

    desk: Path
    image: Image
    plan: Plan
    faults: Sequence[rp2350.Fault]

    def run(self) -> str:
        return run_once(self.desk, self.image, self.plan, self.faults)

    def repair(self) -> str:
        return "" if repaired(self.desk, self.image, self.plan) else "not verified"


def run_sequences(image: Image, plan: Plan, count: int, seed: int) -> Counter[str]:
    """How `count` faulty runs ended."""
    with tempfile.TemporaryDirectory(prefix="desk-") as folder:
        trial = Trial(
            draw=random_faults,
            bed=lambda faults: nullcontext(VirtualPico(Path(folder), image, plan, faults)),
            endings=("verified", "FlashError", "DeviceError"),
            longest_s=LONGEST_S,
        )
        return sequences.run_sequences(trial, count, seed)


def built_image(folder: Path) -> tuple[Plan, Image]:
    plan = golden_plan(MODEL, "pico2")
    render(plan, folder)
    return plan, build(folder, plan.board)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        plan, image = built_image(Path(folder) / "project")
        sequences.main(__doc__, lambda count, seed: run_sequences(image, plan, count, seed))


if __name__ == "__main__":
    main()
