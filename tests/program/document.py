"""A `.pte` as plain dictionaries, to take apart, change, and write again.

A table is a dictionary by field name, a union a pair of kind and table. Written with the `flatbuffers` builder, so that
what the reader meets here comes from another hand than its own. A dictionary that occurs several times is written once
and referred to. Constants are bytes under `constant_buffer`, and go into a segment on request.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import flatbuffers
from flatbuffers import number_types as numbers

from toolkit.program.container import Container
from toolkit.program.flatbuffer import View
from toolkit.program.place import Place
from toolkit.program.schema import TABLES, Scalar, Scalars, String, Table, Tables, Union

Document = dict[str, Any]

_SEGMENT_ALIGNMENT = 128
_HEADER_SIZE = 32


def load(data: bytes) -> Document:
    """The `Program` table with everything below it, except tables that the reader's schema leaves opaque."""
    container = Container(data, Place("document"))
    document = _read(container.root, data)
    segment = document.pop("constant_segment", None)
    if segment and segment["offsets"]:
        base = struct.unpack_from("<Q", data, 24)[0] if data[8:12] == b"eh00" else 0
        first = base + document["segments"][segment["segment_index"]]["offset"]
        end = first + document["segments"][segment["segment_index"]]["size"]
        bounds = [first + offset for offset in segment["offsets"]] + [end]
        stored = [data[start:stop] for start, stop in pairwise(bounds)]
        document["constant_buffer"] = [{"storage": content} for content in stored]
    document["segments"] = []
    return document


def dump(document: Document, *, in_segment: bool = False, identifier: bytes = b"ET12") -> bytes:
    """The bytes of a program; constants in the flatbuffer, or behind an extended header in a segment."""
    if not in_segment:
        return _build(document, identifier)
    offsets, blob = [], b""
    for buffer in document["constant_buffer"]:
        blob += bytes(-len(blob) % 16)
        offsets.append(len(blob))
        blob += buffer["storage"]
    moved = {
        **document,
        "constant_buffer": [],
        "segments": [{"offset": 0, "size": len(blob)}],
        "constant_segment": {"segment_index": 0, "offsets": offsets},
    }
    flat = _build(moved, identifier)
    program_size = len(flat) + _HEADER_SIZE
    base = -(-program_size // _SEGMENT_ALIGNMENT) * _SEGMENT_ALIGNMENT
    header = b"eh00" + struct.pack("<IQQQ", _HEADER_SIZE, program_size, base, len(blob))
    root = struct.unpack_from("<I", flat)[0] + _HEADER_SIZE
    program = struct.pack("<I", root) + flat[4:8] + header + flat[8:]
    return program + bytes(base - program_size) + blob


def plan(document: Document) -> Document:
    """The first execution plan."""
    return document["execution_plan"][0]


def calls(document: Document) -> list[Document]:
    """The kernel calls of the first plan, in order."""
    return [instruction["instr_args"][1] for instruction in plan(document)["chains"][0]["instructions"]]


def value(document: Document, index: int) -> Document:
    """The table of a value of the first plan."""
    return plan(document)["values"][index]["val"][1]


def argument(document: Document, call: int, position: int) -> Document:
    """The table of an argument of a call of the first plan."""
    return value(document, calls(document)[call]["args"][position])


def operator_names(document: Document) -> list[str]:
    """The name of every call's operator."""
    names = [operator["name"] for operator in plan(document)["operators"]]
    return [names[call["op_index"]] for call in calls(document)]


def add_value(document: Document, kind: str, content: Document) -> int:
    """Appends a value to the first plan; returns its index."""
    values = plan(document)["values"]
    values.append({"val": (kind, content)})
    return len(values) - 1


def _read(view: View, data: bytes) -> Document:
    content: Document = {}
    for name, field in TABLES[view.name].items():
        if isinstance(field, Scalar):
            content[name] = view.number(name) if field.type is numbers.Float64Flags else view.integer(name)
        elif isinstance(field, String):
            content[name] = view.string(name)
        elif isinstance(field, Scalars) and name == "storage":
            first, size = view.span(name)
            content[name] = data[first : first + size]
        elif isinstance(field, Scalars):
            content[name] = list(view.scalars(name))
        elif isinstance(field, Table) and field.name in TABLES:
            inner = view.table(name)
            if inner is not None:
                content[name] = _read(inner, data)
        elif isinstance(field, Tables) and field.name in TABLES:
            content[name] = [_read(entry, data) for entry in view.tables(name)]
        elif isinstance(field, Union):
            member = view.union(name)
            content[name] = (member.name, _read(member, data))
    return content


def _build(document: Document, identifier: bytes) -> bytes:
    writer = _Writer()
    writer.builder.Finish(writer.table("Program", document), file_identifier=identifier)
    return bytes(writer.builder.Output())


class _Writer:
    """Writes tables depth first; one that occurs again is only referred to."""

    def __init__(self) -> None:
        self.builder: Any = flatbuffers.Builder(1024)
        self._written: dict[int, int] = {}

    def table(self, name: str, content: Document) -> int:
        if id(content) not in self._written:
            self._written[id(content)] = self._new_table(name, content)
        return self._written[id(content)]

    def _new_table(self, table: str, content: Document) -> int:
        builder, fields = self.builder, TABLES[table]
        present = [name for name in content if content[name] is not None]
        parts = {name: self._part(fields[name], content[name]) for name in present}
        builder.StartObject(sum(2 if isinstance(field, Union) else 1 for field in fields.values()))
        slot = 0
        for name, field in fields.items():
            if name in parts and isinstance(field, Union):
                builder.PrependUint8Slot(slot, field.members.index(content[name][0]) + 1, 0)
                builder.PrependUOffsetTRelativeSlot(slot + 1, parts[name], 0)
            elif name in parts and isinstance(field, Scalar):
                builder.PrependSlot(field.type, slot, content[name], field.default)
            elif name in parts:
                builder.PrependUOffsetTRelativeSlot(slot, parts[name], 0)
            slot += 2 if isinstance(field, Union) else 1
        return builder.EndObject()

    def _part(self, field: Any, content: Any) -> int:
        """What a field refers to, written before its table; 0 for what is in the table itself."""
        builder = self.builder
        if isinstance(field, Scalar):
            return 0
        if isinstance(field, String):
            return builder.CreateString(content)
        if isinstance(field, Table):
            return self.table(field.name, content)
        if isinstance(field, Union):
            return self.table(*content)
        if isinstance(field, Tables):
            references = [self.table(field.name, entry) for entry in content]
            builder.StartVector(4, len(references), 4)
            for reference in reversed(references):
                builder.PrependUOffsetTRelative(reference)
            return builder.EndVector()
        if field.type is numbers.Uint8Flags:
            return builder.CreateByteVector(bytes(content))
        builder.StartVector(field.type.bytewidth, len(content), field.type.bytewidth)
        for item in reversed(content):
            builder.Prepend(field.type, item)
        return builder.EndVector()
