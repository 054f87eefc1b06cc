"""Running a program on the desk, operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from toolkit.errors import ModelError
from toolkit.program.types import (
    Activation,
    Add,
    AvgPool2d,
    BatchMatmul,
    Concatenate,
    Conv2d,
    Copy,
    DepthwiseConv2d,
    Dequantize,
    Div,
    Expand,
    Linear,
    Maximum,
    MaxPool2d,
    Minimum,
    Mul,
    Operator,
    Pad,
    Program,
    Quantize,
    Slice,
    Softmax,
    Tensor,
    Transpose,
    TransposeConv2d,
    View,
)
from toolkit.reference import convolution, elementwise, matrix, movement, pooling
from toolkit.reference.arithmetic import Array
from toolkit.reference.step import Arrays, Step

_PREPARE: Mapping[type[Operator], Callable[[Any, Arrays], Step]] = MappingProxyType(
    {
        Activation: elementwise.activation,
        Add: elementwise.add,
        AvgPool2d: pooling.avg_pool2d,
        BatchMatmul: matrix.batch_matmul,
        Concatenate: movement.concatenate,
        Conv2d: convolution.conv2d,
        Copy: movement.transpose,
        DepthwiseConv2d: convolution.depthwise_conv2d,
        Dequantize: elementwise.dequantize,
        Div: elementwise.div,
        Expand: movement.expand,
        Linear: matrix.linear,
        Maximum: elementwise.maximum,
        MaxPool2d: pooling.max_pool2d,
        Minimum: elementwise.minimum,
        Mul: elementwise.mul,
        Pad: movement.pad,
        Quantize: elementwise.quantize,
        Slice: movement.cut,
        Softmax: elementwise.softmax,
        Transpose: movement.transpose,
        TransposeConv2d: convolution.transpose_conv2d,
    }
)


@dataclass(frozen=True, slots=True)
class Execution:
    """The results of one inference, in logical shapes and the program's element types.

    Attributes:
        outputs: in the order of the method's signature.
        tensors: every operator's result by tensor id.
    """

    outputs: tuple[Array, ...]
    tensors: Mapping[int, Array]


class Reference:
    """A program prepared for many inferences: weights are converted once.

    The arithmetic is that of CMSIS-NN on a Cortex-M33, byte for byte, as tests/golden/kernels/README.md states it.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._constants: dict[int, Array] = {
            tensor.id: np.frombuffer(tensor.constant, tensor.dtype.value).reshape(tensor.physical_shape)
            for tensor in program.tensors.values()
            if tensor.constant is not None
        }
        self._steps = [(operator.output, self._prepare(operator)) for operator in program.operators]

    def run(self, inputs: Sequence[Array]) -> Execution:
        """One inference.

        Args:
            inputs: in the order of the method's signature, with the logical shapes and element types of the program.

        Raises:
            ModelError: the inputs are not those that the program takes.
        """
        tensors = self._program.tensors
        arrays: dict[int, Array] = dict(self._constants)
        arrays.update(self._checked_inputs(inputs))
        for output, step in self._steps:
            arrays[output] = step(arrays).reshape(tensors[output].physical_shape)
        results = {output: _logical(arrays[output], tensors[output]) for output, _ in self._steps}
        outputs = tuple(_logical(arrays[id_], tensors[id_]) for id_ in self._program.outputs)
        return Execution(outputs, MappingProxyType(results))

    def _prepare(self, operator: Operator) -> Step:
        if isinstance(operator, View):
            return movement.view(operator, self._program.tensors[operator.output].physical_shape)
        return _PREPARE[type(operator)](operator, self._constants)

    def _checked_inputs(self, inputs: Sequence[Array]) -> dict[int, Array]:
        ids = self._program.inputs
        if len(inputs) != len(ids):
            raise ModelError(f"the program takes {len(ids)} inputs, {len(inputs)} were given")
        arrays: dict[int, Array] = {}
        for position, (id_, array) in enumerate(zip(ids, inputs, strict=True)):
            tensor = self._program.tensors[id_]
            if array.shape != tensor.shape or array.dtype != np.dtype(tensor.dtype.value):
                expected = f"{tensor.dtype.name.lower()} {list(tensor.shape)}"
                raise ModelError(
                    f"the program takes {expected}, {array.dtype} {list(array.shape)} was given",
                    where=f"input {position}",
                )
            arrays[id_] = np.ascontiguousarray(array.transpose(tensor.dim_order))
        return arrays


def execute(program: Program, inputs: Sequence[Array]) -> Execution:
    """One inference of a program; prepare a `Reference` for many. See `Reference.run`."""
    return Reference(program).run(inputs)


def _logical(array: Array, tensor: Tensor) -> Array:
    """A physical array in logical shape."""
    inverse = sorted(range(len(tensor.dim_order)), key=tensor.dim_order.__getitem__)
    return np.ascontiguousarray(array.transpose(inverse))
