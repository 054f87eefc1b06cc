"""The published `.pte` schema (file identifier ET12) as data: tables, fields in slot order, enumerations in use.

Only the shape of the data is stated here; `flatbuffer` reads it and `container`, `values` and `reader` give it meaning.
Tables that only delegates, training or debugging need are left opaque: they are named, and never opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from flatbuffers import number_types as numbers

from toolkit.program.types import DType

NumberType = type
"""A class of `flatbuffers.number_types`, such as `Int32Flags`."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number stored in the table itself; `default` where it is absent."""

    type: NumberType
    default: int | float | bool = 0


@dataclass(frozen=True, slots=True)
class String:
    """UTF-8 text."""


@dataclass(frozen=True, slots=True)
class Scalars:
    """A vector of numbers."""

    type: NumberType


@dataclass(frozen=True, slots=True)
class Table:
    """Another table, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Tables:
    """A vector of tables of one kind."""

    name: str


@dataclass(frozen=True, slots=True)
class Union:
    """One of several tables; the tag counts from 1. Takes two slots, the tag first."""

    members: tuple[str, ...]


Field = Scalar | String | Scalars | Table | Tables | Union

_BOOL = Scalar(numbers.BoolFlags, default=False)
_INT8 = Scalar(numbers.Int8Flags)
_INT32 = Scalar(numbers.Int32Flags)
_INT64 = Scalar(numbers.Int64Flags)
_UINT32 = Scalar(numbers.Uint32Flags)
_UINT64 = Scalar(numbers.Uint64Flags)
_FLOAT64 = Scalar(numbers.Float64Flags, default=0.0)
_BYTES = Scalars(numbers.Uint8Flags)
_INDICES = Scalars(numbers.Int32Flags)
_STRING = String()

TABLES: Mapping[str, Mapping[str, Field]] = MappingProxyType(
    {
        "Program": {
            "version": _UINT32,
            "execution_plan": Tables("ExecutionPlan"),
            "constant_buffer": Tables("Buffer"),
            "backend_delegate_data": Tables("BackendDelegateInlineData"),
            "segments": Tables("DataSegment"),
            "constant_segment": Table("SubsegmentOffsets"),
            "mutable_data_segments": Tables("SubsegmentOffsets"),
            "named_data": Tables("NamedData"),
        },
        "ExecutionPlan": {
            "name": _STRING,
            "container_meta_type": Table("ContainerMetadata"),
            "values": Tables("EValue"),
            "inputs": _INDICES,
            "outputs": _INDICES,
            "chains": Tables("Chain"),
            "operators": Tables("Operator"),
            "delegates": Tables("BackendDelegate"),
            "non_const_buffer_sizes": Scalars(numbers.Int64Flags),
            "non_const_buffer_device": Tables("NonConstBufferDevice"),
        },
        "Chain": {
            "inputs": _INDICES,
            "outputs": _INDICES,
            "instructions": Tables("Instruction"),
            "stacktrace": Tables("FrameList"),
        },
        "Instruction": {
            "instr_args": Union(("KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall")),
        },
        "KernelCall": {"op_index": _INT32, "args": _INDICES},
        "DelegateCall": {"delegate_index": _INT32, "args": _INDICES},
        "MoveCall": {"move_from": _INT32, "move_to": _INT32},
        "JumpFalseCall": {"cond_value_index": _INT32, "destination_instruction": _INT32},
        "FreeCall": {"value_index": _INT32},
        "Operator": {"name": _STRING, "overload": _STRING},
        "EValue": {
            "val": Union(
                (
                    "Null",
                    "Int",
                    "Bool",
                    "Double",
                    "Tensor",
                    "String",
                    "IntList",
                    "DoubleList",
                    "BoolList",
                    "TensorList",
                    "OptionalTensorList",
                )
            ),
        },
        "Null": {},
        "Int": {"int_val": _INT64},
        "Bool": {"bool_val": _BOOL},
        "Double": {"double_val": _FLOAT64},
        "String": {"string_val": _STRING},
        "IntList": {"items": Scalars(numbers.Int64Flags)},
        "DoubleList": {"items": Scalars(numbers.Float64Flags)},
        "BoolList": {"items": Scalars(numbers.BoolFlags)},
        "TensorList": {"items": _INDICES},
        "OptionalTensorList": {"items": _INDICES},
        "Tensor": {
            "scalar_type": _INT8,
            "storage_offset": _INT32,
            "sizes": _INDICES,
            "dim_order": _BYTES,
            "requires_grad": _BOOL,
            "data_buffer_idx": _UINT32,
            "allocation_info": Table("AllocationDetails"),
            "layout": _INT8,
            "shape_dynamism": _INT8,
            "extra_tensor_info": Table("ExtraTensorInfo"),
        },
        "AllocationDetails": {"memory_id": _UINT32, "memory_offset_low": _UINT32, "memory_offset_high": _UINT32},
        "ExtraTensorInfo": {
            "mutable_data_segments_idx": _UINT64,
            "fully_qualified_name": _STRING,
            "location": _INT8,
            "device_type": _INT8,
            "device_index": _INT8,
        },
        "Buffer": {"storage": _BYTES},
        "DataSegment": {"offset": _UINT64, "size": _UINT64},
        "SubsegmentOffsets": {"segment_index": _UINT32, "offsets": Scalars(numbers.Uint64Flags)},
        "BackendDelegate": {"id": _STRING},
    }
)

IDENTIFIER = b"ET12"
HEADER_MAGIC = b"eh00"
SCHEMA_VERSION = 0

SCALAR_TYPES: Mapping[int, DType] = MappingProxyType(
    {
        0: DType.UINT8,
        1: DType.INT8,
        2: DType.INT16,
        3: DType.INT32,
        4: DType.INT64,
        6: DType.FLOAT32,
        11: DType.BOOL,
    }
)
"""Tensor element types by their number in the schema; the rest is in `FOREIGN_SCALAR_TYPES`."""

FOREIGN_SCALAR_TYPES: Mapping[int, str] = MappingProxyType(
    {
        5: "float16",
        7: "float64",
        12: "qint8",
        13: "quint8",
        14: "qint32",
        15: "bfloat16",
        16: "quint4x2",
        17: "quint2x4",
        22: "bits16",
        23: "float8_e5m2",
        24: "float8_e4m3fn",
        25: "float8_e5m2fnuz",
        26: "float8_e4m3fnuz",
        27: "uint16",
        28: "uint32",
        29: "uint64",
    }
)
"""Element types that the schema names and no Cortex-M program uses."""

STATIC_SHAPE = 0
"""`Tensor.shape_dynamism` of a shape that is fixed; 1 is bounded, 2 unbounded."""
EXTERNAL_DATA = 1
"""`ExtraTensorInfo.location` of data kept in another file; 0 is this file."""
CPU = 0
"""`ExtraTensorInfo.device_type` of ordinary memory."""
