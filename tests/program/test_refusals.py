"""Programs that the reader refuses: what the error says, and where it says it happened."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from toolkit.program import read_program
from toolkit.program.types import Program

from .changes import Change, changed, check, integers, overwritten, refusal, rename, replaced, reshaped
from .document import Document, add_value, argument, calls, plan, value
from .samples import sample

# What is not a program at all.


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "the file is empty"),
        (b"\x10\0\0\0TFL3" + bytes(40), "a TensorFlow Lite model"),
        (b"PK\x03\x04" + bytes(40), "a zip archive"),
        (b"\x7fELF" + bytes(40), "an ELF image"),
        (b"hello, world, this is text", "file identifier 'o, w'"),
        (b"\x10\0\0\0ET13" + bytes(40), "the file identifier is ET13; only ET12 is known"),
        (b"\x10\0\0\0ETxx" + bytes(40), "file identifier 'ETxx'"),
        (b"\x10\0\0\0ET12" + bytes(4), "the root table Program lies outside the file"),
    ],
)
def test_foreign_files(data: bytes, what: str) -> None:
    error = refusal(data)
    assert what in error.what
    assert error.where == "model.pte"
    assert error.hint


def test_another_schema_version() -> None:
    check("matmul", lambda d: d.update(version=1), "schema version 1 is not known (only 0 is)", "model.pte")


def header(data: bytes, **fields: int) -> bytes:
    """The data with fields of its extended header replaced."""
    layout = {
        "magic": (8, "<I"),
        "length": (12, "<I"),
        "program_size": (16, "<Q"),
        "base": (24, "<Q"),
        "size": (32, "<Q"),
    }
    mutant = bytearray(data)
    for name, number in fields.items():
        offset, code = layout[name]
        struct.pack_into(code, mutant, offset, number)
    return bytes(mutant)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"magic": int.from_bytes(b"eh01", "little")}, "the extended header is of an unknown kind ('eh01')"),
        ({"length": 16}, "the extended header is malformed"),
        ({"program_size": 20}, "the extended header is malformed"),
        ({"program_size": 2**63}, "segments begin inside the program"),
        ({"base": 16}, "segments begin inside the program"),
        ({"base": 2**40}, "the file was cut short: it has"),
        ({"size": 2**40}, "the file was cut short: it has"),
        ({"base": 0, "size": 0}, "the file has no extended header to find it by"),
    ],
)
def test_extended_header(fields: dict[str, int], what: str) -> None:
    assert what in refusal(header(sample("dae"), **fields)).what


@pytest.mark.parametrize("kept", [4, 8, 20, 39, 100, 7000, 200_000])
def test_truncated_files(kept: int) -> None:
    assert refusal(sample("dae")[:kept]).where == "model.pte"


# What a program may not contain.


def test_float_operators_are_named_with_their_layer() -> None:
    error = refusal(sample("convolutions_in_float"))
    assert error.what == (
        "2 operators have not been quantised or lowered for Cortex-M and would run in float: "
        "aten::convolution (a convolution, operator 2), aten::convolution (a convolution, operator 7)"
    )
    assert error.where == "model.pte, operator 2"
    assert "use_explicit_layout=True" in error.hint


def test_integer_operators_without_a_kernel() -> None:
    what = "an operator has no Cortex-M kernel: aten::permute_copy (a permutation, operator 2)"
    check("extrema", rename(2, "aten::permute_copy"), what, "model.pte, operator 2")


@pytest.mark.parametrize(
    ("call", "change", "what"),
    [
        (7, reshaped(7, -1, 1, 7, 6, 8), "[1, 4, 6, 8], [1, 2, 6, 8] along axis 1 do not give [1, 7, 6, 8]"),
        (7, replaced(7, 1, "Int", int_val=2), "along axis 2 do not give [1, 6, 6, 8]"),
        (7, replaced(7, 1, "Int", int_val=4), "dim is 4; it must be within -4 and 3"),
        (7, replaced(7, 0, "TensorList", items=[]), "nothing is concatenated"),
        (7, replaced(7, 0, "Int", int_val=1), "is an integer"),
        (8, replaced(8, 4, "Int", int_val=0), "step is 0; it must be within 1"),
        (8, replaced(8, 2, "Int", int_val=2), "the slice of [1, 6, 6, 8] gives [1, 6, 2, 8]"),
        (8, replaced(8, 2, "Int", int_val=-100), "the slice of [1, 6, 6, 8] gives [1, 6, 4, 8]"),
        (8, replaced(8, 3, "Null"), "the slice of [1, 6, 6, 8] gives [1, 6, 5, 8]"),
        (15, reshaped(15, 0, 1, 3, 1, 2), "[1, 3, 1, 2] cannot be repeated to [1, 6, 6, 8]"),
    ],
)
def test_what_cuts_joins_and_repeats_must_fit(call: int, change: Change, what: str) -> None:
    error = refusal(changed("joining_explicit", change))
    assert what in error.what
    assert f"operator {call} " in error.where


def test_lists_of_tensors_hold_tensors_and_not_many() -> None:
    def check_items(make: Any, what: str) -> None:
        def change(content: Document) -> None:
            index = add_value(content, "TensorList", {"items": make(content)})
            calls(content)[7]["args"][0] = index

        assert what in refusal(changed("joining_explicit", change)).what

    first = 7
    check_items(lambda d: [calls(d)[first]["args"][2]] * 257, "a list of 257 tensors; at most 256 are supported")
    check_items(lambda d: [10**6], "refers to value 1000000, which is none")
    check_items(lambda d: [calls(d)[first]["args"][0]], "which is none")  # a list of lists
    check_items(lambda d: [len(plan(d)["values"])], "which is none")  # itself


def test_portable_operators_on_floats_are_leftovers() -> None:
    def change(content: Document) -> None:
        rename(0, "aten::clamp")(content)
        calls(content)[0]["args"] = [calls(content)[0]["args"][i] for i in (0, 2, 2, 6, 6)]
        value(content, calls(content)[0]["args"][-1])["scalar_type"] = 6
        value(content, calls(content)[0]["args"][-1])["sizes"] = [1, 1, 7]

    what = "would run in float: aten::clamp (a clamp, operator 0)"
    check("extrema", change, what, "model.pte, operator 0")


def test_unknown_cortex_m_operators() -> None:
    what = "an operator has an unknown name: cortex_m::quantized_lstm (operator 2)"
    check("extrema", rename(2, "cortex_m::quantized_lstm"), what, "model.pte, operator 2")


def test_unprintable_names_are_escaped_and_shortened() -> None:
    error = check("extrema", rename(2, "aten::\x1b[31m" + "x" * 500), "aten::\\x1b[31mxxx", "model.pte, operator 2")
    assert len(error.what) < 200


@pytest.mark.parametrize(
    ("kind", "table", "what"),
    [
        ("DelegateCall", {"delegate_index": 0, "args": [0]}, "the instruction is a call of a delegate"),
        ("MoveCall", {"move_from": 0, "move_to": 1}, "the instruction is a move between values"),
        ("JumpFalseCall", {"cond_value_index": 0}, "the instruction is a jump"),
        ("FreeCall", {"value_index": 0}, "the instruction is an allocation at run time"),
    ],
)
def test_other_instructions(kind: str, table: Document, what: str) -> None:
    def change(content: Document) -> None:
        plan(content)["chains"][0]["instructions"][1]["instr_args"] = (kind, table)

    check("extrema", change, what, "model.pte, operator 1")


def test_delegates_are_named() -> None:
    def change(content: Document) -> None:
        plan(content)["delegates"] = [{"id": "EthosUBackend"}]

    error = check("extrema", change, "a part of the program is delegated to 'EthosUBackend'", "model.pte")
    assert "partitioner" in error.hint


@pytest.mark.parametrize("count", [0, 2])
def test_chains(count: int) -> None:
    def change(content: Document) -> None:
        plan(content)["chains"] = plan(content)["chains"] * count

    check("extrema", change, f"the program has {count} chains of instructions", "model.pte")


def test_forward_is_read_among_several_methods() -> None:
    def change(content: Document) -> None:
        other = {**plan(content), "name": "encode", "values": []}
        content["execution_plan"].insert(0, other)

    assert read_program(changed("extrema", change)).name == "forward"


def test_the_only_method_is_read_whatever_its_name() -> None:
    data = changed("extrema", lambda d: plan(d).update(name="encode"))
    assert read_program(data).name == "encode"


def test_errors_in_another_method_name_it() -> None:
    def change(content: Document) -> None:
        plan(content)["name"] = "encode"
        rename(2, "aten::permute_copy")(content)

    check("extrema", change, "an operator has no Cortex-M kernel", "model.pte, method 'encode', operator 2")


def test_several_methods_without_forward() -> None:
    def change(content: Document) -> None:
        plan(content)["name"] = "encode"
        content["execution_plan"].append({**plan(content), "name": "decode"})

    check("extrema", change, "the program has 2 methods ('encode', 'decode') and none is called 'forward'", "model.pte")


def test_no_methods() -> None:
    check("extrema", lambda d: d.update(execution_plan=[]), "the program has no methods", "model.pte")


# Tensors.


def tensor_change(**fields: Any) -> Change:
    """Changes fields of the first argument of operator 2 of `extrema`: value 2, int8 [1, 5, 7]."""
    return lambda content: argument(content, 2, 0).update(fields)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"scalar_type": 5}, "tensors of float16 are not supported"),
        ({"scalar_type": 99}, "the element type 99 is unknown"),
        ({"storage_offset": 4}, "begins inside its storage"),
        ({"shape_dynamism": 1}, "the tensor has a dynamic shape"),
        ({"sizes": [1, -5, 7]}, "the sizes [1, -5, 7] are not all positive"),
        ({"sizes": [1] * 17}, "a tensor of 17 dimensions"),
        ({"dim_order": [0, 1]}, "the dim order [0, 1] does not fit the sizes [1, 5, 7]"),
        ({"dim_order": [0, 2, 2]}, "the dim order [0, 2, 2] does not fit the sizes [1, 5, 7]"),
        ({"sizes": [1, 2**20, 2**20]}, "a tensor of 1099511627776 bytes cannot be on a microcontroller"),
        ({"sizes": [1, 50, 7]}, "of a memory of 336 bytes"),
        ({"allocation_info": {"memory_id": 7}}, "the tensor is in memory 7, the program has 2"),
        ({"allocation_info": {"memory_id": 1, "memory_offset_high": 1}}, "the tensor ends at byte 4294967331"),
        ({"data_buffer_idx": 1}, "the tensor is state"),
        ({"extra_tensor_info": {"device_type": 1}}, "the tensor is placed on an accelerator"),
        ({"extra_tensor_info": {"location": 1, "fully_qualified_name": "a.w"}}, "'a.w' is kept outside the program"),
    ],
)
def test_tensors(fields: dict[str, Any], what: str) -> None:
    assert check("extrema", tensor_change(**fields), what, "model.pte, value 2")


def test_a_constant_that_is_too_short_for_its_shape() -> None:
    def change(content: Document) -> None:
        argument(content, 1, 1)["sizes"] = [7, 14]

    check("linears_m33", change, "its shape needs 98 bytes, constant 1 has 96", "model.pte, value 0")


def test_a_constant_that_does_not_exist() -> None:
    def change(content: Document) -> None:
        argument(content, 1, 1)["data_buffer_idx"] = 77

    check("linears_m33", change, "it refers to constant 77 of 6", "model.pte, value 0")


def test_inputs_and_outputs_must_be_tensors_that_depend_on_the_model() -> None:
    def number(content: Document) -> None:
        plan(content)["inputs"][0] = add_value(content, "Int", {"int_val": 3})

    def constant(content: Document) -> None:
        plan(content)["outputs"][0] = calls(content)[1]["args"][1]

    check("linears_m33", number, "it is not a tensor", "model.pte, input 0 (value 52)")
    check("linears_m33", constant, "it is a constant", "model.pte, output 0 (value 0)")
    check("linears_m33", lambda d: plan(d).update(outputs=[]), "the program has no outputs", "model.pte")


# Operators. Operator 1 of `linears_m33` is a linear layer, 1 of `convolutions_legacy` a convolution.

LINEAR = "model.pte, operator 1 (cortex_m::quantized_linear)"
CONV = "model.pte, operator 1 (cortex_m::quantized_conv2d)"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: calls(d)[1]["args"].pop(), "it has 12 arguments, not 13"),
        (replaced(1, 12, "Tensor", scalar_type=1), "the result and the returned value are different tensors"),
        (replaced(1, 4, "Double", double_val=1.0), "input_offset (value 52) is a real number"),
        (replaced(1, 4, "Bool", bool_val=True), "input_offset (value 52) is a truth value"),
        (replaced(1, 4, "Int", int_val=129), "input_offset is 129; it must be within -127 and 128"),
        (replaced(1, 6, "Int", int_val=-129), "output_offset is -129; it must be within -128 and 127"),
        (replaced(1, 9, "Int", int_val=-129), "activation_max is -129; it must be within -128 and 127"),
        (replaced(1, 10, "Int", int_val=128), "activation_min is 128; it must be within -128 and 127"),
        (replaced(1, 9, "Int", int_val=-5), None),
        (integers(1, 7, 2**31), "multipliers is 2147483648; it must be within 0 and 2147483647"),
        (integers(1, 8, -32), "shifts is -32; it must be within -31 and 30"),
        (integers(1, 8, 31), "shifts is 31; it must be within -31 and 30"),
        (integers(1, 7, 2**30, 2**30), "there are 2 multipliers and 1 shifts for 7 outputs"),
        (integers(1, 7), "there are 0 multipliers and 1 shifts for 7 outputs"),
        (reshaped(1, 1, 12, 7), "the weight [12, 7] does not fit the input [2, 12]"),
        (reshaped(1, 1, 7, 12, dim_order=[1, 0]), "weight (tensor 0) is stored in the dim order [1, 0]"),
        (reshaped(1, 2, 1), "bias (tensor 1) has the shape [1], not [7]"),
        (reshaped(1, 12, 7, 2), "the output is [7, 2]; it must be [2, 7]"),
        (reshaped(1, 12, 2, 7, dim_order=[1, 0]), "output (tensor 12) is in the memory order [1, 0]"),
        (lambda d: argument(d, 1, 1).update(scalar_type=0), "weight (tensor 0) is uint8; only int8 is supported"),
        (
            lambda d: argument(d, 1, 1).update(data_buffer_idx=0, allocation_info={"memory_id": 1}),
            "weight (tensor 0) is computed at run time; it must be a constant",
        ),
    ],
)
def test_linear(change: Change, what: str | None) -> None:
    if what is None:
        assert isinstance(read_program(changed("linears_m33", change)), Program)
    else:
        check("linears_m33", change, what, LINEAR)


def test_bounds_in_the_wrong_order() -> None:
    def change(content: Document) -> None:
        replaced(1, 9, "Int", int_val=-5)(content)
        replaced(1, 10, "Int", int_val=5)(content)

    check("linears_m33", change, "activation_min 5 is above activation_max -5", LINEAR)


def test_a_multiplier_for_every_output_is_kept() -> None:
    def change(content: Document) -> None:
        integers(1, 7, *(2**30 + i for i in range(7)))(content)
        integers(1, 8, *(-i for i in range(7)))(content)

    layer = read_program(changed("linears_m33", change)).operators[1]
    assert layer.multipliers == tuple(2**30 + i for i in range(7))  # type: ignore[attr-defined]
    assert layer.shifts == (0, -1, -2, -3, -4, -5, -6)  # type: ignore[attr-defined]


def test_kernel_sums() -> None:
    where = "model.pte, operator 1 (cortex_m::quantized_linear)"
    check("linears_m55", reshaped(1, 3, 1, 6), "kernel_sum (tensor 1) has 6 elements for 7 outputs", where)

    def contradiction(content: Document) -> None:
        calls(content)[1]["args"][2] = add_value(
            content, "Tensor", {"scalar_type": 3, "sizes": [7], "dim_order": [0], "data_buffer_idx": 1}
        )

    check("linears_m55", contradiction, "bias and kernel_sum contradict each other", where)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (integers(1, 3, 0, 1), "stride is 0; it must be within 1 and 2147483647"),
        (integers(1, 3, 1, 1, 1), "stride has 3 elements, not 2"),
        (integers(1, 4, -1, 0), "padding is -1; it must be within 0 and 2147483647"),
        (integers(1, 4, 2, 1), "the output is [1, 8, 8, 8]; input, weight and stride give [1, 10, 8, 8] (NHWC)"),
        (integers(1, 5, 2, 1), "the output is [1, 8, 8, 8]; input, weight and stride give [1, 6, 8, 8] (NHWC)"),
        (reshaped(1, 1, 8, 3, 3, 2), "3 input channels do not divide into groups of 2"),
        (reshaped(1, 1, 72, 3), "weight (tensor 5) has the shape [72, 3]; it must have four dimensions"),
        (reshaped(1, 9, 4), "shift (tensor 3) has the shape [4], not [8]"),
        (overwritten(1, 8, 5, -1), "multiplier of channel 5 is -1; it must be within 0 and 2147483647"),
        (overwritten(1, 9, 6, -32), "shift of channel 6 is -32; it must be within -31 and 30"),
    ],
)
def test_convolution(change: Change, what: str) -> None:
    check("convolutions_legacy", change, what, CONV)


def test_an_image_in_the_wrong_memory_order() -> None:
    def change(content: Document) -> None:
        for position in (0, 6):
            argument(content, 0, position)["dim_order"] = [0, 1, 2, 3]

    what = "input (tensor 19) is in the memory order [0, 1, 2, 3]; this operator needs [0, 2, 3, 1]"
    error = check("convolutions_legacy", change, what, CONV)
    assert "channels_last" in error.hint


@pytest.mark.parametrize(
    ("name", "change", "what", "where"),
    [
        ("extrema", replaced(0, 1, "Double", double_val=0.0), "scale is 0.0; a scale must be positive", "operator 0"),
        ("extrema", replaced(0, 1, "Double", double_val=float("nan")), "scale is nan", "operator 0"),
        ("extrema", replaced(0, 1, "Double", double_val=1e-300), "scale is 1e-300", "operator 0"),
        ("extrema", replaced(0, 5, "Int", int_val=2), "only int8 is supported as the quantised type", "operator 0"),
        ("extrema", reshaped(2, 1, 1, 7, 5), "input and output have different shapes", "operator 1"),
        ("extrema", reshaped(4, 3, 5, 7), "an operand [1, 5, 7] has more dimensions than the output", "operator 4"),
        ("extrema", reshaped(4, 3, 1, 5, 6), "do not broadcast to the output [1, 5, 6]", "operator 4"),
        ("matmul", integers(2, 1, 0, 1, 1), "[0, 1, 1] is not a permutation of 3 axes", "operator 2"),
        ("matmul", integers(2, 1, 0, 1, 2), "the output is [2, 5, 4]; the permutation gives [2, 4, 5]", "operator 2"),
        ("matmul", integers(2, 1, 0, 1, 3), "permutation is 3; it must be within -3 and 2", "operator 2"),
        ("pools_legacy", integers(1, 1, 0, 0, 1, 1), "padding [1, 3, 7, 6] by", "operator 1"),
        ("pools_legacy", integers(1, 1, 0, 0, -1, 0), "before is -1", "operator 1"),
        ("pools_legacy", replaced(3, 4, "Int", int_val=1), "ceil_mode (value 85) is an integer", "operator 3"),
        ("pools_legacy", integers(4, 4, 2, 2), "a dilated maximum pooling is not supported", "operator 4"),
        ("pools_legacy", replaced(4, 6, "Int", int_val=3), "different zero points", "operator 4"),
        ("pools_legacy", integers(5, 3, 2, 2), "the padding [2, 2] is not below the kernel size [2, 2]", "operator 5"),
        ("pools_legacy", integers(5, 2, 3, 2), "input, kernel and stride give [1, 2, 3, 3] (NHWC)", "operator 5"),
        ("elementwise", replaced(9, 1, "Int", int_val=1), "softmax over axis 1 of [2, 3, 8]", "operator 9"),
        ("elementwise", replaced(9, 3, "Int", int_val=0), "the output zero point must be -128", "operator 9"),
        ("elementwise", replaced(9, 6, "Int", int_val=-(2**20)), "exceed the fixed-point range", "operator 9"),
        ("gate_legacy", reshaped(5, 2, 1, 5, 1, 1), "input and output have different shapes", "operator 4"),
    ],
)
def test_other_operators(name: str, change: Change, what: str, where: str) -> None:
    error = refusal(changed(name, change))
    assert what in error.what
    assert error.where.startswith(f"model.pte, {where}")
