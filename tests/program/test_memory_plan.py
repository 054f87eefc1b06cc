"""Following a program's memory plan: who wrote the bytes that an operator reads."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit.program import read_program
from toolkit.program.types import View

from . import document
from .changes import Change, changed, check, refusal
from .document import Document, add_value, argument, calls, plan, value

# In `extrema` tensors are 35 bytes: 2 at 288 and 8 at 144 are read by operators 2 and 3, whose results
# are 14 at 48 and 15 at 0; operator 4 reads both and writes 27 at 144.


def moved(index: int, offset: int, memory: int = 1) -> Change:
    def change(content: Document) -> None:
        value(content, index)["allocation_info"] = {"memory_id": memory, "memory_offset_low": offset}

    return change


@pytest.mark.parametrize(
    ("change", "what", "where"),
    [
        (moved(15, 48), "tensor 14 is read after operator 3 has overwritten its bytes", "operator 4"),
        (moved(15, 14), "tensor 14 is read after operator 3 has overwritten its bytes", "operator 4"),
        (moved(15, 13), None, ""),
        (moved(15, 300), "tensor 15 is written over tensor 2 while that is read", "operator 3"),
        (moved(15, 288), "tensor 15 is written over tensor 2 while that is read", "operator 3"),
        (
            lambda d: calls(d)[4]["args"].__setitem__(0, 8) or moved(8, 100, 0)(d),
            "of a memory of 0 bytes",
            "value 8",
        ),
    ],
)
def test_memory_conflicts(change: Change, what: str | None, where: str) -> None:
    data = changed("extrema", change)
    if what is None:
        assert read_program(data).operators
        return
    error = refusal(data)
    assert what in error.what
    assert error.where.startswith(f"model.pte, {where}")


def alias(**fields: Any) -> Change:
    """Lets operator 4 read a tensor that no operator writes, in place of tensor 14 (35 bytes at 48)."""

    def change(content: Document) -> None:
        slot = {"memory_id": 1, "memory_offset_low": 48}
        table = {"scalar_type": 1, "sizes": [1, 5, 7], "dim_order": [0, 1, 2], "allocation_info": slot, **fields}
        calls(content)[4]["args"][0] = add_value(content, "Tensor", table)

    return change


def test_an_alias_becomes_a_view() -> None:
    program = read_program(changed("extrema", alias()))
    assert [operator for operator in program.operators if isinstance(operator, View)] == [
        View(index=4, name="aten::view_copy", input=14, output=34)
    ]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (
            {"allocation_info": {"memory_id": 1, "memory_offset_low": 90}},
            "tensor 34 is read, and no operator has written it",
        ),
        ({"allocation_info": None}, "tensor 34 is read, and no operator has written it"),
        (
            {"allocation_info": {"memory_id": 1, "memory_offset_low": 49}},
            "tensor 34 is read, and its bytes are only partly those of tensor 14",
        ),
        ({"dim_order": [0, 2, 1]}, "different memory orders"),
    ],
)
def test_aliases_of_anything_else(fields: dict[str, Any], what: str) -> None:
    check("extrema", alias(**fields), what, "model.pte, operator 4 (cortex_m::minimum)")


def test_an_alias_that_would_reorder_elements() -> None:
    # Without the copy to channels-first, the linear layer would read the image in the wrong order.
    def change(content: Document) -> None:
        position = document.operator_names(content).index("dim_order_ops::_clone_dim_order")
        source = calls(content)[position]["args"][0]
        reader = argument(content, position + 1, 0)
        reader["allocation_info"] = value(content, source)["allocation_info"]
        del plan(content)["chains"][0]["instructions"][position]

    error = refusal(changed("convolutions_legacy", change))
    assert "takes the bytes of tensor 73 [1, 8, 2, 2] in the memory order [0, 2, 3, 1]" in error.what
    assert error.where == "model.pte, operator 5 (cortex_m::quantized_linear)"


def test_writing_where_something_is_already() -> None:
    def twice(content: Document) -> None:
        calls(content)[3]["args"][-2:] = calls(content)[2]["args"][-2:]

    def to_an_input(content: Document) -> None:
        plan(content)["inputs"].append(calls(content)[2]["args"][-1])

    check(
        "extrema",
        twice,
        "tensor 14 is written, and already has a value",
        "model.pte, operator 3 (cortex_m::quantized_add)",
    )
    check(
        "extrema",
        to_an_input,
        "tensor 1 is read after input 2 has overwritten",
        "model.pte, operator 1 (cortex_m::quantize_per_tensor)",
    )


def in_place(name: str, second: str, *sizes: int) -> Change:
    """Puts an operator into `extrema` that takes tensor 14, and writes to the same bytes under other sizes."""

    def change(content: Document) -> None:
        plan(content)["operators"].append({"name": name, "overload": "out"})
        source = value(content, 14)
        alias = add_value(content, "Tensor", {**source, "sizes": list(sizes)})
        operand = 14 if second == "source" else add_value(content, "Null", {})
        args = [14, operand, alias, alias]
        call = {"op_index": len(plan(content)["operators"]) - 1, "args": args}
        plan(content)["chains"][0]["instructions"].insert(4, {"instr_args": ("KernelCall", call)})

    return change


def test_a_view_in_place_leaves_what_it_sees_intact() -> None:
    program = read_program(changed("extrema", in_place("aten::view_copy", "nothing", 5, 1, 7)))
    view, reader = program.operators[4:6]
    assert view == View(index=4, name="aten::view_copy", input=14, output=34)
    assert (reader.index, reader.inputs) == (5, (14, 15))


def test_no_other_operator_may_write_over_what_it_reads() -> None:
    where = "model.pte, operator 4 (cortex_m::maximum)"
    change = in_place("cortex_m::maximum", "source", 1, 5, 7)
    check("extrema", change, "tensor 34 is written over tensor 14 while that is read", where)


def test_scratch_that_overlaps_an_operand() -> None:
    # Operator 3 of `matmul` is the product; its scratch is its eighth argument.
    def change(content: Document) -> None:
        argument(content, 3, 7).update(sizes=[8], allocation_info=argument(content, 3, 0)["allocation_info"])

    where = "model.pte, operator 3 (cortex_m::quantized_batch_matmul)"
    check("matmul", change, "tensor 19 is written over tensor 2 while that is read", where)
