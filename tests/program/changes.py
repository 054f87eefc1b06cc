"""Changing a sample program, and reading what becomes of it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from toolkit.errors import ProgramError
from toolkit.program import read_program

from . import document
from .document import Document, add_value, argument, calls, plan
from .samples import sample

Change = Callable[[Document], Any]


def refusal(data: bytes) -> ProgramError:
    """The error that reading ends with."""
    with pytest.raises(ProgramError) as caught:
        read_program(data, source="model.pte")
    return caught.value


def changed(name: str, change: Change) -> bytes:
    """The bytes of a sample after a change."""
    content = document.load(sample(name))
    change(content)
    return document.dump(content)


def check(name: str, change: Change, what: str, where: str) -> ProgramError:
    """The error that a changed sample ends with, after comparing what it says and where."""
    error = refusal(changed(name, change))
    assert what in error.what
    assert error.where == where
    return error


def rename(index: int, name: str) -> Change:
    """Gives a call an operator of its own, by name."""

    def change(content: Document) -> None:
        plan(content)["operators"].append({"name": name, "overload": "out"})
        calls(content)[index]["op_index"] = len(plan(content)["operators"]) - 1

    return change


def replaced(call: int, position: int, kind: str, **content: Any) -> Change:
    """Gives a call a value of its own as an argument."""

    def change(found: Document) -> None:
        calls(found)[call]["args"][position] = add_value(found, kind, content)

    return change


def integers(call: int, position: int, *items: int) -> Change:
    """Gives a call an integer list of its own as an argument."""

    def change(found: Document) -> None:
        indices = [add_value(found, "Int", {"int_val": item}) for item in items]
        calls(found)[call]["args"][position] = add_value(found, "IntList", {"items": indices})

    return change


def reshaped(call: int, position: int, *sizes: int, dim_order: list[int] | None = None) -> Change:
    def change(found: Document) -> None:
        tensor = argument(found, call, position)
        tensor.update(sizes=list(sizes), dim_order=dim_order or list(range(len(sizes))))

    return change


def overwritten(call: int, position: int, index: int, number: int) -> Change:
    """Replaces one 32-bit element of a constant argument."""

    def change(found: Document) -> None:
        buffer = found["constant_buffer"][argument(found, call, position)["data_buffer_idx"]]
        stored = bytearray(buffer["storage"])
        struct.pack_into("<i", stored, 4 * index, number)
        buffer["storage"] = bytes(stored)

    return change
