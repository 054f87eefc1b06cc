"""Linear layers and batched matrix products."""

from __future__ import annotations

from math import prod

import numpy as np

from toolkit.program.call import INT8, MULTIPLIER, OFFSET, SHIFT, Call, constant_array
from toolkit.program.layout import contiguous, is_ordered
from toolkit.program.types import BatchMatmul, DType, Linear, Operator, Tensor


def linear(call: Call) -> Operator:
    source, result = _matrix(call, "input"), _matrix(call, "output")
    weight = call.constant("weight", DType.INT8)
    if len(weight.shape) != 2 or not source.shape or source.shape[-1] != weight.shape[1]:
        call.fail(f"the weight {list(weight.shape)} does not fit the input {list(source.shape)}")
    outputs, depth = weight.shape
    if result.shape != (*source.shape[:-1], outputs):
        call.fail(f"the output is {list(result.shape)}; it must be {[*source.shape[:-1], outputs]}")
    multipliers, shifts = call.integers("multipliers", MULTIPLIER), call.integers("shifts", SHIFT)
    if len(multipliers) != len(shifts) or len(multipliers) not in (1, outputs):
        call.fail(f"there are {len(multipliers)} multipliers and {len(shifts)} shifts for {outputs} outputs")
    input_offset, filter_offset = call.integer("input_offset", OFFSET), call.integer("filter_offset", OFFSET)
    activation_min, activation_max = call.activation()
    bias = _bias(call, weight, input_offset, filter_offset)
    return Linear(
        index=call.index,
        name=call.name,
        output=result.id,
        input=source.id,
        weight=weight.id,
        bias=bias.id if bias else None,
        rows=prod(source.shape[:-1]),
        depth=depth,
        outputs=outputs,
        input_offset=input_offset,
        filter_offset=filter_offset,
        output_offset=call.integer("output_offset", INT8),
        multipliers=multipliers,
        shifts=shifts,
        activation_min=activation_min,
        activation_max=activation_max,
    )


def batch_matmul(call: Call) -> Operator:
    lhs, rhs, result = _matrix(call, "lhs"), _matrix(call, "rhs"), _matrix(call, "output")
    shapes = f"{list(lhs.shape)} times {list(rhs.shape)} (transposed)"
    if len(lhs.shape) != 3 or len(rhs.shape) != 3 or lhs.shape[0] != rhs.shape[0] or lhs.shape[2] != rhs.shape[2]:
        call.fail(f"the operands {shapes} do not fit each other")
    batch, rows, depth = lhs.shape
    columns = rhs.shape[1]
    if result.shape != (batch, rows, columns):
        call.fail(f"the output is {list(result.shape)}; {shapes} gives {[batch, rows, columns]}")
    return BatchMatmul(
        index=call.index,
        name=call.name,
        output=result.id,
        lhs=lhs.id,
        rhs=rhs.id,
        batch=batch,
        rows=rows,
        depth=depth,
        columns=columns,
        lhs_offset=call.integer("lhs_offset", OFFSET),
        rhs_offset=call.integer("rhs_offset", OFFSET),
        output_offset=call.integer("output_offset", INT8),
        multiplier=call.integer("multiplier", MULTIPLIER),
        shift=call.integer("shift", SHIFT),
    )


def _matrix(call: Call, name: str) -> Tensor:
    tensor = call.result(DType.INT8) if name == "output" else call.tensor(name, DType.INT8)
    if not is_ordered(tensor, contiguous(len(tensor.shape))):
        call.fail(f"{name} (tensor {tensor.id}) is in the memory order {list(tensor.dim_order)}; it must be row by row")
    return tensor


def _bias(call: Call, weight: Tensor, input_offset: int, filter_offset: int) -> Tensor | None:
    """The bias, which a lowering for Cortex-M55 stores only as a part of the kernel sum.

    The kernel sum of an output is its bias plus `input_offset` times the sum of its weights and filter offsets, in
    int32. A layer without a bias has one too; then the bias that comes back is zero everywhere, and dropped.
    """
    outputs, depth = weight.shape
    bias = call.optional_constant("bias", DType.INT32, (outputs,))
    kernel_sum = call.optional_constant("kernel_sum", DType.INT32)
    if kernel_sum is None:
        return bias
    if kernel_sum.size != outputs:
        call.fail(f"kernel_sum (tensor {kernel_sum.id}) has {kernel_sum.size} elements for {outputs} outputs")
    weights = constant_array(weight).astype(np.int64)
    sums = constant_array(kernel_sum).reshape(-1).astype(np.int64)
    recovered = (sums - input_offset * (weights.sum(axis=1) + depth * filter_offset)).astype("<i4")
    if bias is not None:
        if not np.array_equal(recovered, constant_array(bias)):
            call.fail("bias and kernel_sum contradict each other")
        return bias
    if not recovered.any():
        return None
    return call.add_constant((outputs,), DType.INT32, recovered.tobytes())
