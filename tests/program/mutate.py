"""Reads mutated programs and checks that nothing but a ProgramError or a consistent Program comes of it.

    python -m tests.program.mutate --count 20000

reads that many mutants of each of the samples (the golden models and two small ones in the explicit layout) and prints
how they ended. It stops at the first that ends otherwise, takes more than a second of processor time, or lets the
process grow beyond 500 MB. `--sample NAME` restricts it to one, `--seed` gives other mutants. Small mutants that are
accepted are also run by the reference, which may not fail on an accepted program.
"""

from __future__ import annotations

import argparse
import copy
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.errors import ProgramError
from toolkit.program import read_program
from toolkit.program.types import Program
from toolkit.reference import execute

from . import document
from .consistency import assert_consistent
from .samples import GOLDEN_NAMES, sample

SAMPLES = (*GOLDEN_NAMES, "convolutions_explicit", "joining_explicit")
LONGEST_S = 1.0
LARGEST_BYTES = 500 * 2**20
_RUN_BYTES, _RUN_MACS = 2**18, 10**6
"""A mutant is run when its tensors and its work are below this."""

Mutation = Callable[[bytes, np.random.Generator], bytes]
_WORDS = (0, 1, 2, 3, 4, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
_NUMBERS = (-(2**63), -(2**31), -129, -128, -1, 0, 1, 2, 3, 31, 32, 127, 128, 129, 255, 2**31 - 1, 2**31, 2**63 - 1)
_SIZES = (-(2**31), -1, 0, 1, 2, 3, 7, 64, 2**16, 2**31 - 1)


@dataclass
class Report:
    """How the mutants of a sample ended."""

    counts: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0
    seconds: float = 0.0


def flip_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    mutant = bytearray(data)
    for _ in range(int(rng.integers(1, 17))):
        mutant[_structure_offset(data, rng)] = int(rng.integers(256))
    return bytes(mutant)


def flip_bit(data: bytes, rng: np.random.Generator) -> bytes:
    mutant = bytearray(data)
    mutant[_structure_offset(data, rng)] ^= 1 << int(rng.integers(8))
    return bytes(mutant)


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def exchange_words(data: bytes, rng: np.random.Generator) -> bytes:
    """Exchanges two aligned words, near each other or far apart."""
    first = _structure_offset(data, rng) & ~3
    near = first + 4 * int(rng.integers(-8, 9))
    second = near if rng.random() < 0.5 else _structure_offset(data, rng) & ~3
    second = min(max(second, 0), len(data) - 4 & ~3)
    mutant = bytearray(data)
    mutant[first : first + 4], mutant[second : second + 4] = data[second : second + 4], data[first : first + 4]
    return bytes(mutant)


def replace_word(data: bytes, rng: np.random.Generator) -> bytes:
    """Overwrites an aligned word with a boundary value, a small reference, or one that leads back to it."""
    offset = _structure_offset(data, rng) & ~3
    word = (*_WORDS, len(data) - offset, len(data), offset, int(rng.integers(2**32)))[int(rng.integers(20))]
    mutant = bytearray(data)
    mutant[offset : offset + 4] = (word % 2**32).to_bytes(4, "little")
    return bytes(mutant[: len(data)])


def copy_block(data: bytes, rng: np.random.Generator) -> bytes:
    size = int(rng.integers(1, 256))
    source, target = _structure_offset(data, rng), _structure_offset(data, rng)
    mutant = bytearray(data)
    block = data[source : source + size]
    mutant[target : target + len(block)] = block
    return bytes(mutant[: len(data)])


def insert_or_delete(data: bytes, rng: np.random.Generator) -> bytes:
    offset, size = _structure_offset(data, rng), int(rng.integers(1, 32))
    if rng.random() < 0.5:
        return data[:offset] + data[offset + size :]
    return data[:offset] + rng.bytes(size) + data[offset:]


BYTE_MUTATIONS: tuple[Mutation, ...] = (
    flip_bytes,
    flip_bit,
    truncate,
    exchange_words,
    replace_word,
    copy_block,
    insert_or_delete,
)


def mutate_document(original: document.Document, rng: np.random.Generator) -> bytes:
    """A well-formed file whose meaning has been changed in one to three places."""
    mutant = {**original, "execution_plan": copy.deepcopy(original["execution_plan"])}
    plan = document.plan(mutant)
    for _ in range(int(rng.integers(1, 4))):
        change = _CHANGES[int(rng.integers(len(_CHANGES)))]
        change(plan, rng)
    return document.dump(mutant, in_segment=bool(rng.integers(2)))


def _pick(items: Any, rng: np.random.Generator) -> Any:
    return items[int(rng.integers(len(items)))]


def _calls(plan: document.Document) -> list[document.Document]:
    return [instruction["instr_args"][1] for instruction in plan["chains"][0]["instructions"]]


def _exchange_arguments(plan: document.Document, rng: np.random.Generator) -> None:
    args = _pick(_calls(plan), rng)["args"]
    first, second = (int(i) for i in rng.integers(len(args), size=2))
    args[first], args[second] = args[second], args[first]


def _redirect_argument(plan: document.Document, rng: np.random.Generator) -> None:
    args = _pick(_calls(plan), rng)["args"]
    args[int(rng.integers(len(args)))] = int(rng.integers(-1, len(plan["values"]) + 1))


def _exchange_operators(plan: document.Document, rng: np.random.Generator) -> None:
    _pick(_calls(plan), rng)["op_index"] = int(rng.integers(-1, len(plan["operators"]) + 1))


def _exchange_instructions(plan: document.Document, rng: np.random.Generator) -> None:
    instructions = plan["chains"][0]["instructions"]
    first, second = (int(i) for i in rng.integers(len(instructions), size=2))
    instructions[first], instructions[second] = instructions[second], instructions[first]


def _exchange_values(plan: document.Document, rng: np.random.Generator) -> None:
    values = plan["values"]
    first, second = (int(i) for i in rng.integers(len(values), size=2))
    values[first], values[second] = values[second], values[first]


def _change_number(plan: document.Document, rng: np.random.Generator) -> None:
    numbers = [entry["val"][1] for entry in plan["values"] if entry["val"][0] == "Int"]
    if numbers:
        _pick(numbers, rng)["int_val"] = _pick(_NUMBERS, rng)


def _change_scale(plan: document.Document, rng: np.random.Generator) -> None:
    numbers = [entry["val"][1] for entry in plan["values"] if entry["val"][0] == "Double"]
    if numbers:
        _pick(numbers, rng)["double_val"] = _pick((0.0, -1.0, 1e-300, 1e300, np.nan, np.inf, -np.inf, 1e-38), rng)


def _change_tensor(plan: document.Document, rng: np.random.Generator) -> None:
    tensor = _pick([entry["val"][1] for entry in plan["values"] if entry["val"][0] == "Tensor"], rng)
    kind = int(rng.integers(6))
    if kind == 0 and tensor["sizes"]:
        tensor["sizes"][int(rng.integers(len(tensor["sizes"])))] = _pick(_SIZES, rng)
    elif kind == 1:
        tensor["sizes"] = [int(size) for size in rng.permutation(tensor["sizes"])]
    elif kind == 2:
        tensor["dim_order"] = [int(axis) for axis in rng.permutation(tensor["dim_order"])]
    elif kind == 3:
        tensor["scalar_type"] = int(rng.integers(-1, 12))
    elif kind == 4:
        tensor["data_buffer_idx"] = int(rng.integers(60))
    elif "allocation_info" in tensor:
        tensor["allocation_info"]["memory_offset_low"] = int(rng.integers(2**15))


_CHANGES = (
    _exchange_arguments,
    _redirect_argument,
    _exchange_operators,
    _exchange_instructions,
    _exchange_values,
    _change_number,
    _change_number,
    _change_scale,
    _change_tensor,
    _change_tensor,
)


def _structure_offset(data: bytes, rng: np.random.Generator) -> int:
    """A byte to change; nine times of ten outside the constants, which any value suits."""
    end = len(data)
    if data[8:12] == b"eh00" and rng.random() < 0.9:
        end = min(end, int.from_bytes(data[16:24], "little"))
    return int(rng.integers(max(end, 1)))


def read_mutant(data: bytes) -> tuple[str, float]:
    """How reading ended, and its processor time in seconds; raises AssertionError when that is not allowed."""
    start = time.process_time()
    result = _read(data)
    took = time.process_time() - start
    assert took < LONGEST_S, f"{took:.2f} s"
    if isinstance(result, ProgramError):
        assert result.where.startswith("mutant.pte"), result
        assert result.what, result
        return "refused", took
    assert_consistent(result)
    size = sum(tensor.nbytes for tensor in result.tensors.values())
    if size >= _RUN_BYTES or result.macs >= _RUN_MACS:
        return "accepted", took
    inputs = [result.tensors[id_] for id_ in result.inputs]
    execute(result, [np.zeros(tensor.shape, tensor.dtype.value) for tensor in inputs])
    return "accepted and run", took


def _read(data: bytes) -> Program | ProgramError:
    try:
        return read_program(data, source="mutant.pte")
    except ProgramError as error:
        return error


def run(name: str, count: int, seed: int) -> Report:
    """Reads `count` mutants of a sample; a quarter of them keep the file well-formed."""
    rng = np.random.default_rng([seed, SAMPLES.index(name)])
    data = sample(name)
    original = document.load(data)
    report = Report()
    begin = time.perf_counter()
    for number in range(count):
        mutant = mutate_document(original, rng) if number % 4 == 3 else _pick(BYTE_MUTATIONS, rng)(data, rng)
        try:
            ending, took = read_mutant(mutant)
        except Exception as error:
            raise AssertionError(f"mutant {number} of {name}, seed {seed}") from error
        report.counts[ending] += 1
        report.longest_s = max(report.longest_s, took)
    report.seconds = time.perf_counter() - begin
    peak = peak_memory()
    assert peak < LARGEST_BYTES, f"{peak} bytes"
    return report


def peak_memory() -> int:
    """The most memory that this process has ever held, in bytes."""
    if sys.platform == "linux":
        # Not ru_maxrss, which a new process on Linux takes over from the one that started it.
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20000, help="mutants of each sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", choices=SAMPLES, action="append", help="only this one; may be repeated")
    options = parser.parse_args()
    for name in options.sample or SAMPLES:
        report = run(name, options.count, options.seed)
        endings = ", ".join(f"{count} {ending}" for ending, count in sorted(report.counts.items()))
        print(
            f"{name}: {endings}; longest {report.longest_s * 1000:.1f} ms, {report.seconds:.0f} s in all, "
            f"peak memory {peak_memory() / 2**20:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
