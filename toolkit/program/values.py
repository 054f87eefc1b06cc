"""The values of an execution plan: numbers, lists, and tensors with their constants and places in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from toolkit.program.container import Container
from toolkit.program.flatbuffer import View
from toolkit.program.layout import contiguous, element_order
from toolkit.program.place import Place, quote
from toolkit.program.schema import CPU, EXTERNAL_DATA, FOREIGN_SCALAR_TYPES, SCALAR_TYPES, STATIC_SHAPE
from toolkit.program.types import DType, Shape, Tensor

LARGEST_TENSOR = 2**31 - 1
"""Bytes; indices on the target are 32-bit."""
LONGEST_LIST = 256
"""Tensors that one operator joins."""
_LARGEST_RANK = 16


@dataclass(frozen=True, slots=True)
class Slot:
    """Where the program's own memory plan puts a tensor: bytes from the start of one of its memories."""

    memory: int
    offset: int


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor and its slot; None for a constant, or for an input or output that the caller provides."""

    tensor: Tensor
    slot: Slot | None


@dataclass(frozen=True, slots=True)
class StoredTensors:
    """A list of tensors."""

    tensors: tuple[StoredTensor, ...]


Value = StoredTensor | StoredTensors | tuple[int, ...] | int | float | bool | str | None


class Values:
    """The values of one plan, decoded when they are asked for and then kept.

    Constants are copied out of the file once per use and paid from a budget of the file's own size, because many
    tensors can refer to one constant.
    """

    def __init__(self, container: Container, plan: View, data: bytes) -> None:
        self._container = container
        self._entries = plan.tables("values")
        self._memories: tuple[int, ...] = plan.scalars("non_const_buffer_sizes")
        self._data = data
        self._constants: dict[tuple[int, int], bytes] = {}
        self._constants_left = len(data)
        self._values: dict[int, Value] = {}
        self._added = 0

    def place(self, index: int) -> Place:
        """Where a value is, for errors."""
        return self._container.place.inside(f"value {index}")

    def value(self, index: int) -> Value:
        """A value by its index; raises ProgramError when there is none, or it is malformed or of no use here."""
        if index not in self._values:
            if not 0 <= index < len(self._entries):
                raise self._container.place.damage(f"value {index} of {len(self._entries)} is referred to")
            self._values[index] = self._decode(index, self._entries[index].union("val"))
        return self._values[index]

    def tensor(self, index: int) -> StoredTensor:
        """A value that must be a tensor."""
        value = self.value(index)
        if not isinstance(value, StoredTensor):
            raise self.place(index).error(f"a tensor is expected, this is {describe(value)}")
        return value

    def add(self, shape: Shape, dtype: DType, constant: bytes) -> Tensor:
        """A constant that the file does not hold; its id follows those of the file's values."""
        tensor = Tensor(
            id=len(self._entries) + self._added,
            shape=shape,
            dtype=dtype,
            dim_order=tuple(range(len(shape))),
            constant=constant,
        )
        self._added += 1
        self._values[tensor.id] = StoredTensor(tensor, None)
        return tensor

    def _decode(self, index: int, view: View) -> Value:
        place = self.place(index)
        if view.name == "Tensor":
            return self._decode_tensor(index, view, place)
        if view.name == "Null":
            return None
        if view.name == "Int":
            return view.integer("int_val")
        if view.name == "Bool":
            return bool(view.integer("bool_val"))
        if view.name == "Double":
            return view.number("double_val")
        if view.name == "String":
            return view.string("string_val") or ""
        if view.name == "IntList":
            return tuple(self._item(item, place) for item in view.scalars("items"))
        if view.name == "TensorList":
            return self._decode_tensors(view.scalars("items"), place)
        raise place.error(f"a value of kind {view.name} is not supported")

    def _item(self, index: int, place: Place) -> int:
        """An element of an integer list, which is the index of the value that holds it."""
        if index not in self._values:
            if not 0 <= index < len(self._entries):
                raise place.damage(f"an integer list refers to value {index} of {len(self._entries)}")
            entry = self._entries[index].union("val")
            # Only plain integers are decoded here, so that a list cannot lead into another list.
            if entry.name != "Int":
                raise place.damage(f"an integer list holds a value of kind {entry.name}")
            self._values[index] = entry.integer("int_val")
        value = self._values[index]
        if not isinstance(value, int) or isinstance(value, bool):
            raise place.damage(f"an integer list holds {describe(value)}")
        return value

    def _decode_tensors(self, items: tuple[int, ...], place: Place) -> StoredTensors:
        if len(items) > LONGEST_LIST:
            raise place.error(f"a list of {len(items)} tensors; at most {LONGEST_LIST} are supported")
        for item in items:
            # Only plain tensors are decoded here, so that a list cannot lead into another list.
            if not 0 <= item < len(self._entries) or self._entries[item].union("val").name != "Tensor":
                raise place.damage(f"a list of tensors refers to value {item}, which is none")
        return StoredTensors(tuple(self.tensor(item) for item in items))

    def _decode_tensor(self, index: int, view: View, place: Place) -> StoredTensor:
        dtype = _dtype(view.integer("scalar_type"), place)
        shape, dim_order = _shape(view, place)
        size = math.prod(shape) * dtype.itemsize
        if size > LARGEST_TENSOR:
            raise place.error(f"a tensor of {size} bytes cannot be on a microcontroller")
        if view.integer("storage_offset"):
            raise place.error("a tensor that begins inside its storage is not supported")
        if view.integer("shape_dynamism") != STATIC_SHAPE:
            raise place.error(
                "the tensor has a dynamic shape",
                hint="Export the model with fixed sizes: every tensor of a firmware image is laid out at the desk.",
            )
        _check_location(view.table("extra_tensor_info"), place)
        constant_index = view.integer("data_buffer_idx")
        slot = self._slot(view.table("allocation_info"), size, place)
        if constant_index and slot:
            raise place.error(
                "the tensor is state: it is kept from one inference to the next",
                hint="Pass the state in and out as an input and an output of the model.",
            )
        if not constant_index:
            return StoredTensor(Tensor(index, shape, dtype, dim_order), slot)
        row_by_row = contiguous(len(shape))
        if element_order(shape, dim_order) == element_order(shape, row_by_row):
            # With axes of size 1 there are other spellings of this order; one is enough for those who use the bytes.
            dim_order = row_by_row
        constant = self._constant(constant_index, size, place)
        return StoredTensor(Tensor(index, shape, dtype, dim_order, constant), slot)

    def _slot(self, view: View | None, size: int, place: Place) -> Slot | None:
        if view is None:
            return None
        memory = view.integer("memory_id")
        offset = view.integer("memory_offset_high") << 32 | view.integer("memory_offset_low")
        if memory >= len(self._memories):
            raise place.damage(f"the tensor is in memory {memory}, the program has {len(self._memories)}")
        if offset + size > self._memories[memory]:
            end = self._memories[memory]
            raise place.damage(f"the tensor ends at byte {offset + size} of a memory of {end} bytes")
        return Slot(memory, offset)

    def _constant(self, index: int, size: int, place: Place) -> bytes:
        first, size = self._container.constant(index, size, place)
        if (first, size) not in self._constants:
            self._constants_left -= size
            if self._constants_left < 0:
                raise place.damage("the constants overlap: together they are larger than the file")
            self._constants[first, size] = self._data[first : first + size]
        return self._constants[first, size]


def describe(value: Value) -> str:
    """A value in words, for errors."""
    if isinstance(value, StoredTensor):
        tensor = value.tensor
        return f"a tensor ({tensor.dtype.name.lower()} {list(tensor.shape)})"
    if isinstance(value, StoredTensors):
        return f"a list of {len(value.tensors)} tensors"
    if isinstance(value, tuple):
        return f"a list of {len(value)} integers"
    names = {bool: "a truth value", int: "an integer", float: "a real number", str: "a text", type(None): "absent"}
    return names[type(value)]


def _dtype(number: int, place: Place) -> DType:
    if number in SCALAR_TYPES:
        return SCALAR_TYPES[number]
    if number in FOREIGN_SCALAR_TYPES:
        raise place.error(f"tensors of {FOREIGN_SCALAR_TYPES[number]} are not supported")
    raise place.damage(f"the element type {number} is unknown")


def _shape(view: View, place: Place) -> tuple[Shape, tuple[int, ...]]:
    """Logical sizes and dim order."""
    shape: Shape = view.scalars("sizes")
    dim_order: tuple[int, ...] = view.scalars("dim_order")
    if len(shape) > _LARGEST_RANK:
        raise place.damage(f"a tensor of {len(shape)} dimensions")
    if any(size < 0 for size in shape):
        raise place.damage(f"the sizes {list(shape)} are not all positive")
    if sorted(dim_order) != list(range(len(shape))):
        raise place.damage(f"the dim order {list(dim_order)} does not fit the sizes {list(shape)}")
    return shape, dim_order


def _check_location(extra: View | None, place: Place) -> None:
    if extra is None:
        return
    if extra.integer("location") == EXTERNAL_DATA:
        name = quote(extra.string("fully_qualified_name") or "unnamed")
        raise place.error(
            f"the data of '{name}' is kept outside the program",
            hint="Export without external constants (`external_constants=False`), so that the .pte is complete.",
        )
    if extra.integer("device_type") != CPU:
        raise place.error("the tensor is placed on an accelerator")
