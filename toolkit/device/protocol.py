"""The words of the serial protocol; the other end is `firmware/runtime/server.cpp`."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from toolkit.errors import DeviceError
from toolkit.program.types import DType

PROTOCOL_VERSION = 1


class Command(IntEnum):
    HELLO = 1
    DESCRIBE = 2
    WRITE = 3
    INVOKE = 4
    READ = 5
    STEP = 6
    READ_LAYER = 7
    STACK = 8


class Status(IntEnum):
    OK = 0
    UNKNOWN_COMMAND = 1
    BAD_REQUEST = 2
    INFERENCE_FAILED = 3
    NOT_GREETED = 4


DTYPES = {
    1: DType.FLOAT32,
    2: DType.INT8,
    3: DType.UINT8,
    4: DType.INT16,
    5: DType.INT32,
    6: DType.INT64,
    7: DType.BOOL,
}


@dataclass(frozen=True, slots=True)
class DeviceTensor:
    """An input or output of the model on the device; `shape` is in the order of memory."""

    dtype: DType
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hello:
    """What a runner says of itself.

    Attributes:
        max_payload: bytes of data that one frame may carry.
        ticks_per_s: of the counter that measures time.
        arena, stack: bytes set aside.
        inputs, outputs, layers: how many the model has.
        sha256: of the program it was made from, hexadecimal.
        model, board, kernels: names.
    """

    max_payload: int
    ticks_per_s: int
    arena: int
    stack: int
    inputs: int
    outputs: int
    layers: int
    sha256: str
    model: str
    board: str
    kernels: str


def parse_hello(payload: bytes, port: str) -> Hello:
    """Raises DeviceError when the answer is not that of this version of the runner."""
    if payload[:1] != bytes([PROTOCOL_VERSION]):
        spoken = payload[0] if payload else "no"
        raise DeviceError(
            f"the runner on the board speaks protocol version {spoken}, this toolkit version {PROTOCOL_VERSION}",
            where=port,
            hint="Flash the board again with this version: deploy MODEL --board BOARD.",
        )
    fixed = struct.Struct("<BHIIIBBH32s")
    try:
        _, max_payload, ticks_per_s, arena, stack, inputs, outputs, layers, sha256 = fixed.unpack_from(payload)
        texts = []
        offset = fixed.size
        for _ in range(3):
            length = payload[offset]
            texts.append(payload[offset + 1 : offset + 1 + length].decode("ascii", errors="replace"))
            offset += 1 + length
    except (struct.error, IndexError):
        raise DeviceError(
            "the board's greeting is cut short", where=port, hint="Reset the board and try again."
        ) from None
    return Hello(max_payload, ticks_per_s, arena, stack, inputs, outputs, layers, sha256.hex(), *texts)


def parse_tensor(payload: bytes, port: str) -> DeviceTensor:
    """Raises DeviceError when the answer is not a description of a tensor."""
    try:
        dtype, rank = payload[0], payload[1]
        shape = struct.unpack(f"<{rank}I", payload[2:])
        return DeviceTensor(DTYPES[dtype], shape)
    except (struct.error, IndexError, KeyError):
        raise DeviceError("the board describes a tensor that makes no sense", where=port) from None
