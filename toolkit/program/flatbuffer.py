"""A checked view of a flatbuffer: every offset, vtable, vector, string and union is verified before it is followed.

Nothing is decoded before it is asked for, and each decoded element is paid from a budget proportional to the buffer's
size. Tables may share parts (the format allows it, and writers use it), so without a budget a small file could make a
reader decode the same large vector again and again.

The layout is that of the FlatBuffers internals document: a table starts with a signed 32-bit distance back to its
vtable, which lists 16-bit field offsets by slot; vectors and strings carry a 32-bit length; references are unsigned
32-bit distances forward.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from flatbuffers import number_types as numbers

from toolkit.program.place import Place
from toolkit.program.schema import TABLES, Field, Scalar, Scalars, String, Table, Tables, Union

_REFERENCE = numbers.UOffsetTFlags
_SMALLEST_BUDGET = 4096


class Buffer:
    """The bytes of one flatbuffer and what is left of its decoding budget.

    Args:
        data: the file; the flatbuffer is `data[:end]`.
        end: one past the last byte a reference may reach.
        place: the file, for errors.
    """

    __slots__ = ("_budget", "data", "end", "place")

    def __init__(self, data: bytes, end: int, place: Place) -> None:
        self.data = data
        self.end = end
        self.place = place
        # Every element of an honest file occupies at least one byte and is decoded at most once.
        self._budget = max(end, _SMALLEST_BUDGET)

    def spend(self, elements: int) -> None:
        """Takes decoded elements from the budget; raises ProgramError when it is used up."""
        self._budget -= elements
        if self._budget < 0:
            raise self.place.damage("the file refers to the same parts again and again, beyond what it can hold")

    def require(self, start: int, size: int, what: str) -> None:
        """Raises ProgramError unless `size` bytes from `start` lie inside the flatbuffer."""
        if start < 0 or size < 0 or start + size > self.end:
            raise self.place.damage(f"{what} lies outside the file (byte {start}, {size} bytes of {self.end})")

    def number(self, number_type: Any, start: int, what: str) -> Any:
        """The number of a `flatbuffers.number_types` class at `start`."""
        self.require(start, number_type.bytewidth, what)
        return number_type.packer_type.unpack_from(self.data, start)[0]

    def follow(self, start: int, what: str) -> int:
        """The position that the reference stored at `start` points to."""
        distance = int(self.number(_REFERENCE, start, what))
        target = start + distance
        self.require(target, _REFERENCE.bytewidth, what)
        return target

    def vector(self, start: int, width: int, what: str) -> tuple[int, int]:
        """First element's position and length of the vector whose reference is stored at `start`."""
        position = self.follow(start, what)
        length = int(self.number(_REFERENCE, position, what))
        first = position + _REFERENCE.bytewidth
        self.require(first, length * width, what)
        return first, length

    def numbers(self, number_type: Any, first: int, length: int) -> tuple[Any, ...]:
        """`length` numbers from `first`; the caller has checked that they are inside."""
        self.spend(length)
        code = number_type.packer_type.format[-1]
        return struct.unpack_from(f"<{length}{code}", self.data, first)

    def root(self, table: str) -> View:
        """The root table, which the reference at the start of the buffer points to."""
        return View(self, table, self.follow(0, f"the root table {table}"))


@cache
def _slots(table: str) -> Mapping[str, tuple[int, Field]]:
    """The fields of a table with their slots; a union's slot is that of its tag."""
    slots: dict[str, tuple[int, Field]] = {}
    slot = 0
    for name, field in TABLES[table].items():
        slots[name] = slot, field
        slot += 2 if isinstance(field, Union) else 1
    return MappingProxyType(slots)


class View:
    """One verified table. Fields are read by the names in `schema.TABLES`; absent ones give their default."""

    __slots__ = ("_buffer", "_offsets", "_position", "name")

    def __init__(self, buffer: Buffer, name: str, position: int) -> None:
        self._buffer = buffer
        self.name = name
        self._position = position
        vtable = position - int(buffer.number(numbers.SOffsetTFlags, position, f"a table {name}"))
        vtable_size = int(buffer.number(numbers.VOffsetTFlags, vtable, f"the vtable of a {name}"))
        buffer.require(vtable, vtable_size, f"the vtable of a {name}")
        if vtable_size < 4 or vtable_size % 2:
            raise buffer.place.damage(f"the vtable of a {name} at byte {vtable} is malformed")
        self._offsets = buffer.numbers(numbers.VOffsetTFlags, vtable + 4, vtable_size // 2 - 2)
        buffer.spend(1)

    def integer(self, name: str) -> int:
        """A whole number or a truth value."""
        return int(self._scalar(name))

    def number(self, name: str) -> float:
        return float(self._scalar(name))

    def string(self, name: str) -> str | None:
        """Text, or None where it is absent; raises ProgramError when it is not UTF-8."""
        slot, _ = self._field(name, String)
        start = self._start(name, slot, _REFERENCE.bytewidth)
        if start is None:
            return None
        first, length = self._buffer.vector(start, 1, self._label(name))
        self._buffer.spend(length)
        try:
            return self._buffer.data[first : first + length].decode("utf-8")
        except UnicodeDecodeError:
            raise self._buffer.place.damage(f"{self._label(name)} is not text") from None

    def scalars(self, name: str) -> tuple[Any, ...]:
        """A vector of numbers; empty where it is absent."""
        first, length, number_type = self._vector(name)
        return self._buffer.numbers(number_type, first, length) if length else ()

    def span(self, name: str) -> tuple[int, int]:
        """First byte and size of a vector of bytes, which is not decoded."""
        first, length, _ = self._vector(name)
        return first, length

    def table(self, name: str) -> View | None:
        slot, field = self._field(name, Table)
        start = self._start(name, slot, _REFERENCE.bytewidth)
        if start is None:
            return None
        return View(self._buffer, field.name, self._buffer.follow(start, self._label(name)))

    def tables(self, name: str) -> TableVector:
        """A vector of tables, each verified when it is taken; empty where it is absent."""
        slot, field = self._field(name, Tables)
        start = self._start(name, slot, _REFERENCE.bytewidth)
        if start is None:
            return TableVector(self._buffer, field.name, 0, ())
        first, length = self._buffer.vector(start, _REFERENCE.bytewidth, self._label(name))
        return TableVector(self._buffer, field.name, first, self._buffer.numbers(_REFERENCE, first, length))

    def union(self, name: str) -> View:
        """The member that a union holds, whatever its kind (`View.name` says which); it may not be absent."""
        slot, field = self._field(name, Union)
        label = self._label(name)
        tag_start = self._start(name, slot, 1)
        tag = 0 if tag_start is None else int(self._buffer.number(numbers.Uint8Flags, tag_start, label))
        start = self._start(name, slot + 1, _REFERENCE.bytewidth)
        if tag == 0 or start is None:
            raise self._buffer.place.damage(f"{label} is empty")
        if tag > len(field.members):
            raise self._buffer.place.damage(f"{label} is of an unknown kind ({tag})")
        return View(self._buffer, field.members[tag - 1], self._buffer.follow(start, label))

    def _label(self, name: str) -> str:
        return f"{self.name}.{name}"

    def _field(self, name: str, kind: type) -> tuple[int, Any]:
        slot, field = _slots(self.name)[name]
        if not isinstance(field, kind):
            raise TypeError(f"{self._label(name)} is a {type(field).__name__}, not a {kind.__name__}")
        return slot, field

    def _start(self, name: str, slot: int, width: int) -> int | None:
        """Position of a field's own bytes, None where it is absent."""
        offset = int(self._offsets[slot]) if slot < len(self._offsets) else 0
        if offset == 0:
            return None
        # The vtable also states the table's size, which is no use as a bound: the exporter's writer lets tables of
        # different sizes share a vtable. The end of the buffer is the bound.
        start = self._position + offset
        self._buffer.require(start, width, self._label(name))
        return start

    def _scalar(self, name: str) -> Any:
        slot, field = self._field(name, Scalar)
        start = self._start(name, slot, field.type.bytewidth)
        return field.default if start is None else self._buffer.number(field.type, start, self._label(name))

    def _vector(self, name: str) -> tuple[int, int, Any]:
        slot, field = self._field(name, Scalars)
        start = self._start(name, slot, _REFERENCE.bytewidth)
        if start is None:
            return 0, 0, field.type
        first, length = self._buffer.vector(start, field.type.bytewidth, self._label(name))
        return first, length, field.type


class TableVector:
    """A vector of tables of one kind; an element is verified when it is taken."""

    __slots__ = ("_buffer", "_first", "_name", "_references")

    def __init__(self, buffer: Buffer, name: str, first: int, references: tuple[int, ...]) -> None:
        self._buffer = buffer
        self._name = name
        self._first = first
        self._references = references

    def __len__(self) -> int:
        return len(self._references)

    def __getitem__(self, index: int) -> View:
        if not 0 <= index < len(self):
            raise IndexError(index)
        position = self._first + _REFERENCE.bytewidth * index + self._references[index]
        return View(self._buffer, self._name, position)

    def __iter__(self) -> Iterator[View]:
        return (self[index] for index in range(len(self)))
