"""Golden kernel cases as programs of one operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    MaxPool2d,
    Minimum,
    Mul,
    Operator,
    Pad,
    Program,
    Softmax,
    Tensor,
    Transpose,
    TransposeConv2d,
)
from toolkit.reference import execute

OUTPUT, INPUT, OTHER, WEIGHT, BIAS, MULTIPLIER, SHIFT = range(7)
"""Tensor ids."""

_NHWC = ("n", "h", "w", "c")


@dataclass(frozen=True)
class Case:
    """One stored case: the function, its arguments, its arrays without the `case{i}_` prefix."""

    function: str
    params: Mapping[str, Any]
    arrays: Mapping[str, Any]

    def int64(self, key: str) -> Any:
        return self.arrays[key].astype(np.int64)

    def output_shape(self) -> tuple[int, ...]:
        return tuple(self.arrays["output_model" if "output_model" in self.arrays else "output"].shape)


def program(operator: Operator, arrays: Mapping[int, Any], output: tuple[int, ...], inputs: tuple[int, ...]) -> Program:
    """A program of one operator. `arrays` by tensor id; those not among `inputs` are constants."""
    tensors = {
        id_: tensor(id_, array.shape, DType(array.dtype.str), None if id_ in inputs else array.tobytes())
        for id_, array in arrays.items()
    }
    tensors[operator.output] = tensor(operator.output, output, DType.INT8, None)
    return Program("forward", "", tensors, (operator,), inputs, (operator.output,))


def tensor(id_: int, shape: tuple[int, ...], dtype: DType, constant: bytes | None) -> Tensor:
    return Tensor(id_, shape, dtype, tuple(range(len(shape))), constant)


def evaluate(single: Program, case: Case) -> Any:
    """The operator's result for a case.

    Where the operator of a program has no activation range of its own, the library's narrower one is applied here.
    """
    arrays = [case.arrays["input"], case.arrays.get("input2")]
    if case.function == "arm_batch_matmul_s8":
        arrays = list(_matmul_operands(case))
    inputs = [array.reshape(single.tensors[id_].shape) for id_, array in zip(single.inputs, arrays, strict=False)]
    result = execute(single, inputs).outputs[0].reshape(case.output_shape())
    low, high = _activation(case)
    return np.clip(result, low, high)


def single_operator(case: Case) -> Program:
    build = {
        "arm_avgpool_s8": _pool,
        "arm_batch_matmul_s8": _batch_matmul,
        "arm_convolve_wrapper_s8": _convolution,
        "arm_depthwise_conv_wrapper_s8": _convolution,
        "arm_elementwise_add_s8": _add,
        "arm_elementwise_mul_s8": _mul,
        "arm_fully_connected_per_channel_s8": _linear,
        "arm_fully_connected_s8": _linear,
        "arm_max_pool_s8": _pool,
        "arm_maximum_s8": _extremum,
        "arm_minimum_s8": _extremum,
        "arm_pad_s8": _pad,
        "arm_softmax_s8": _softmax,
        "arm_transpose_conv_wrapper_s8": _convolution,
        "arm_transpose_s8": _transpose,
    }
    return build[case.function](case)


def _pair(sizes: Mapping[str, int]) -> tuple[int, int]:
    return sizes["h"], sizes["w"]


def _activation(case: Case) -> tuple[int, int]:
    p = case.params
    if "out_activation_min" in p:
        return p["out_activation_min"], p["out_activation_max"]
    names = ("conv_params", "dw_conv_params", "transpose_conv_params", "fc_params", "pool_params")
    blocks = [p[name] for name in names if name in p]
    if "bmm_params" in p:
        blocks.append(p["bmm_params"]["fc_params"])
    return (blocks[0]["activation"]["min"], blocks[0]["activation"]["max"]) if blocks else (-128, 127)


def _constants(case: Case) -> dict[int, Any]:
    arrays = {
        INPUT: case.arrays["input"],
        WEIGHT: case.arrays["filter"],
        MULTIPLIER: case.arrays["multipliers"],
        SHIFT: case.arrays["shifts"],
    }
    if case.params["has_bias"]:
        arrays[BIAS] = case.arrays["bias"]
    return arrays


def _convolution(case: Case) -> Program:
    key = next(k for k in ("conv_params", "dw_conv_params", "transpose_conv_params") if k in case.params)
    p, low_high = case.params[key], _activation(case)
    common: dict[str, Any] = {
        "index": 0,
        "name": case.function,
        "output": OUTPUT,
        "input": INPUT,
        "weight": WEIGHT,
        "bias": BIAS if case.params["has_bias"] else None,
        "multiplier": MULTIPLIER,
        "shift": SHIFT,
        "input_shape": case.arrays["input"].shape,
        "output_shape": case.output_shape(),
        "kernel": case.arrays["filter"].shape[1:3],
        "stride": _pair(p["stride"]),
        "padding": _pair(p["padding"]),
        "dilation": _pair(p["dilation"]),
        "input_offset": p["input_offset"],
        "output_offset": p["output_offset"],
        "activation_min": low_high[0],
        "activation_max": low_high[1],
    }
    operator: Operator
    if key == "conv_params":
        operator = Conv2d(groups=case.params["groups"], **common)
    elif key == "dw_conv_params":
        operator = DepthwiseConv2d(depth_multiplier=p["ch_mult"], **common)
    else:
        operator = TransposeConv2d(output_padding=_pair(p["padding_offsets"]), **common)
    return program(operator, _constants(case), case.output_shape(), (INPUT,))


def _linear(case: Case) -> Program:
    p, (low, high) = case.params["fc_params"], _activation(case)
    outputs, depth = case.arrays["filter"].shape
    operator = Linear(
        index=0,
        name=case.function,
        output=OUTPUT,
        input=INPUT,
        weight=WEIGHT,
        bias=BIAS if case.params["has_bias"] else None,
        rows=case.arrays["input"].shape[0],
        depth=depth,
        outputs=outputs,
        input_offset=p["input_offset"],
        filter_offset=p["filter_offset"],
        output_offset=p["output_offset"],
        multipliers=tuple(case.arrays["multipliers"].tolist()),
        shifts=tuple(case.arrays["shifts"].tolist()),
        activation_min=low,
        activation_max=high,
    )
    return program(operator, _constants(case), case.output_shape(), (INPUT,))


def _matmul_operands(case: Case) -> tuple[Any, Any]:
    """Both operands with the library's two batch axes broadcast and joined."""
    lhs, rhs = case.arrays["input"], case.arrays["input2"]
    batch = case.output_shape()[:2]
    return tuple(
        np.ascontiguousarray(np.broadcast_to(array, (*batch, *array.shape[2:]))).reshape(-1, *array.shape[2:])
        for array in (lhs, rhs)
    )


def _batch_matmul(case: Case) -> Program:
    lhs, rhs = _matmul_operands(case)
    p = case.params["bmm_params"]["fc_params"]
    operator = BatchMatmul(
        index=0,
        name=case.function,
        output=OUTPUT,
        lhs=INPUT,
        rhs=OTHER,
        batch=lhs.shape[0],
        rows=lhs.shape[1],
        depth=lhs.shape[2],
        columns=rhs.shape[1],
        lhs_offset=p["input_offset"],
        rhs_offset=p["filter_offset"],
        output_offset=p["output_offset"],
        multiplier=case.params["quant_params"]["multiplier"],
        shift=case.params["quant_params"]["shift"],
    )
    return program(operator, {INPUT: lhs, OTHER: rhs}, (*lhs.shape[:2], rhs.shape[1]), (INPUT, OTHER))


def _two_inputs(case: Case) -> dict[int, Any]:
    return {INPUT: case.arrays["input"], OTHER: case.arrays["input2"]}


def _shapes(case: Case) -> dict[str, Any]:
    return {
        "index": 0,
        "name": case.function,
        "output": OUTPUT,
        "input": INPUT,
        "other": OTHER,
        "input_shape": case.arrays["input"].shape,
        "other_shape": case.arrays["input2"].shape,
        "output_shape": case.output_shape(),
    }


def _add(case: Case) -> Program:
    p = case.params
    assert p["left_shift"] == 20
    operator = Add(
        **_shapes(case),
        input_zero_point=-p["input_1_offset"],
        input_multiplier=p["input_1_mult"],
        input_shift=p["input_1_shift"],
        other_zero_point=-p["input_2_offset"],
        other_multiplier=p["input_2_mult"],
        other_shift=p["input_2_shift"],
        output_zero_point=p["out_offset"],
        output_multiplier=p["out_mult"],
        output_shift=p["out_shift"],
        activation_min=p["out_activation_min"],
        activation_max=p["out_activation_max"],
    )
    return program(operator, _two_inputs(case), case.output_shape(), (INPUT, OTHER))


def _mul(case: Case) -> Program:
    p = case.params
    operator = Mul(
        **_shapes(case),
        input_zero_point=-p["input_1_offset"],
        other_zero_point=-p["input_2_offset"],
        output_zero_point=p["out_offset"],
        multiplier=p["out_mult"],
        shift=p["out_shift"],
    )
    return program(operator, _two_inputs(case), case.output_shape(), (INPUT, OTHER))


def _extremum(case: Case) -> Program:
    kind = Maximum if "maximum" in case.function else Minimum
    return program(kind(**_shapes(case)), _two_inputs(case), case.output_shape(), (INPUT, OTHER))


def _pool(case: Case) -> Program:
    p = case.params["pool_params"]
    low, high = _activation(case)
    common: dict[str, Any] = {
        "index": 0,
        "name": case.function,
        "output": OUTPUT,
        "input": INPUT,
        "input_shape": case.arrays["input"].shape,
        "output_shape": case.output_shape(),
        "kernel": _pair(case.params["filter_dims"]),
        "stride": _pair(p["stride"]),
        "padding": _pair(p["padding"]),
    }
    operator: Operator
    if case.function == "arm_avgpool_s8":
        operator = AvgPool2d(**common)
    else:
        operator = MaxPool2d(activation_min=low, activation_max=high, **common)
    return program(operator, {INPUT: case.arrays["input"]}, case.output_shape(), (INPUT,))


def _softmax(case: Case) -> Program:
    p = case.params
    operator = Softmax(
        index=0,
        name=case.function,
        output=OUTPUT,
        input=INPUT,
        rows=p["num_rows"],
        row_size=p["row_size"],
        multiplier=p["mult"],
        shift=p["shift"],
        diff_min=p["diff_min"],
    )
    return program(operator, {INPUT: case.arrays["input"]}, case.output_shape(), (INPUT,))


def _transpose(case: Case) -> Program:
    operator = Transpose(
        index=0,
        name=case.function,
        output=OUTPUT,
        input=INPUT,
        input_shape=case.arrays["input"].shape,
        permutation=tuple(case.params["permutations"]),
    )
    return program(operator, {INPUT: case.arrays["input"]}, case.output_shape(), (INPUT,))


def _pad(case: Case) -> Program:
    p = case.params
    operator = Pad(
        index=0,
        name=case.function,
        output=OUTPUT,
        input=INPUT,
        input_shape=case.arrays["input"].shape,
        before=tuple(p["pre_pad"][axis] for axis in _NHWC),
        after=tuple(p["post_pad"][axis] for axis in _NHWC),
        value=p["pad_value"],
    )
    return program(operator, {INPUT: case.arrays["input"]}, case.output_shape(), (INPUT,))
