"""Element order: which logical element lies at which position in memory.

Axes of size 1 carry no order, so one image can be described by several dim orders: with one channel or one pixel,
channels-first and channels-last are the same bytes. Orders are therefore compared by what they do, not by their
spelling.
"""

from __future__ import annotations

from math import prod

from toolkit.program.types import Shape, Tensor

CHANNELS_LAST = (0, 2, 3, 1)
"""Dim order of a batch, channels, height, width image that lies in memory as batch, height, width, channels."""


def element_order(shape: Shape, dim_order: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """The order of a tensor's elements in a form that is equal exactly when the order is.

    Args:
        shape: logical sizes; where one is zero there is no order, and what comes back means nothing.
        dim_order: logical axes from the outermost to the innermost in memory.

    Returns:
        From the outermost to the innermost: how many steps there are, and how far apart their elements are when the
        logical elements are numbered row by row. Steps that continue each other are joined.
    """
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    order: list[tuple[int, int]] = []
    for axis in dim_order:
        size, stride = shape[axis], strides[axis]
        if size == 1:
            continue
        if order and order[-1][1] == stride * size:
            order[-1] = order[-1][0] * size, stride
        else:
            order.append((size, stride))
    return tuple(order)


def contiguous(rank: int) -> tuple[int, ...]:
    """The dim order in which the last logical axis is innermost."""
    return tuple(range(rank))


def is_ordered(tensor: Tensor, dim_order: tuple[int, ...]) -> bool:
    """Whether the elements lie as the dim order says."""
    return element_order(tensor.shape, tensor.dim_order) == element_order(tensor.shape, dim_order)


def same_elements(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors of equal size, read row by row logically, give the same elements for the same bytes."""
    return element_order(first.shape, first.dim_order) == element_order(second.shape, second.dim_order)


def arranged(shape: Shape, dim_order: tuple[int, ...]) -> Shape:
    """Sizes in the order of memory."""
    return tuple(shape[axis] for axis in dim_order)
