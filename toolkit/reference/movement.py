"""Operators that move elements and do not change them."""

from __future__ import annotations

import numpy as np

from toolkit.program.types import Concatenate, Copy, Expand, Pad, Shape, Slice, Transpose, View
from toolkit.reference.arithmetic import Array
from toolkit.reference.step import Arrays, Step


def transpose(op: Transpose | Copy, _: Arrays) -> Step:
    def run(arrays: Arrays) -> Array:
        return np.ascontiguousarray(arrays[op.input].reshape(op.input_shape).transpose(op.permutation))

    return run


def pad(op: Pad, _: Arrays) -> Step:
    widths = list(zip(op.before, op.after, strict=True))

    def run(arrays: Arrays) -> Array:
        return np.pad(arrays[op.input].reshape(op.input_shape), widths, constant_values=op.value)

    return run


def concatenate(op: Concatenate, _: Arrays) -> Step:
    def run(arrays: Arrays) -> Array:
        parts = [arrays[id].reshape(shape) for id, shape in zip(op.parts, op.part_shapes, strict=True)]
        return np.concatenate(parts, axis=op.axis)

    return run


def cut(op: Slice, _: Arrays) -> Step:
    wanted = np.arange(op.count) * op.step + op.start

    def run(arrays: Arrays) -> Array:
        return np.take(arrays[op.input].reshape(op.input_shape), wanted, axis=op.axis)

    return run


def expand(op: Expand, _: Arrays) -> Step:
    def run(arrays: Arrays) -> Array:
        return np.broadcast_to(arrays[op.input].reshape(op.input_shape), op.output_shape).copy()

    return run


def view(op: View, shape: Shape) -> Step:
    def run(arrays: Arrays) -> Array:
        return arrays[op.input].reshape(shape)

    return run
