"""CMSIS-NN's public API as Arm documents it for its releases 7 and 8: the part that a runner uses, as data.

From the documentation of arm_nnfunctions.h and arm_nn_types.h. Types and their order are facts of the interface; the
headers that are written from them here hold nothing else of Arm's.
"""

from __future__ import annotations

STATUS = "arm_cmsis_nn_status"
STATUSES = {
    "ARM_CMSIS_NN_SUCCESS": 0,
    "ARM_CMSIS_NN_ARG_ERROR": -1,
    "ARM_CMSIS_NN_NO_IMPL_ERROR": -2,
    "ARM_CMSIS_NN_FAILURE": -3,
}

# Fields in their order: type and name. A struct comes after those it holds.
STRUCTS: dict[str, list[tuple[str, str]]] = {
    "cmsis_nn_tile": [("int32_t", "w"), ("int32_t", "h")],
    "cmsis_nn_context": [("void *", "buf"), ("int32_t", "size")],
    "cmsis_nn_dims": [("int32_t", "n"), ("int32_t", "h"), ("int32_t", "w"), ("int32_t", "c")],
    "cmsis_nn_per_channel_quant_params": [("int32_t *", "multiplier"), ("int32_t *", "shift")],
    "cmsis_nn_per_tensor_quant_params": [("int32_t", "multiplier"), ("int32_t", "shift")],
    "cmsis_nn_activation": [("int32_t", "min"), ("int32_t", "max")],
    "cmsis_nn_conv_params": [
        ("int32_t", "input_offset"),
        ("int32_t", "output_offset"),
        ("cmsis_nn_tile", "stride"),
        ("cmsis_nn_tile", "padding"),
        ("cmsis_nn_tile", "dilation"),
        ("cmsis_nn_activation", "activation"),
    ],
    "cmsis_nn_transpose_conv_params": [
        ("int32_t", "input_offset"),
        ("int32_t", "output_offset"),
        ("cmsis_nn_tile", "stride"),
        ("cmsis_nn_tile", "padding"),
        ("cmsis_nn_tile", "padding_offsets"),
        ("cmsis_nn_tile", "dilation"),
        ("cmsis_nn_activation", "activation"),
    ],
    "cmsis_nn_dw_conv_params": [
        ("int32_t", "input_offset"),
        ("int32_t", "output_offset"),
        ("int32_t", "ch_mult"),
        ("cmsis_nn_tile", "stride"),
        ("cmsis_nn_tile", "padding"),
        ("cmsis_nn_tile", "dilation"),
        ("cmsis_nn_activation", "activation"),
    ],
    "cmsis_nn_pool_params": [
        ("cmsis_nn_tile", "stride"),
        ("cmsis_nn_tile", "padding"),
        ("cmsis_nn_activation", "activation"),
    ],
    "cmsis_nn_fc_params": [
        ("int32_t", "input_offset"),
        ("int32_t", "filter_offset"),
        ("int32_t", "output_offset"),
        ("cmsis_nn_activation", "activation"),
    ],
    "cmsis_nn_bmm_params": [
        ("const bool", "adj_x"),
        ("const bool", "adj_y"),
        ("cmsis_nn_fc_params", "fc_params"),
    ],
    "cmsis_nn_transpose_params": [("const int32_t", "num_dims"), ("const uint32_t *", "permutations")],
}

_SAMPLES = "const int8_t *"
_DIMS = "const cmsis_nn_dims *"
_PER_CHANNEL = "const cmsis_nn_per_channel_quant_params *"
_PER_TENSOR = "const cmsis_nn_per_tensor_quant_params *"
_CONTEXT = "const cmsis_nn_context *"
_TENSORS = [
    _DIMS,
    _SAMPLES,
    _DIMS,
    _SAMPLES,
    _DIMS,
    "const int32_t *",
    _DIMS,
    "int8_t *",
]  # input, filter, bias, output
_NUMBER = "const int32_t"


def _convolution(params: str, quantisation: str = _PER_CHANNEL) -> list[str]:
    return [_CONTEXT, f"const {params} *", quantisation, *_TENSORS]


def _size_of(params: str) -> list[str]:
    return [f"const {params} *", _DIMS, _DIMS, _DIMS]


_POOL = [_CONTEXT, "const cmsis_nn_pool_params *", _DIMS, _SAMPLES, _DIMS, _DIMS, "int8_t *"]
_EXTREMUM = [_CONTEXT, _SAMPLES, _DIMS, _SAMPLES, _DIMS, "int8_t *", _DIMS]

# Result, and parameters in their order with every qualifier.
FUNCTIONS: dict[str, tuple[str, list[str]]] = {
    "arm_convolve_wrapper_s8": (STATUS, _convolution("cmsis_nn_conv_params")),
    "arm_convolve_wrapper_s8_get_buffer_size": ("int32_t", _size_of("cmsis_nn_conv_params")),
    "arm_convolve_wrapper_s8_get_buffer_size_dsp": ("int32_t", _size_of("cmsis_nn_conv_params")),
    "arm_convolve_wrapper_s8_get_buffer_size_mve": ("int32_t", _size_of("cmsis_nn_conv_params")),
    "arm_depthwise_conv_wrapper_s8": (STATUS, _convolution("cmsis_nn_dw_conv_params")),
    "arm_depthwise_conv_wrapper_s8_get_buffer_size": ("int32_t", _size_of("cmsis_nn_dw_conv_params")),
    "arm_depthwise_conv_wrapper_s8_get_buffer_size_dsp": ("int32_t", _size_of("cmsis_nn_dw_conv_params")),
    "arm_depthwise_conv_wrapper_s8_get_buffer_size_mve": ("int32_t", _size_of("cmsis_nn_dw_conv_params")),
    "arm_transpose_conv_wrapper_s8": (
        STATUS,
        [_CONTEXT, *_convolution("cmsis_nn_transpose_conv_params")],
    ),
    "arm_transpose_conv_s8_get_buffer_size": ("int32_t", _size_of("cmsis_nn_transpose_conv_params")),
    "arm_transpose_conv_s8_get_buffer_size_mve": ("int32_t", _size_of("cmsis_nn_transpose_conv_params")),
    "arm_transpose_conv_s8_get_reverse_conv_buffer_size": (
        "int32_t",
        ["const cmsis_nn_transpose_conv_params *", _DIMS, _DIMS],
    ),
    "arm_fully_connected_s8": (STATUS, _convolution("cmsis_nn_fc_params", _PER_TENSOR)),
    "arm_fully_connected_per_channel_s8": (STATUS, _convolution("cmsis_nn_fc_params")),
    "arm_fully_connected_s8_get_buffer_size": ("int32_t", [_DIMS]),
    "arm_fully_connected_s8_get_buffer_size_dsp": ("int32_t", [_DIMS]),
    "arm_fully_connected_s8_get_buffer_size_mve": ("int32_t", [_DIMS]),
    "arm_batch_matmul_s8": (
        STATUS,
        [_CONTEXT, "const cmsis_nn_bmm_params *", _PER_TENSOR, _DIMS, _SAMPLES, _DIMS, _SAMPLES, _DIMS, "int8_t *"],
    ),
    "arm_vector_sum_s8": (
        STATUS,
        ["int32_t *", _NUMBER, _NUMBER, _SAMPLES, _NUMBER, _NUMBER, "const int32_t *"],
    ),
    "arm_elementwise_add_s8": (STATUS, [_SAMPLES, _SAMPLES, *[_NUMBER] * 7, "int8_t *", *[_NUMBER] * 6]),
    "arm_elementwise_mul_s8": (STATUS, [_SAMPLES, _SAMPLES, *[_NUMBER] * 2, "int8_t *", *[_NUMBER] * 6]),
    "arm_maximum_s8": (STATUS, _EXTREMUM),
    "arm_minimum_s8": (STATUS, _EXTREMUM),
    "arm_avgpool_s8": (STATUS, _POOL),
    "arm_max_pool_s8": (STATUS, _POOL),
    "arm_avgpool_s8_get_buffer_size": ("int32_t", ["const int", "const int"]),
    "arm_avgpool_s8_get_buffer_size_dsp": ("int32_t", ["const int", "const int"]),
    "arm_avgpool_s8_get_buffer_size_mve": ("int32_t", ["const int", "const int"]),
    "arm_softmax_s8": ("void", [_SAMPLES, *[_NUMBER] * 5, "int8_t *"]),
    "arm_transpose_s8": (
        STATUS,
        [
            _SAMPLES,
            "int8_t *const",
            "const cmsis_nn_dims *const",
            "const cmsis_nn_dims *const",
            "const cmsis_nn_transpose_params *const",
        ],
    ),
    "arm_pad_s8": (STATUS, [_SAMPLES, "int8_t *", "const int8_t", _DIMS, _DIMS, _DIMS]),
}


def types_header() -> str:
    """arm_nn_types.h with the published structures and nothing more."""
    lines = ["#ifndef ARM_NN_TYPES_H", "#define ARM_NN_TYPES_H", "#include <stdbool.h>", "#include <stdint.h>", ""]
    lines += ["typedef enum {", *(f"    {name} = {value}," for name, value in STATUSES.items()), f"}} {STATUS};", ""]
    for struct, fields in STRUCTS.items():
        lines += ["typedef struct {", *(f"    {type_} {name};" for type_, name in fields), f"}} {struct};", ""]
    return "\n".join([*lines, "#endif", ""])


def functions_header(revision: str = "V.18.0.0", leave_out: tuple[str, ...] = ()) -> str:
    """arm_nnfunctions.h with the published prototypes; `leave_out` makes an older one of it."""
    lines = [
        "/* ----------------------------------------------------------------------",
        " * Title:        arm_nnfunctions.h, prototypes for tests",
        f" * $Revision:    {revision}",
        " * -------------------------------------------------------------------- */",
        "#ifndef ARM_NNFUNCTIONS_H",
        "#define ARM_NNFUNCTIONS_H",
        '#include "arm_nn_types.h"',
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for name, (result, parameters) in FUNCTIONS.items():
        if name not in leave_out:
            named = ", ".join(f"{type_} argument_{index}" for index, type_ in enumerate(parameters))
            lines += [f"/* {name}(...); in words */", f"{result} {name}({named});", ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "#endif", ""])


def assertions() -> str:
    """C that compiles only where a header of the same name has exactly the published API."""
    lines = ['#include "arm_nnfunctions.h"', "#include <stddef.h>", ""]
    for name, value in STATUSES.items():
        lines.append(f'_Static_assert({name} == {value}, "{name}");')
    for struct, fields in STRUCTS.items():
        previous = "0"
        for type_, field in fields:
            member = f"(({struct} *)0)->{field}"
            lines.append(
                f"_Static_assert(__builtin_types_compatible_p(__typeof__(&{member}), {type_} *), "
                f'"type of {struct}.{field}");'
            )
            lines.append(f'_Static_assert(offsetof({struct}, {field}) >= {previous}, "order of {struct}.{field}");')
            previous = f"offsetof({struct}, {field}) + sizeof({member})"
        # Fields that are published and no others: one after the other, with the padding that C gives.
        lines += [f"struct published_{struct} {{", *(f"    {type_} {field};" for type_, field in fields), "};"]
        lines.append(f'_Static_assert(sizeof({struct}) == sizeof(struct published_{struct}), "size of {struct}");')
    for name, (result, parameters) in FUNCTIONS.items():
        published = f"{result} (*)({', '.join(parameters)})"
        lines.append(f'_Static_assert(__builtin_types_compatible_p(__typeof__(&{name}), {published}), "{name}");')
    return "\n".join([*lines, ""])
