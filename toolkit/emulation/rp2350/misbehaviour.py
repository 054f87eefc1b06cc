"""What the virtual board can do wrong on request, as boards on desks do.

Each misbehaviour has a text form for the command line, `name:key=value,key=value`, and happens `times` times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any

from toolkit.errors import UsageError

FROM_BOARD = "from-board"
TO_BOARD = "to-board"


@dataclass(frozen=True, slots=True)
class PortGone:
    """The USB port does not come back for a while.

    Attributes:
        seconds: how long.
        after: `flash` (a UF2 was taken), `reboot` (any other reset), or `any`.
        times: how often this happens.
    """

    seconds: float
    after: str = "any"
    times: int = 1


@dataclass(frozen=True, slots=True)
class PortRenamed:
    """The USB port comes back under another name and device."""

    times: int = 1


@dataclass(frozen=True, slots=True)
class BytesLost:
    """Bytes get lost on the way.

    Attributes:
        direction: `from-board` or `to-board`.
        after: bytes of that direction that still pass, counted from the start of the process.
        count: bytes that are lost then.
        port: `usb` or `uart`.
        times: how often, `after` bytes apart.
    """

    direction: str
    after: int
    count: int = 1
    port: str = "usb"
    times: int = 1


@dataclass(frozen=True, slots=True)
class Silent:
    """The board takes bytes and does not answer any more.

    Attributes:
        after: bytes it still sends, on both ports together.
    """

    after: int = 0
    times: int = 1


@dataclass(frozen=True, slots=True)
class VolumeFull:
    """Writing the UF2 fails with ENOSPC.

    Attributes:
        name: of the file that cannot be written; the folder holds it already, as a link to /dev/full.
        times: how many BOOTSEL sessions are like this.
    """

    name: str = "runner.uf2"
    times: int = 1


@dataclass(frozen=True, slots=True)
class TornWrite:
    """The board stops taking the UF2: it stays in BOOTSEL, the folder is mounted anew, flash is partly written.

    Attributes:
        blocks: UF2 blocks that are still programmed.
    """

    blocks: int
    times: int = 1


@dataclass(frozen=True, slots=True)
class RebootAt:
    """The power fails for a moment: the board boots anew.

    Attributes:
        instructions: executed since the last boot.
    """

    instructions: int
    times: int = 1


Fault = PortGone | PortRenamed | BytesLost | Silent | VolumeFull | TornWrite | RebootAt

KINDS: dict[str, type[Any]] = {
    "port-gone": PortGone,
    "port-renamed": PortRenamed,
    "bytes-lost": BytesLost,
    "silent": Silent,
    "volume-full": VolumeFull,
    "torn-write": TornWrite,
    "reboot": RebootAt,
}
_ALLOWED = {
    "after": ("flash", "reboot", "any"),
    "direction": (FROM_BOARD, TO_BOARD),
    "port": ("usb", "uart"),
}


def text_of(fault: Fault) -> str:
    """The text form of a misbehaviour."""
    name = next(name for name, kind in KINDS.items() if isinstance(fault, kind))
    values = ",".join(f"{field.name}={getattr(fault, field.name)}" for field in fields(fault))
    return f"{name}:{values}"


def parse(text: str) -> Fault:
    """A misbehaviour from its text form.

    Raises:
        UsageError: it is not one.
    """
    name, _, rest = text.partition(":")
    kind = KINDS.get(name)
    if kind is None:
        raise UsageError(f"there is no misbehaviour {name!r}", hint=f"Known: {', '.join(KINDS)}.")
    wanted = {field.name: field for field in fields(kind)}
    given: dict[str, Any] = {}
    for word in rest.split(",") if rest else ():
        key, _, value = word.partition("=")
        if key not in wanted:
            raise UsageError(f"{name} has no {key!r}", where=text, hint=f"It has: {', '.join(wanted)}.")
        given[key] = _value(kind, key, value, text)
    missing = [key for key, field in wanted.items() if key not in given and field.default is MISSING]
    if missing:
        raise UsageError(f"{name} needs {', '.join(missing)}", where=text)
    made: Fault = kind(**given)
    return made


def _value(kind: type[Any], key: str, value: str, text: str) -> object:
    converters: dict[str, Callable[[str], object]] = {"int": int, "float": float, "str": str}
    annotation = kind.__dataclass_fields__[key].type
    try:
        converted = converters[annotation](value)
    except ValueError:
        raise UsageError(f"{key} is {value!r}, which is not a number", where=text) from None
    if isinstance(converted, str) and key in _ALLOWED and converted not in _ALLOWED[key]:
        raise UsageError(f"{key} is {value!r}", where=text, hint=f"It can be: {', '.join(_ALLOWED[key])}.")
    return converted


class Plan:
    """The misbehaviours that are still to come."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self._left = [(fault, [fault.times]) for fault in faults]

    def peek(self, kind: type[Any], **conditions: object) -> Any:
        """The next misbehaviour of a kind whose attributes have these values; None where there is none."""
        for fault, left in self._left:
            if (
                isinstance(fault, kind)
                and left[0]
                and all(getattr(fault, key) == value for key, value in conditions.items())
            ):
                return fault
        return None

    def use(self, fault: Fault) -> None:
        """It has happened once."""
        for mine, left in self._left:
            if mine is fault:
                left[0] -= 1

    def take(self, kind: type[Any], **conditions: object) -> Any:
        """As `peek`, and it has happened."""
        fault = self.peek(kind, **conditions)
        if fault is not None:
            self.use(fault)
        return fault


class Losses:
    """Loses bytes of one direction of one port."""

    def __init__(self, plan: Plan, port: str, direction: str) -> None:
        self._plan = plan
        self._match = {"port": port, "direction": direction}
        self._passed = 0
        self._losing = 0

    def filter(self, data: bytes) -> bytes:
        """What is left of data on the way."""
        fault = self._plan.peek(BytesLost, **self._match)
        if fault is None and not self._losing:
            return data
        kept = bytearray()
        for byte in data:
            if not self._losing and fault is not None and self._passed >= fault.after:
                self._plan.use(fault)
                self._losing, self._passed = fault.count, 0
                fault = self._plan.peek(BytesLost, **self._match)
            if self._losing:
                self._losing -= 1
            else:
                kept.append(byte)
                self._passed += 1
        return bytes(kept)
