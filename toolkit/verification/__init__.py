"""Whether the device's answers are right, byte for byte."""

from toolkit.verification.verify import Difference, Verdict, by_instruction, checked_sample, fetch_layers, verify

__all__ = ["Difference", "Verdict", "by_instruction", "checked_sample", "fetch_layers", "verify"]
