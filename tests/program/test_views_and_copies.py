"""Operators that only rename or move bytes, in all the forms in which exporters write them."""

from __future__ import annotations

import pytest

from toolkit.errors import ProgramError
from toolkit.program import read_program
from toolkit.program.types import Copy, Maximum, Minimum, Mul, Operator, View

from . import document
from .document import Document, add_value, argument, calls, plan
from .samples import sample

# Operator 5 of `convolutions_legacy` copies an image [1, 8, 2, 2] from channels-last to channels-first, with arguments
# input, non_blocking, dim_order, output, output; a view of its result is elided.
COPY = 5
# Operator 6 of `convolutions_explicit` transposes [1, 2, 2, 8] to [1, 8, 2, 2] and is followed by an elided view.
TRANSPOSE = 6
PLACE = "program.pte, operator 5 ({})"


def with_operator(content: Document, name: str, arguments: list[int]) -> None:
    """Lets operator 5 be another one; its input and output stay."""
    args = calls(content)[COPY]["args"]
    plan(content)["operators"].append({"name": name, "overload": "out"})
    calls(content)[COPY].update(op_index=len(plan(content)["operators"]) - 1, args=[args[0], *arguments, args[-1]])


def read(content: Document) -> Operator:
    program = read_program(document.dump(content))
    return next(operator for operator in program.operators if operator.index == COPY)


def lowered() -> Document:
    return document.load(sample("convolutions_legacy"))


def null(content: Document) -> int:
    return add_value(content, "Null", {})


@pytest.mark.parametrize("name", ["dim_order_ops::_clone_dim_order", "dim_order_ops::_to_dim_order_copy"])
def test_copies_between_dim_orders(name: str) -> None:
    content = lowered()
    output = calls(content)[COPY]["args"][-1]
    with_operator(content, name, [add_value(content, "Bool", {"bool_val": False}), null(content), output])
    copy = read(content)
    assert isinstance(copy, Copy)
    assert (copy.name, copy.input_shape, copy.permutation) == (name, (1, 2, 2, 8), (0, 3, 1, 2))


def test_clone() -> None:
    content = lowered()
    with_operator(content, "aten::clone", [null(content), calls(content)[COPY]["args"][-1]])
    copy = read(content)
    assert isinstance(copy, Copy)
    assert copy.permutation == (0, 3, 1, 2)


def test_a_copy_that_keeps_the_bytes_is_the_identity_whatever_its_spelling() -> None:
    content = document.load(sample("gate_legacy"))
    # Operator 4 looks up an image of one pixel, [1, 6, 1, 1]; as a copy to channels-first it has nothing to move.
    source, _, output, _ = calls(content)[4]["args"]
    plan(content)["operators"].append({"name": "dim_order_ops::_clone_dim_order", "overload": "out"})
    calls(content)[4].update(
        op_index=len(plan(content)["operators"]) - 1, args=[source, null(content), null(content), output, output]
    )
    document.value(content, output)["dim_order"] = [0, 1, 2, 3]
    program = read_program(document.dump(content))
    copy, product = program.operators[4:6]
    assert isinstance(copy, Copy)
    assert (copy.input, copy.output) == (source, output)
    assert (copy.input_shape, copy.permutation) == ((1, 6, 1, 1), (0, 1, 2, 3))
    # The product takes it all the same, as one factor per channel of a channels-last image.
    assert isinstance(product, Mul)
    assert (product.input_shape, product.other_shape) == ((1, 6, 5, 6), (1, 1, 1, 6))


def test_a_conversion_of_types_is_refused() -> None:
    content = lowered()
    argument(content, COPY, 3)["scalar_type"] = 3
    argument(content, COPY, 3)["allocation_info"] = {"memory_id": 1}
    argument(content, COPY, 0)["allocation_info"] = {"memory_id": 1, "memory_offset_low": 900}
    with pytest.raises(ProgramError, match="a conversion from int8 to int32 is not supported") as caught:
        read_program(document.dump(content))
    assert caught.value.where == PLACE.format("dim_order_ops::_clone_dim_order")


def test_a_view_that_would_reorder_is_refused() -> None:
    content = lowered()
    with_operator(content, "aten::view_copy", [null(content), calls(content)[COPY]["args"][-1]])
    with pytest.raises(ProgramError, match=r"a view of \[1, 8, 2, 2\] .* would need its elements reordered"):
        read_program(document.dump(content))


@pytest.mark.parametrize(
    "name", ["aten::view_copy", "aten::unsqueeze_copy", "aten::squeeze_copy", "aten::_unsafe_view"]
)
def test_views(name: str) -> None:
    # In the explicit layout the sizes of an image are in memory order, so it can be seen under other sizes.
    content = document.load(sample("convolutions_explicit"))
    source, output, _ = replace_transpose(content, name, results=2)
    document.value(content, output).update(sizes=[1, 4, 8], dim_order=[0, 1, 2])
    program = read_program(document.dump(content))
    view = next(operator for operator in program.operators if operator.output == output)
    assert view == View(index=TRANSPOSE, name=name, input=source, output=output)
    assert program.tensors[source].shape == (1, 2, 2, 8)
    assert program.tensors[output].shape == (1, 4, 8)


def test_a_view_of_unplanned_memory_lists_its_result_once() -> None:
    content = document.load(sample("convolutions_explicit"))
    source, _, flat = replace_transpose(content, "executorch_prim::et_view", results=1)
    document.value(content, flat)["allocation_info"] = None
    calls(content)[TRANSPOSE]["args"][-1] = flat
    program = read_program(document.dump(content))
    view = next(operator for operator in program.operators if operator.output == flat)
    assert view == View(index=TRANSPOSE, name="executorch_prim::et_view", input=source, output=flat)
    assert program.tensors[flat].shape == (1, 32)


def replace_transpose(content: Document, name: str, *, results: int) -> tuple[int, int, int]:
    """Makes operator 6 of `convolutions_explicit` a view; its input, its output, and what the next operator reads."""
    source, _, output, _ = calls(content)[TRANSPOSE]["args"]
    plan(content)["operators"].append({"name": name, "overload": "out"})
    calls(content)[TRANSPOSE].update(
        op_index=len(plan(content)["operators"]) - 1, args=[source, null(content), *[output] * results]
    )
    return source, output, calls(content)[TRANSPOSE + 1]["args"][0]


def test_inputs_and_outputs_need_no_memory_of_the_program() -> None:
    content = document.load(sample("linears_m33"))
    for side in ("inputs", "outputs"):
        document.value(content, plan(content)[side][0])["allocation_info"] = None
    program = read_program(document.dump(content))
    original = read_program(sample("linears_m33"))
    assert program.operators == original.operators
    assert program.tensors == original.tensors


@pytest.mark.parametrize(("name", "kind"), [("aten::maximum", Maximum), ("aten::minimum", Minimum)])
def test_extrema_that_a_lowering_left_portable(name: str, kind: type[Operator]) -> None:
    content = document.load(sample("extrema"))
    plan(content)["operators"].append({"name": name, "overload": "out"})
    calls(content)[2]["op_index"] = len(plan(content)["operators"]) - 1
    program = read_program(document.dump(content))
    assert type(program.operators[2]) is kind
    assert program.operators[2].name == name


def test_an_elided_view_at_an_output() -> None:
    content = document.load(sample("linears_m33"))
    output = document.value(content, plan(content)["outputs"][0])
    alias = add_value(content, "Tensor", {**output, "sizes": [6], "dim_order": [0]})
    plan(content)["outputs"][0] = alias
    program = read_program(document.dump(content))
    instructions = len(calls(content))
    assert program.outputs == (alias,)
    assert program.operators[-1] == View(
        index=instructions, name="aten::view_copy", input=calls(content)[-1]["args"][-1], output=alias
    )
