"""Whether the device's answers are right, byte for byte."""

from toolkit.verification.verify import (
    Difference,
    LayerRun,
    Verdict,
    by_instruction,
    checked_sample,
    fetch_layers,
    first_wrong_layer,
    verify,
)

__all__ = [
    "Difference",
    "LayerRun",
    "Verdict",
    "by_instruction",
    "checked_sample",
    "fetch_layers",
    "first_wrong_layer",
    "verify",
]
