"""The golden calls of kernels (tests/golden) as operators of a program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.program.types import (
    Add,
    AvgPool2d,
    BatchMatmul,
    Conv2d,
    DepthwiseConv2d,
    DType,
    Linear,
    Maximum,
    Minimum,
    Operator,
    Softmax,
    Tensor,
    Transpose,
    TransposeConv2d,
)

GOLDEN = Path(__file__).parents[1] / "golden"
WEIGHT, BIAS = 1, 2  # ids of the constants


@dataclass(frozen=True)
class Case:
    """One stored call: its arguments and its arrays by name."""

    function: str
    params: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def family(self) -> str:
        return self.params["family"]


def cases(folder: str, function: str) -> Iterator[Case]:
    with np.load(GOLDEN / folder / f"{function}.npz", allow_pickle=False) as stored:
        for index in range(int(stored["n_cases"])):
            start = f"case{index}_"
            arrays = {key.removeprefix(start): stored[key] for key in stored.files if key.startswith(start)}
            yield Case(function, json.loads(str(arrays.pop("params"))), arrays)


def operator_of(case: Case) -> Operator:
    """The operator that planning would have this call for."""
    return _MAKERS[case.function](case.params, case.arrays)


def constants_of(case: Case) -> dict[int, Tensor]:
    """The call's weights and bias as tensors."""
    tensors = {}
    for id, name, dtype in ((WEIGHT, "filter", DType.INT8), (BIAS, "bias", DType.INT32)):
        array = case.arrays[name]
        tensors[id] = Tensor(id, array.shape, dtype, tuple(range(array.ndim)), array.tobytes())
    return tensors


def _shape(dims: dict[str, int]) -> tuple[int, ...]:
    return tuple(dims[axis] for axis in "nhwc")


def _pair(tile: dict[str, int]) -> tuple[int, int]:
    return tile["h"], tile["w"]


def _window(params: dict[str, Any], name: str) -> dict[str, Any]:
    """The fields that all convolutions share."""
    given = params[name]
    return {
        "index": 0,
        "name": "golden",
        "output": 9,
        "input": 0,
        "weight": WEIGHT,
        "bias": BIAS if params["has_bias"] else None,
        "multiplier": 3,
        "shift": 4,
        "input_shape": _shape(params["input_dims"]),
        "output_shape": _shape(params["output_dims"]),
        "kernel": _pair(params["filter_dims"]),
        "stride": _pair(given["stride"]),
        "padding": _pair(given["padding"]),
        "dilation": _pair(given["dilation"]),
        "input_offset": given["input_offset"],
        "output_offset": given["output_offset"],
        "activation_min": given["activation"]["min"],
        "activation_max": given["activation"]["max"],
    }


def _conv2d(params, arrays):
    return Conv2d(**_window(params, "conv_params"), groups=params["groups"])


def _depthwise(params, arrays):
    window = _window(params, "dw_conv_params")
    return DepthwiseConv2d(**window, depth_multiplier=params["dw_conv_params"]["ch_mult"])


def _transpose_conv2d(params, arrays):
    window = _window(params, "transpose_conv_params")
    return TransposeConv2d(**window, output_padding=_pair(params["transpose_conv_params"]["padding_offsets"]))


def _linear(params, arrays):
    given = params["fc_params"]
    return Linear(
        index=0,
        name="golden",
        output=9,
        input=0,
        weight=WEIGHT,
        bias=BIAS if params["has_bias"] else None,
        rows=params["input_dims"]["n"],
        depth=params["filter_dims"]["n"],
        outputs=params["filter_dims"]["c"],
        input_offset=given["input_offset"],
        filter_offset=given["filter_offset"],
        output_offset=given["output_offset"],
        multipliers=tuple(arrays["multipliers"].tolist()),
        shifts=tuple(arrays["shifts"].tolist()),
        activation_min=given["activation"]["min"],
        activation_max=given["activation"]["max"],
    )


def _batch_matmul(params, arrays):
    left, right = params["input_lhs_dims"], params["input_rhs_dims"]
    return BatchMatmul(
        index=0,
        name="golden",
        output=9,
        lhs=0,
        rhs=1,
        batch=left["n"] * left["h"],
        rows=left["w"],
        depth=left["c"],
        columns=right["w"],
        lhs_offset=0,
        rhs_offset=0,
        output_offset=0,
        multiplier=1,
        shift=0,
    )


def _avgpool(params, arrays):
    return AvgPool2d(
        index=0,
        name="golden",
        output=9,
        input=0,
        input_shape=_shape(params["input_dims"]),
        output_shape=_shape(params["output_dims"]),
        kernel=_pair(params["filter_dims"]),
        stride=_pair(params["pool_params"]["stride"]),
        padding=_pair(params["pool_params"]["padding"]),
    )


def _extremum(kind):
    def make(params, arrays):
        return kind(
            index=0,
            name="golden",
            output=9,
            input=0,
            other=1,
            input_shape=_shape(params["input_1_dims"]),
            other_shape=_shape(params["input_2_dims"]),
            output_shape=_shape(params["output_dims"]),
        )

    return make


def _softmax(params, arrays):
    return Softmax(
        index=0,
        name="golden",
        output=9,
        input=0,
        rows=params["num_rows"],
        row_size=params["row_size"],
        multiplier=params["mult"],
        shift=params["shift"],
        diff_min=params["diff_min"],
    )


def _transpose(params, arrays):
    shape = _shape(params["input_dims"])[: params["num_dims"]]
    return Transpose(
        index=0, name="golden", output=9, input=0, input_shape=shape, permutation=tuple(params["permutations"])
    )


def _add(params, arrays):
    numbers = {
        f"{operand}_{field}": 0
        for operand in ("input", "other", "output")
        for field in ("zero_point", "multiplier", "shift")
    }
    shape = (params["block_size"],)
    return Add(
        index=0,
        name="golden",
        output=9,
        input=0,
        other=1,
        input_shape=shape,
        other_shape=shape,
        output_shape=shape,
        activation_min=-128,
        activation_max=127,
        **numbers,
    )


_MAKERS = {
    "arm_avgpool_s8": _avgpool,
    "arm_batch_matmul_s8": _batch_matmul,
    "arm_convolve_wrapper_s8": _conv2d,
    "arm_depthwise_conv_wrapper_s8": _depthwise,
    "arm_elementwise_add_s8": _add,
    "arm_fully_connected_per_channel_s8": _linear,
    "arm_fully_connected_s8": _linear,
    "arm_maximum_s8": _extremum(Maximum),
    "arm_minimum_s8": _extremum(Minimum),
    "arm_softmax_s8": _softmax,
    "arm_transpose_conv_wrapper_s8": _transpose_conv2d,
    "arm_transpose_s8": _transpose,
}
