"""The golden cases as calls: tests/golden/kernels and tests/golden/quirks, format in their README."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .calls import Call, flat

GOLDEN = Path(__file__).parent.parent / "golden"

_PRIMITIVES = (
    "arm_nn_requantize",
    "arm_nn_doubling_high_mult",
    "arm_nn_doubling_high_mult_no_sat",
    "arm_nn_divide_by_power_of_two",
    "arm_nn_exp_on_negative_values",
    "arm_nn_one_over_one_plus_x_for_x_in_0_1",
)

# Keys of a case's parameters that make up the scalars, in the driver's order.
_DIMS = ("input_dims", "filter_dims", "output_dims")
_SCALARS = {
    "arm_convolve_wrapper_s8": (*_DIMS, "conv_params"),
    "arm_depthwise_conv_wrapper_s8": (*_DIMS, "dw_conv_params"),
    "arm_transpose_conv_wrapper_s8": (*_DIMS, "transpose_conv_params"),
    "arm_batch_matmul_s8": ("input_lhs_dims", "input_rhs_dims", "output_dims", "fc_params", "quant_params"),
    "arm_vector_sum_s8": ("vector_cols", "vector_rows", "lhs_offset", "rhs_offset"),
    "arm_elementwise_add_s8": (
        *("input_1_offset", "input_1_mult", "input_1_shift", "input_2_offset", "input_2_mult", "input_2_shift"),
        *("left_shift", "out_offset", "out_mult", "out_shift", "out_activation_min", "out_activation_max"),
        "block_size",
    ),
    "arm_elementwise_mul_s8": (
        *("input_1_offset", "input_2_offset", "out_offset", "out_mult", "out_shift"),
        *("out_activation_min", "out_activation_max", "block_size"),
    ),
    "arm_maximum_s8": ("input_1_dims", "input_2_dims", "output_dims"),
    "arm_minimum_s8": ("input_1_dims", "input_2_dims", "output_dims"),
    "arm_avgpool_s8": (*_DIMS, "pool_params"),
    "arm_max_pool_s8": (*_DIMS, "pool_params"),
    "arm_softmax_s8": ("num_rows", "row_size", "mult", "shift", "diff_min"),
    "arm_transpose_s8": ("input_dims", "output_dims", "num_dims", "permutations"),
    "arm_pad_s8": ("pad_value", "input_size", "pre_pad", "post_pad"),
}


@dataclass(frozen=True)
class GoldenCase:
    """A call and the output it must give; `status` is what the function must return."""

    call: Call
    output: np.ndarray
    status: int


def _scalars(function: str, parameters: dict[str, Any]) -> tuple[int, ...]:
    if function in ("arm_fully_connected_s8", "arm_fully_connected_per_channel_s8"):
        batches, depth = parameters["input_dims"]["n"], parameters["filter_dims"]["n"]
        return (batches, depth, parameters["filter_dims"]["c"], *flat(parameters["fc_params"]))
    if function == "arm_batch_matmul_s8":
        parameters = {**parameters, "fc_params": parameters["bmm_params"]["fc_params"]}
    return tuple(flat([parameters[key] for key in _SCALARS[function]]))


def read_cases(folder: str, function: str) -> list[GoldenCase]:
    """The cases of one function; folder is `kernels`, or `quirks` where CMSIS-NN's answer is not the right one."""
    with np.load(GOLDEN / folder / f"{function}.npz") as arrays:
        count = int(arrays["n_cases"])
        return [_read_case(arrays, index, function, folder) for index in range(count)]


def _read_case(arrays: Any, index: int, function: str, folder: str) -> GoldenCase:
    def array(key: str) -> np.ndarray:
        name = f"case{index}_{key}"
        return np.asarray(arrays[name]) if name in arrays.files else np.zeros(0, "i1")

    parameters = json.loads(str(arrays[f"case{index}_params"]))
    output = array(_right_answer(folder, function))
    name = f"{folder}/{function}[{index}] {parameters['family']}"
    shape, dtype = output.shape, output.dtype.str[1:]
    if function in _PRIMITIVES:
        scalars = (_PRIMITIVES.index(function), parameters["n"])
        inputs = (array("input"), array("multipliers"), array("shifts"))
        return GoldenCase(Call("primitive", scalars, inputs, shape, dtype, name), output, 0)
    inputs = (array("input"), array("input2"), array("filter"), array("bias"), array("multipliers"), array("shifts"))
    if function in ("arm_vector_sum_s8",):
        inputs = (array("input"), array("bias"))
    elif array("input2").size:
        inputs = inputs[:2]
    elif array("filter").size:
        inputs = (inputs[0], *inputs[2:])
    else:
        inputs = inputs[:1]
    call = Call(function, _scalars(function, parameters), inputs, shape, dtype, name)
    return GoldenCase(call, output, _status(parameters))


def _right_answer(folder: str, function: str) -> str:
    if folder == "kernels":
        return "output"
    # Long softmax rows: the formulae end in an undefined shift, so what Arm cores return is the answer.
    return "output_m33" if function == "arm_softmax_s8" else "output_model"


def _status(parameters: dict[str, Any]) -> int:
    # An average over padding alone has no value; the only case in which a status other than 0 is right.
    return -1 if parameters["family"] == "window_all_padding" else 0
