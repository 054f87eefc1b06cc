"""Mutated and hostile files: refused, or consistent; in time, and within memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

import pytest

from toolkit.errors import ProgramError
from toolkit.program import read_program

from . import document, mutate
from .document import Document, add_value, calls, plan
from .samples import sample

Result = TypeVar("Result")

MUTANTS = 500
"""Of each sample; `python -m tests.program.mutate` reads many more."""


def alone(function: Callable[..., Result], *arguments: object) -> Result:
    """Calls a function in a process of its own: memory is measured, and other tests have used much."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


@pytest.mark.parametrize("name", mutate.SAMPLES)
def test_mutants_are_refused_or_consistent(name: str) -> None:
    report = alone(mutate.run, name, MUTANTS, 1)
    assert sum(report.counts.values()) == MUTANTS
    # Both endings occur, so the mutants are neither too gentle nor too rough to test anything.
    assert report.counts["refused"] > MUTANTS / 2
    assert report.counts["accepted"] + report.counts["accepted and run"] > MUTANTS / 50


def refused_in_time(data: bytes) -> str:
    start = time.process_time()
    with pytest.raises(ProgramError) as caught:
        read_program(data)
    assert time.process_time() - start < mutate.LONGEST_S
    return caught.value.what


def refused_in_memory(data: bytes) -> tuple[str, int]:
    return refused_in_time(data), mutate.peak_memory()


def test_lists_that_share_their_elements_do_not_multiply_the_work() -> None:
    content = document.load(sample("matmul"))
    shared: Document = {"items": [add_value(content, "Int", {"int_val": 1})] * 20_000}
    source, _, result, _ = calls(content)[2]["args"]
    plan(content)["chains"][0]["instructions"] = [
        {
            "instr_args": (
                "KernelCall",
                {
                    "op_index": calls(content)[2]["op_index"],
                    "args": [source, add_value(content, "IntList", shared), result, result],
                },
            )
        }
        for _ in range(5000)
    ]
    assert "refers to the same parts again and again" in refused_in_time(document.dump(content))


def test_a_file_cannot_be_decoded_many_times_over() -> None:
    content = document.load(sample("extrema"))
    shared = {"op_index": 0, "args": [0] * 5000}
    plan(content)["chains"][0]["instructions"] = [{"instr_args": ("KernelCall", shared)}] * 5000
    assert "refers to the same parts again and again" in refused_in_time(document.dump(content))


def test_constants_cannot_be_copied_many_times_over() -> None:
    content = document.load(sample("extrema"))
    content["constant_buffer"] = [{"storage": b""}, {"storage": bytes(2**20)}]
    # Operator 2 is a maximum; its operands become constants that all begin at one place and differ in size.
    for size in range(2**20 - 64, 2**20):
        for position in (0, 1):
            table = {"scalar_type": 1, "sizes": [size - position], "dim_order": [0], "data_buffer_idx": 1}
            calls(content)[2]["args"][position] = add_value(content, "Tensor", table)
        plan(content)["chains"][0]["instructions"].append({"instr_args": ("KernelCall", {**calls(content)[2]})})
        calls(content)[-1]["args"] = list(calls(content)[2]["args"])
    del plan(content)["chains"][0]["instructions"][2]
    what, peak = alone(refused_in_memory, document.dump(content))
    assert what == "the constants overlap: together they are larger than the file"
    assert peak < mutate.LARGEST_BYTES


def test_a_table_that_is_its_own_part_is_no_loop() -> None:
    data = bytearray(sample("matmul"))
    root = int.from_bytes(data[:4], "little")
    # Every reference of the root table leads back to the root table.
    for offset in range(root + 4, root + 28, 4):
        data[offset : offset + 4] = ((root - offset) % 2**32).to_bytes(4, "little")
    assert "lies outside the file" in refused_in_time(bytes(data))
