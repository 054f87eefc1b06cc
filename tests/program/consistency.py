"""What holds for every program that the reader accepts, checked without the reader's own code."""

from __future__ import annotations

from math import prod

from toolkit.program.types import Concatenate, Operator, Program, Slice, Tensor


def assert_consistent(program: Program) -> None:
    """Fails unless every operand exists before it is used and shapes and constants agree with each other."""
    for id_, tensor in program.tensors.items():
        assert tensor.id == id_
        _assert_tensor(tensor)
    known = {id_ for id_, tensor in program.tensors.items() if tensor.constant is not None}
    assert not known & set(program.inputs)
    known |= set(program.inputs)
    assert len(set(program.inputs)) == len(program.inputs)
    for operator in program.operators:
        for operand in operator.inputs:
            assert operand in known, operator
        assert operator.output not in known, operator
        known.add(operator.output)
        _assert_shapes(program, operator)
    assert set(program.outputs) <= known
    indices = [operator.index for operator in program.operators]
    assert indices == sorted(indices)


def _assert_tensor(tensor: Tensor) -> None:
    assert sorted(tensor.dim_order) == list(range(len(tensor.shape)))
    assert all(size > 0 for size in tensor.shape)
    assert tensor.nbytes == prod(tensor.shape) * tensor.dtype.itemsize < 2**31
    if tensor.constant is not None:
        assert len(tensor.constant) == tensor.nbytes


def _assert_shapes(program: Program, operator: Operator) -> None:
    """Shapes that an operator states are those of its tensors, up to axes of size 1; parameters lie row by row."""
    for name in ("weight", "bias", "multiplier", "shift", "lut"):
        id_ = getattr(operator, name, None) if name in operator.operands else None
        if id_ is not None:
            assert program.tensors[id_].constant is not None
            assert program.tensors[id_].physical_shape == program.tensors[id_].shape
    if isinstance(operator, Concatenate):
        for shape, part in zip(operator.part_shapes, operator.parts, strict=True):
            assert prod(shape) == program.tensors[part].size
        assert sum(prod(shape) for shape in operator.part_shapes) == program.tensors[operator.output].size
    if isinstance(operator, Slice):
        assert operator.start + (operator.count - 1) * operator.step < operator.input_shape[operator.axis]
    for field, id_ in (("input_shape", "input"), ("other_shape", "other"), ("output_shape", "output")):
        if hasattr(operator, field):
            shape, tensor = getattr(operator, field), program.tensors[getattr(operator, id_)]
            assert [size for size in shape if size > 1] == [size for size in tensor.physical_shape if size > 1], (
                operator
            )
