"""Calls of kernels as the driver reads them, and what came back.

A call is the function's place in the driver's table, its scalars in the order the driver documents, and its arrays.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

FUNCTIONS = (
    "arm_convolve_wrapper_s8",
    "arm_depthwise_conv_wrapper_s8",
    "arm_transpose_conv_wrapper_s8",
    "arm_fully_connected_s8",
    "arm_fully_connected_per_channel_s8",
    "arm_batch_matmul_s8",
    "arm_vector_sum_s8",
    "arm_elementwise_add_s8",
    "arm_elementwise_mul_s8",
    "arm_maximum_s8",
    "arm_minimum_s8",
    "arm_avgpool_s8",
    "arm_max_pool_s8",
    "arm_softmax_s8",
    "arm_transpose_s8",
    "arm_pad_s8",
    "deploy_quantize_f32_s8",
    "deploy_dequantize_s8_f32",
    "deploy_lookup_s8",
    "deploy_div_s8",
    "deploy_copy_s8",
    "deploy_concatenate_s8",
    "primitive",
)


@dataclass(frozen=True)
class Call:
    """One call of a kernel; `shape` and `dtype` are those of its output.

    Without `scratch` the scratch buffer is NULL; `in_place` writes the output over the first array.
    """

    function: str
    scalars: tuple[int, ...]
    arrays: tuple[np.ndarray, ...]
    shape: tuple[int, ...]
    dtype: str = "i1"
    name: str = ""
    scratch: bool = True
    in_place: bool = False

    @property
    def output_bytes(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    def encode(self) -> bytes:
        options = (0 if self.scratch else 1) | (2 if self.in_place else 0)
        words = (FUNCTIONS.index(self.function), options, len(self.scalars), *self.scalars, len(self.arrays))
        blocks = [struct.pack(f"<{len(words)}i", *words)]
        for array in self.arrays:
            raw = np.ascontiguousarray(array).tobytes()
            blocks += [struct.pack("<i", len(raw)), raw, bytes(-len(raw) % 4)]
        return b"".join([*blocks, struct.pack("<i", self.output_bytes)])


@dataclass(frozen=True)
class Result:
    """What a call returned; `ticks` of the board's timer, `scratch` in bytes."""

    status: int
    ticks: int
    scratch: int
    output: np.ndarray
    broken_blocks: int


def encode_calls(calls: list[Call]) -> bytes:
    return struct.pack("<i", len(calls)) + b"".join(call.encode() for call in calls)


def decode_results(raw: bytes, calls: list[Call]) -> list[Result]:
    results = []
    position = 0
    for call in calls:
        status, ticks, scratch = struct.unpack_from("<iIi", raw, position)
        position += 12
        output = np.frombuffer(raw, np.dtype(call.dtype), int(np.prod(call.shape)), position).reshape(call.shape)
        position += call.output_bytes + (-call.output_bytes % 4)
        (broken,) = struct.unpack_from("<i", raw, position)
        position += 4
        results.append(Result(status, ticks, scratch, output, broken))
    assert position == len(raw)
    return results


def float_bits(value: float) -> int:
    """A float32 as the int32 of the same bits."""
    return int(struct.unpack("<i", struct.pack("<f", value))[0])


def flat(value: Any) -> list[int]:
    """The integers of nested argument structures, in the order of their fields."""
    if isinstance(value, dict):
        return [word for member in value.values() for word in flat(member)]
    if isinstance(value, list | tuple):
        return [word for member in value for word in flat(member)]
    return [int(value)]
