"""The programs that the tests read."""

from __future__ import annotations

from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden" / "models"
LOWERED = Path(__file__).parent / "lowered"

GOLDEN_NAMES = ("ds_cnn", "resnet8", "mbv1", "dae")
LOWERED_NAMES = tuple(sorted(path.stem for path in LOWERED.glob("*.pte")))


def sample(name: str) -> bytes:
    """A program by the name of a golden model or of a file in `lowered`."""
    path = GOLDEN / name / f"{name}.pte" if name in GOLDEN_NAMES else LOWERED / f"{name}.pte"
    return path.read_bytes()
