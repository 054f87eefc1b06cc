"""Where in a program something is, so that every error says it."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.errors import ProgramError

DAMAGED = "The file is damaged or was cut short: copy or export it again."
"""The hint for contents that no exporter writes."""

_LONGEST_QUOTE = 60


@dataclass(frozen=True, slots=True)
class Place:
    """A path of parts from the file inwards, as text: `model.pte, operator 3 (cortex_m::softmax)`."""

    text: str

    def inside(self, part: str) -> Place:
        """The place of a part of what is here."""
        return Place(f"{self.text}, {part}")

    def error(self, what: str, *, hint: str = "") -> ProgramError:
        """An error about what is here, to be raised by the caller."""
        return ProgramError(what, where=self.text, hint=hint)

    def damage(self, what: str) -> ProgramError:
        """An error about contents that no exporter writes."""
        return self.error(what, hint=DAMAGED)


def quote(text: str) -> str:
    """Text from a file, made safe and short enough to show in an error."""
    shown = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "..."
    return ascii(shown)[1:-1]
