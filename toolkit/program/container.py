"""The outer shell of a `.pte`: identifier, extended header, root table, and the places where constants lie.

A file is a flatbuffer, optionally with an extended header after its identifier and segments of raw data after its
end. Constants are in the flatbuffer (`constant_buffer`, older files) or in a segment (`constant_segment`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from toolkit.program.flatbuffer import Buffer, View
from toolkit.program.place import DAMAGED, Place, quote
from toolkit.program.schema import HEADER_MAGIC, IDENTIFIER, SCHEMA_VERSION

_IDENTIFIER_AT = 4
_HEADER_AT = 8
_HEADER = struct.Struct("<4sIQQ")
_SEGMENT_DATA_SIZE = struct.Struct("<Q")
_FOREIGN = (
    (_IDENTIFIER_AT, b"TFL", "a TensorFlow Lite model"),
    (0, b"PK\x03\x04", "a zip archive, as PyTorch writes checkpoints and exported programs"),
    (0, b"\x7fELF", "an ELF image"),
    (0, b"\x93NUMPY", "a numpy array"),
)
_VERSION_HINT = "Export the model again with the executorch version that this toolkit is made for."


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the parts of the file are, in bytes."""

    flatbuffer_end: int
    segments_start: int | None
    segments_end: int


class Container:
    """A `.pte` whose shell has been verified.

    Attributes:
        root: the `Program` table.
        place: the file, for errors.
    """

    __slots__ = ("_constants", "_data", "_layout", "_offsets", "_segment", "place", "root")

    def __init__(self, data: bytes, place: Place) -> None:
        """Verifies identifier, header and schema version; raises ProgramError."""
        _check_identifier(data, place)
        self._data = data
        self._layout = _read_header(data, place)
        self.place = place
        self.root: View = Buffer(data, self._layout.flatbuffer_end, place).root("Program")
        version = self.root.integer("version")
        if version != SCHEMA_VERSION:
            raise place.error(f"schema version {version} is not known (only {SCHEMA_VERSION} is)", hint=_VERSION_HINT)
        segment = self.root.table("constant_segment")
        self._offsets: tuple[int, ...] = segment.scalars("offsets") if segment else ()
        self._segment = self._segment_bounds(segment.integer("segment_index")) if segment and self._offsets else (0, 0)
        self._constants = self.root.tables("constant_buffer")

    def constant(self, index: int, size: int, place: Place) -> tuple[int, int]:
        """First byte and size of a constant in the file.

        Args:
            index: number of the constant (`Tensor.data_buffer_idx`, above 0).
            size: bytes that the tensor needs.
            place: the tensor, for errors.
        """
        first, available = self._inline(index, place) if not self._offsets else self._in_segment(index, place)
        if size > available:
            raise place.damage(f"its shape needs {size} bytes, constant {index} has {available}")
        return first, size

    def _inline(self, index: int, place: Place) -> tuple[int, int]:
        if index >= len(self._constants):
            raise place.damage(f"it refers to constant {index} of {len(self._constants)}")
        return self._constants[index].span("storage")

    def _in_segment(self, index: int, place: Place) -> tuple[int, int]:
        if index >= len(self._offsets):
            raise place.damage(f"it refers to constant {index} of {len(self._offsets)}")
        start, end = self._segment
        first = start + self._offsets[index]
        following = start + self._offsets[index + 1] if index + 1 < len(self._offsets) else end
        if not start <= first <= following <= end:
            raise place.damage(f"constant {index} lies outside its segment")
        return first, following - first

    def _segment_bounds(self, index: int) -> tuple[int, int]:
        """First byte and end of a segment."""
        segments = self.root.tables("segments")
        if index >= len(segments):
            raise self.place.damage(f"constants are said to be in segment {index} of {len(segments)}")
        size = segments[index].integer("size")
        if self._layout.segments_start is None:
            if size:
                raise self.place.damage("constants are in a segment, and the file has no extended header to find it by")
            return 0, 0
        start = self._layout.segments_start + segments[index].integer("offset")
        if start + size > self._layout.segments_end:
            raise self.place.damage(f"segment {index} reaches beyond the end of the file")
        return start, start + size


def _check_identifier(data: bytes, place: Place) -> None:
    identifier = data[_IDENTIFIER_AT : _IDENTIFIER_AT + len(IDENTIFIER)]
    if identifier == IDENTIFIER:
        return
    for start, magic, kind in _FOREIGN:
        if data[start : start + len(magic)] == magic:
            raise place.error(f"this is {kind}, not an ExecuTorch program", hint="Export the model to a .pte first.")
    if not data:
        raise place.error("the file is empty", hint=DAMAGED)
    if identifier[:2] == IDENTIFIER[:2] and identifier[2:].isdigit() and len(identifier) == len(IDENTIFIER):
        known, found = IDENTIFIER.decode(), identifier.decode()
        raise place.error(f"the file identifier is {found}; only {known} is known", hint=_VERSION_HINT)
    shown = quote(identifier.decode("latin-1"))
    raise place.error(f"this is not an ExecuTorch program (file identifier '{shown}')", hint="Expected a .pte file.")


def _read_header(data: bytes, place: Place) -> _Layout:
    """The layout that the extended header states, or that of a file without one."""
    magic = data[_HEADER_AT : _HEADER_AT + len(HEADER_MAGIC)]
    if magic != HEADER_MAGIC:
        if magic[:2] == HEADER_MAGIC[:2] and magic[2:].isdigit():
            shown = quote(magic.decode("latin-1"))
            raise place.error(f"the extended header is of an unknown kind ('{shown}')", hint=_VERSION_HINT)
        return _Layout(flatbuffer_end=len(data), segments_start=None, segments_end=len(data))
    if len(data) < _HEADER_AT + _HEADER.size:
        raise place.damage("the extended header is cut short")
    _, length, program_size, segments_start = _HEADER.unpack_from(data, _HEADER_AT)
    if length < _HEADER.size or program_size < _HEADER_AT + length:
        raise place.damage("the extended header is malformed")
    expected = program_size
    if segments_start:
        size_at = _HEADER_AT + _HEADER.size
        has_size = length >= _HEADER.size + _SEGMENT_DATA_SIZE.size and len(data) >= size_at + _SEGMENT_DATA_SIZE.size
        expected = segments_start + (_SEGMENT_DATA_SIZE.unpack_from(data, size_at)[0] if has_size else 0)
        if segments_start < program_size:
            raise place.damage("the extended header says that segments begin inside the program")
    if max(expected, program_size) > len(data):
        raise place.damage(f"the file was cut short: it has {len(data)} bytes of {max(expected, program_size)}")
    return _Layout(flatbuffer_end=program_size, segments_start=segments_start or None, segments_end=len(data))
