"""The two ways in which a program writes images, and what they have in common."""

from __future__ import annotations

from toolkit.program.call import Call
from toolkit.program.layout import CHANNELS_LAST, arranged, contiguous, is_ordered
from toolkit.program.types import Shape4, Tensor

_EXPLICIT_SUFFIX = "_nhwc"


def image_shape(call: Call, name: str, tensor: Tensor) -> Shape4:
    """Batch, height, width, channels of an image that lies in memory in this order.

    An operator named `*_nhwc` takes its images with logical sizes in this order; the others take channels first and
    state the order in the dim order.
    """
    dim_order = contiguous(4) if call.name.endswith(_EXPLICIT_SUFFIX) else CHANNELS_LAST
    if len(tensor.shape) != 4:
        call.fail(f"{name} (tensor {tensor.id}) has the shape {list(tensor.shape)}; it must have four dimensions")
    if not is_ordered(tensor, dim_order):
        call.fail(
            f"{name} (tensor {tensor.id}) is in the memory order {list(tensor.dim_order)}; "
            f"this operator needs {list(dim_order)}",
            hint="Export with channels_last example inputs, or lower with use_explicit_layout=True.",
        )
    batch, height, width, channels = arranged(tensor.shape, dim_order)
    return batch, height, width, channels
