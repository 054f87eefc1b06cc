"""One operator call of a program: its arguments by name, each checked for kind and range when it is taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from toolkit.program.layout import contiguous, is_ordered
from toolkit.program.place import Place
from toolkit.program.signatures import Kind, Signature
from toolkit.program.types import DType, Pair, Shape, Tensor
from toolkit.program.values import StoredTensor, StoredTensors, Value, Values, describe

Range = tuple[int, int]
"""Lowest and highest allowed value."""

INT8: Range = (-128, 127)
OFFSET: Range = (-127, 128)
"""Minus a zero point, as convolutions add it to every sample."""
INT32: Range = (-(2**31), 2**31 - 1)
INT64: Range = (-(2**63), 2**63 - 1)
COUNT: Range = (1, 2**31 - 1)
"""Of something that there is at least one of: a stride, a dilation, a kernel size."""
PADDING: Range = (0, 2**31 - 1)
WIDE_ZERO_POINT: Range = (-(2**15) + 128, 2**15 - 128)
"""Of a factor, which a fused hard-swish moves out of int8. The distance of a sample to it must fit 16 bits."""
MULTIPLIER: Range = (0, 2**31 - 1)
"""Q0.31."""
SIGNED_MULTIPLIER: Range = (-(2**31) + 1, 2**31 - 1)
SHIFT: Range = (-31, 30)
"""Left if positive; the arithmetic is 32-bit, so a shift by 32 would be undefined."""

_FOREIGN_ARGUMENT = "The file is damaged, or this form of the operator is one that this toolkit does not know."
_EXPECTED: Mapping[Kind, tuple[type, ...]] = {
    Kind.TENSOR: (StoredTensor,),
    Kind.OPTIONAL_TENSOR: (StoredTensor, type(None)),
    Kind.SCRATCH: (StoredTensor,),
    Kind.INTEGER: (int,),
    Kind.OPTIONAL_INTEGER: (int, type(None)),
    Kind.REAL: (int, float),
    Kind.FLAG: (bool,),
    Kind.INTEGERS: (tuple,),
    Kind.TENSORS: (StoredTensors,),
}


@dataclass(frozen=True, slots=True)
class Call:
    """An operator call.

    Attributes:
        index: position of the instruction in the chain.
        name: `namespace::operator`.
        place: the instruction, for errors.
        output: the result.
        scratch: tensors that the program's own kernel may overwrite.
    """

    index: int
    name: str
    place: Place
    output: StoredTensor
    scratch: tuple[StoredTensor, ...]
    _arguments: Mapping[str, Value]
    _values: Values

    def fail(self, what: str, *, hint: str = "") -> NoReturn:
        raise self.place.error(what, hint=hint)

    def any_tensor(self, name: str) -> Tensor:
        """A tensor whatever its element type."""
        value = self._arguments[name]
        assert isinstance(value, StoredTensor), name
        return value.tensor

    def tensor(self, name: str, dtype: DType) -> Tensor:
        """A tensor of a given element type that is computed, fed in, or constant; not empty."""
        return self._typed(name, self.any_tensor(name), dtype)

    def tensors(self, name: str, dtype: DType) -> tuple[Tensor, ...]:
        """Tensors of a given element type, none of them empty."""
        value = self._arguments[name]
        assert isinstance(value, StoredTensors), name
        return tuple(self._typed(name, stored.tensor, dtype) for stored in value.tensors)

    def result(self, dtype: DType) -> Tensor:
        """The operator's output."""
        return self._typed("output", self.output.tensor, dtype)

    def constant(self, name: str, dtype: DType, shape: Shape | None = None) -> Tensor:
        """A tensor whose elements are in the file, row by row; `shape` where only one is right."""
        tensor = self.tensor(name, dtype)
        if tensor.constant is None:
            self.fail(f"{name} (tensor {tensor.id}) is computed at run time; it must be a constant")
        if shape is not None and tensor.shape != shape:
            self.fail(f"{name} (tensor {tensor.id}) has the shape {list(tensor.shape)}, not {list(shape)}")
        if not is_ordered(tensor, contiguous(len(tensor.shape))):
            self.fail(f"{name} (tensor {tensor.id}) is stored in the dim order {list(tensor.dim_order)}")
        return tensor

    def optional_constant(self, name: str, dtype: DType, shape: Shape | None = None) -> Tensor | None:
        return None if self._arguments[name] is None else self.constant(name, dtype, shape)

    def integer(self, name: str, allowed: Range) -> int:
        value = self._arguments[name]
        assert isinstance(value, int), name
        return self._in_range(name, value, allowed)

    def optional_integer(self, name: str, allowed: Range) -> int | None:
        return None if self._arguments[name] is None else self.integer(name, allowed)

    def integers(self, name: str, allowed: Range) -> tuple[int, ...]:
        value = self._arguments[name]
        assert isinstance(value, tuple), name
        return tuple(self._in_range(name, item, allowed) for item in value)

    def pair(self, name: str, allowed: Range) -> Pair:
        """Two integers, along height and along width; one stands for both."""
        items = self.integers(name, allowed)
        if len(items) not in (1, 2):
            self.fail(f"{name} has {len(items)} elements, not 2")
        return items[0], items[-1]

    def flag(self, name: str) -> bool:
        value = self._arguments[name]
        assert isinstance(value, bool), name
        return value

    def scale(self, name: str) -> float:
        """A quantisation scale that neither it nor its reciprocal leaves the normal range of float32."""
        value = self._arguments[name]
        assert isinstance(value, int | float), name
        real = float(value) if abs(value) < 2.0**127 else math.inf
        smallest = 2.0**-126
        if not smallest <= real < 2.0**126:
            self.fail(f"{name} is {value!r}; a scale must be positive and finite")
        return real

    def activation(self) -> Range:
        """`activation_min` and `activation_max`."""
        return self.bounds("activation_min", "activation_max")

    def bounds(self, low_name: str, high_name: str) -> Range:
        """Two int8 bounds of which the first is not above the second."""
        low, high = self.integer(low_name, INT8), self.integer(high_name, INT8)
        if low > high:
            self.fail(f"{low_name} {low} is above {high_name} {high}")
        return low, high

    def requantisation(self, channels: int) -> tuple[Tensor, Tensor]:
        """The constants `multiplier` and `shift`, int32 (channels,)."""
        multiplier = self.constant("multiplier", DType.INT32, (channels,))
        shift = self.constant("shift", DType.INT32, (channels,))
        for name, tensor, allowed in (("multiplier", multiplier, MULTIPLIER), ("shift", shift, SHIFT)):
            elements = constant_array(tensor)
            channel = int(np.argmax((elements < allowed[0]) | (elements > allowed[1])))
            self._in_range(f"{name} of channel {channel}", int(elements[channel]), allowed)
        return multiplier, shift

    def add_constant(self, shape: Shape, dtype: DType, constant: bytes) -> Tensor:
        """A constant that the file does not hold; see `Values.add`."""
        return self._values.add(shape, dtype, constant)

    def _typed(self, name: str, tensor: Tensor, dtype: DType) -> Tensor:
        if tensor.dtype is not dtype:
            found, needed = tensor.dtype.name.lower(), dtype.name.lower()
            self.fail(f"{name} (tensor {tensor.id}) is {found}; only {needed} is supported")
        if tensor.size == 0:
            self.fail(f"{name} (tensor {tensor.id}) is empty: its shape is {list(tensor.shape)}")
        return tensor

    def _in_range(self, name: str, value: int, allowed: Range) -> int:
        if not allowed[0] <= value <= allowed[1]:
            self.fail(f"{name} is {value}; it must be within {allowed[0]} and {allowed[1]}")
        return value


def constant_array(tensor: Tensor) -> npt.NDArray[Any]:
    """The elements of a constant in its physical shape; read-only."""
    assert tensor.constant is not None, tensor.id
    return np.frombuffer(tensor.constant, tensor.dtype.value).reshape(tensor.physical_shape)


def decode_call(
    index: int, name: str, place: Place, signature: Signature, ids: tuple[int, ...], values: Values
) -> Call:
    """Pairs the serialised arguments with their names; raises ProgramError when their kinds do not fit."""
    count = len(signature.arguments) + signature.results
    if len(ids) != count:
        raise place.damage(f"it has {len(ids)} arguments, not {count}")
    if len(set(ids[len(signature.arguments) :])) != 1:
        raise place.damage("the result and the returned value are different tensors")
    arguments: dict[str, Value] = {}
    scratch: list[StoredTensor] = []
    for (argument, kind), id_ in zip(signature.arguments, ids, strict=False):
        if kind is Kind.ANY:
            continue
        value = values.value(id_)
        # A truth value is an int to Python, and never one to an operator.
        fits = isinstance(value, _EXPECTED[kind]) and (kind is Kind.FLAG or not isinstance(value, bool))
        if not fits:
            raise place.error(f"{argument} (value {id_}) is {describe(value)}", hint=_FOREIGN_ARGUMENT)
        arguments[argument] = value
        if kind is Kind.SCRATCH and isinstance(value, StoredTensor):
            scratch.append(value)
    return Call(index, name, place, values.tensor(ids[-1]), tuple(scratch), arguments, values)
