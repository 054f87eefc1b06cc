"""Operators that move elements and do not change them."""

from __future__ import annotations

import numpy as np

from toolkit.program.types import Copy, Pad, Shape, Transpose, View
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


def view(op: View, shape: Shape) -> Step:
    def run(arrays: Arrays) -> Array:
        return arrays[op.input].reshape(shape)

    return run
