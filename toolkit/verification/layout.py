"""Between the logical order of a tensor's elements and the order in which they lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.program.types import Tensor

Array = npt.NDArray[Any]


def to_memory(array: Array, tensor: Tensor) -> Array:
    """An array of logical shape, as the array of physical shape."""
    return np.ascontiguousarray(np.transpose(array, tensor.dim_order))


def from_memory(array: Array, tensor: Tensor) -> Array:
    """Elements in physical order (any shape of the right size), as the array of logical shape and its dtype."""
    physical = array.reshape(-1).view(tensor.dtype.value).reshape(tensor.physical_shape)
    return np.ascontiguousarray(np.transpose(physical, np.argsort(tensor.dim_order)))
