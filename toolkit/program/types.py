"""A lowered program: typed operators over typed tensors, in execution order.

The types say what the numbers mean. Where bytes lie in memory is planning's business, with one exception: a program
fixes the order in which the elements of each tensor follow each other (`dim_order`), and everything here is stated in
that physical order, so that the two layouts a `.pte` can have (channels-last dim order, or explicit `*_nhwc`
operators) look the same to every later room.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from math import prod
from typing import ClassVar

Shape = tuple[int, ...]
Shape4 = tuple[int, int, int, int]
"""Batch, height, width, channels."""
Pair = tuple[int, int]
"""Along height, along width."""


class DType(Enum):
    """Element type of a tensor. The values are numpy's type strings (little-endian)."""

    BOOL = "|b1"
    UINT8 = "|u1"
    INT8 = "|i1"
    INT16 = "<i2"
    INT32 = "<i4"
    INT64 = "<i8"
    FLOAT32 = "<f4"

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return int(self.value[-1])


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a program.

    Attributes:
        id: index of the tensor among the program's values.
        shape: logical sizes (a legacy image tensor is batch, channels, height, width).
        dtype: element type.
        dim_order: logical axes from the outermost to the innermost in memory. A constant that lies row by row says so:
            its `physical_shape` is its `shape`.
        constant: the elements in physical order for a constant, None for an activation.
    """

    id: int
    shape: Shape
    dtype: DType
    dim_order: tuple[int, ...]
    constant: bytes | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def physical_shape(self) -> Shape:
        """The sizes in the order in which they lie in memory, outermost first."""
        return tuple(self.shape[axis] for axis in self.dim_order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One step of a program. Fields named in `operands` hold tensor ids (None where an optional one is absent).

    Attributes:
        index: position of the instruction in the program's chain; for a `View` that stands for an aliasing of memory
            (no instruction), the index of the instruction that reads it.
        name: the serialised name, `namespace::operator`.
        output: tensor id of the result.
    """

    operands: ClassVar[tuple[str, ...]] = ("input",)

    index: int
    name: str
    output: int

    @property
    def reads(self) -> tuple[tuple[str, int], ...]:
        """Every tensor the operator reads, constants included: name of the operand and id."""
        return tuple((name, id) for name in self.operands if (id := getattr(self, name)) is not None)

    @property
    def inputs(self) -> tuple[int, ...]:
        """Ids of every tensor the operator reads, constants included."""
        return tuple(id for _, id in self.reads)

    def reading(self, alias: Mapping[int, int]) -> Operator:
        """The operator with other tensors in place of those that it reads."""
        return replace(self, **{name: alias[id] for name, id in self.reads if id in alias})  # type: ignore[arg-type]

    def __repr__(self) -> str:
        words = ", ".join(
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name not in ("index", "name")
        )
        return f"{self.index:02d} {type(self).__name__}({words})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Quantize(Operator):
    """float32 to int8: clamp(round_half_even(x * float32(1 / scale)) + zero_point, quant_min, quant_max)."""

    input: int
    scale: float
    zero_point: int
    quant_min: int
    quant_max: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Dequantize(Operator):
    """int8 to float32: (q - zero_point) * float32(scale)."""

    input: int
    scale: float
    zero_point: int
    quant_min: int
    quant_max: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Conv2d(Operator):
    """2-D convolution, int8, per-channel requantisation.

    `weight` is int8 (C_out, kh, kw, C_in / groups); `bias`, `multiplier`, `shift` are int32 (C_out,).
    `input_offset` is added to every sample (minus the zero point), `output_offset` after requantisation.
    """

    operands = ("input", "weight", "bias", "multiplier", "shift")

    input: int
    weight: int
    bias: int | None
    multiplier: int
    shift: int
    input_shape: Shape4
    output_shape: Shape4
    kernel: Pair
    groups: int
    stride: Pair
    padding: Pair
    dilation: Pair
    input_offset: int
    output_offset: int
    activation_min: int
    activation_max: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DepthwiseConv2d(Operator):
    """Depthwise 2-D convolution, int8; `weight` is (1, kh, kw, C_in * depth_multiplier), the multiplier fastest."""

    operands = ("input", "weight", "bias", "multiplier", "shift")

    input: int
    weight: int
    bias: int | None
    multiplier: int
    shift: int
    input_shape: Shape4
    output_shape: Shape4
    kernel: Pair
    depth_multiplier: int
    stride: Pair
    padding: Pair
    dilation: Pair
    input_offset: int
    output_offset: int
    activation_min: int
    activation_max: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TransposeConv2d(Operator):
    """Transposed 2-D convolution, int8; `weight` is (C_out, kh, kw, C_in), scatter form, kernel not flipped."""

    operands = ("input", "weight", "bias", "multiplier", "shift")

    input: int
    weight: int
    bias: int | None
    multiplier: int
    shift: int
    input_shape: Shape4
    output_shape: Shape4
    kernel: Pair
    stride: Pair
    padding: Pair
    output_padding: Pair
    dilation: Pair
    input_offset: int
    output_offset: int
    activation_min: int
    activation_max: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Linear(Operator):
    """Fully connected: input (rows, depth) int8 times `weight` (outputs, depth) int8, plus `bias` int32 (outputs,).

    `multipliers` and `shifts` have one entry for the whole tensor or one per output. A kernel sum stored in the
    program (a Cortex-M55 lowering) is not kept: it belongs to the kernel that wants it, and planning derives it.
    """

    operands = ("input", "weight", "bias")

    input: int
    weight: int
    bias: int | None
    rows: int
    depth: int
    outputs: int
    input_offset: int
    filter_offset: int
    output_offset: int
    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    activation_min: int
    activation_max: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchMatmul(Operator):
    """int8 (batch, rows, depth) times the already transposed (batch, columns, depth); offsets are added to operands."""

    operands = ("lhs", "rhs")

    lhs: int
    rhs: int
    batch: int
    rows: int
    depth: int
    columns: int
    lhs_offset: int
    rhs_offset: int
    output_offset: int
    multiplier: int
    shift: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Add(Operator):
    """int8 sum with operands rescaled to a common scale (left shift 20). Physical shapes, broadcast as in numpy."""

    operands = ("input", "other")

    input: int
    other: int
    input_shape: Shape
    other_shape: Shape
    output_shape: Shape
    input_zero_point: int
    input_multiplier: int
    input_shift: int
    other_zero_point: int
    other_multiplier: int
    other_shift: int
    output_zero_point: int
    output_multiplier: int
    output_shift: int
    activation_min: int
    activation_max: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Mul(Operator):
    """int8 product. The zero points of the factors fit 16 bits, not 8: a fused hard-swish moves one by 3 / scale."""

    operands = ("input", "other")

    input: int
    other: int
    input_shape: Shape
    other_shape: Shape
    output_shape: Shape
    input_zero_point: int
    other_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Div(Operator):
    """int8 quotient, evaluated in float32: round_half_even(a / b * output_scale) + zero point; 0 where b is zero."""

    operands = ("input", "other")

    input: int
    other: int
    input_zero_point: int
    other_zero_point: int
    output_zero_point: int
    output_scale: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Minimum(Operator):
    """int8 elementwise minimum, numpy broadcasting over physical shapes."""

    operands = ("input", "other")

    input: int
    other: int
    input_shape: Shape
    other_shape: Shape
    output_shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Maximum(Operator):
    """int8 elementwise maximum, numpy broadcasting over physical shapes."""

    operands = ("input", "other")

    input: int
    other: int
    input_shape: Shape
    other_shape: Shape
    output_shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Activation(Operator):
    """int8 table lookup: output = lut[input + 128]; `lut` is int8 (256,)."""

    operands = ("input", "lut")

    input: int
    lut: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AvgPool2d(Operator):
    """int8 average over the taps inside the image, ties away from zero."""

    input: int
    input_shape: Shape4
    output_shape: Shape4
    kernel: Pair
    stride: Pair
    padding: Pair


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MaxPool2d(Operator):
    """int8 maximum over the taps inside the image, then clamped."""

    input: int
    input_shape: Shape4
    output_shape: Shape4
    kernel: Pair
    stride: Pair
    padding: Pair
    activation_min: int
    activation_max: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Softmax(Operator):
    """int8 softmax over the innermost axis; output scale 1/256, zero point -128."""

    input: int
    rows: int
    row_size: int
    multiplier: int
    shift: int
    diff_min: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Transpose(Operator):
    """Physical axis j of the output is physical axis permutation[j] of the input."""

    input: int
    input_shape: Shape
    permutation: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Pad(Operator):
    """Constant padding; `before` and `after` are per physical axis."""

    input: int
    input_shape: Shape
    before: tuple[int, ...]
    after: tuple[int, ...]
    value: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Copy(Operator):
    """The same elements in another physical order (`dim_order_ops::_clone_dim_order` and relatives).

    `permutation` as in `Transpose`; the identity means that bytes stay as they are.
    """

    input: int
    input_shape: Shape
    permutation: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Concatenate(Operator):
    """Tensors behind one another along a physical axis. `part_shapes` are physical and alike but for that axis."""

    operands = ()

    parts: tuple[int, ...]
    part_shapes: tuple[Shape, ...]
    axis: int

    @property
    def reads(self) -> tuple[tuple[str, int], ...]:
        return tuple((f"part{position}", id) for position, id in enumerate(self.parts))

    def reading(self, alias: Mapping[int, int]) -> Operator:
        return replace(self, parts=tuple(alias.get(id, id) for id in self.parts))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Slice(Operator):
    """Every `step`-th of a physical axis, `count` times from `start` on."""

    input: int
    input_shape: Shape
    axis: int
    start: int
    step: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Expand(Operator):
    """The input repeated along the physical axes on which it has size 1; both shapes have one rank."""

    input: int
    input_shape: Shape
    output_shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class View(Operator):
    """The same bytes under another shape."""

    input: int


@dataclass(frozen=True, slots=True)
class Program:
    """A validated program: every operator reads constants, inputs, or results of earlier operators.

    Attributes:
        name: name of the method, normally `forward`.
        sha256: hash of the `.pte` bytes, hexadecimal.
        tensors: by id, only those that an operator, an input or an output refers to.
        operators: in execution order.
        inputs, outputs: tensor ids in the order of the method's signature.
    """

    name: str
    sha256: str
    tensors: Mapping[int, Tensor]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations of one inference, padding counted as if it were data."""
        return sum(macs(op) for op in self.operators)


def macs(op: Operator) -> int:
    """Multiply-accumulate operations of one operator, padding counted as if it were data."""
    if isinstance(op, Conv2d):
        return prod(op.output_shape) * prod(op.kernel) * op.input_shape[3] // op.groups
    if isinstance(op, DepthwiseConv2d):
        return prod(op.output_shape) * prod(op.kernel)
    if isinstance(op, TransposeConv2d):
        return prod(op.input_shape) * prod(op.kernel) * op.output_shape[3]
    if isinstance(op, Linear):
        return op.rows * op.depth * op.outputs
    if isinstance(op, BatchMatmul):
        return op.batch * op.rows * op.depth * op.columns
    return 0
