"""The reader against executorch's own: the same tensors, arguments and signatures."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from toolkit.program import read_program
from toolkit.program.operators import BUILDERS
from toolkit.program.schema import FOREIGN_SCALAR_TYPES, SCALAR_TYPES, TABLES, Union
from toolkit.program.signatures import SIGNATURES, Kind
from toolkit.program.types import DType, Operator

from .samples import GOLDEN_NAMES, sample

Deserialize = Callable[[bytes], Any]

PROGRAMS = (*GOLDEN_NAMES, "convolutions_explicit", "pools_legacy", "linears_m55", "elementwise", "matmul")
SCALAR_NAMES = {"BYTE": DType.UINT8, "CHAR": DType.INT8, "INT": DType.INT32, "FLOAT": DType.FLOAT32}

# How the published declarations call the arguments that have other names here.
RENAMED = {
    "self": "input",
    "weights": "weight",
    "requantize_multipliers": "multiplier",
    "requantize_shifts": "shift",
    "self_zero_point": "input_zero_point",
    "self_multiplier": "input_multiplier",
    "self_shift": "input_shift",
    "kernel_size": "kernel",
    "perm": "permutation",
    "pre_pad": "before",
    "post_pad": "after",
    "pad_value": "value",
    "rhs_transposed": "rhs",
    "lhs_zero_point": "lhs_offset",
    "rhs_zero_point": "rhs_offset",
}
RENAMED_IN = {
    "quantized_linear": {"multiplier": "multipliers", "shift": "shifts"},
    "quantized_mul": {"output_multiplier": "multiplier", "output_shift": "shift"},
    "quantized_batch_matmul": {
        "output_zero_point": "output_offset",
        "output_multiplier": "multiplier",
        "output_shift": "shift",
    },
    "softmax": {"input_multiplier": "multiplier", "input_shift": "shift"},
}
TYPES = {
    "Tensor": {Kind.TENSOR, Kind.SCRATCH},
    "Tensor?": {Kind.OPTIONAL_TENSOR},
    "int": {Kind.INTEGER},
    "ScalarType": {Kind.INTEGER},
    "float": {Kind.REAL},
    "bool": {Kind.FLAG},
    "int[]": {Kind.INTEGERS},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_tensors_are_those_of_executorch(name: str, deserialize: Deserialize) -> None:
    program, theirs = read_program(sample(name)), deserialize(sample(name))
    values = theirs.execution_plan[0].values
    compared = 0
    for id_, tensor in program.tensors.items():
        if id_ >= len(values):
            assert name == "linears_m55"  # a bias recovered from a kernel sum
            continue
        stored = values[id_].val
        assert type(stored).__name__ == "Tensor"
        assert tensor.shape == tuple(stored.sizes)
        if tensor.constant is None or 1 not in tensor.shape:
            assert tensor.dim_order == tuple(stored.dim_order)
        assert tensor.dtype is SCALAR_NAMES[stored.scalar_type.name]
        if stored.allocation_info is None:
            expected = bytes(theirs.constant_buffer[stored.data_buffer_idx].storage)[: tensor.nbytes]
            assert tensor.constant == expected
        else:
            assert tensor.constant is None
        compared += 1
    assert compared > 3


@pytest.mark.parametrize("name", PROGRAMS)
def test_arguments_are_those_of_executorch(name: str, deserialize: Deserialize) -> None:
    program, plan = read_program(sample(name)), deserialize(sample(name)).execution_plan[0]
    assert program.inputs == tuple(plan.inputs)
    assert program.outputs == tuple(plan.outputs)
    assert program.name == plan.name
    written = {operator.output: operator for operator in program.operators}
    instructions = [instruction.instr_args for instruction in plan.chains[0].instructions]
    for index, kernel in enumerate(instructions):
        operator = written[kernel.args[-1]]
        assert operator.index == index
        assert operator.name == plan.operators[kernel.op_index].name
        _compare_arguments(operator, kernel.args, plan.values)
    assert len(instructions) == len({operator.index for operator in program.operators})


def _compare_arguments(operator: Operator, ids: list[int], values: Any) -> None:
    for (argument, kind), id_ in zip(SIGNATURES[operator.name].arguments, ids, strict=False):
        # Padding and permutations are stated otherwise here; the tests of the layouts look at them.
        if not hasattr(operator, argument) or argument in ("before", "after", "permutation"):
            continue
        found, stored = getattr(operator, argument), values[id_].val
        if kind is Kind.TENSOR:
            assert found == id_, argument
        elif kind is Kind.OPTIONAL_TENSOR:
            if type(stored).__name__ != "Null":
                assert found == id_, argument
        elif kind is Kind.INTEGERS:
            assert list(found) == [values[item].val.int_val for item in stored.items], argument
        else:
            assert found == (stored.double_val if kind is Kind.REAL else stored.int_val), argument


def installed(path: str) -> Path:
    """A file of the installed executorch, found without importing it."""
    spec = util.find_spec("executorch")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("executorch is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / path


def test_signatures_are_the_published_ones() -> None:
    text = installed("backends/cortex_m/ops/operators.yaml").read_text()
    declared = re.findall(r"func: (cortex_m::(\w+))\.out\((.*), \*, Tensor\(a!\) out\)", text)
    assert {name for name, _, _ in declared} == {name for name in SIGNATURES if name.startswith("cortex_m::")}
    for name, short, arguments in declared:
        base = short.removesuffix("_nhwc")
        expected = []
        for argument in arguments.split(", "):
            kind, word = argument.split(" ")
            word = RENAMED.get(word, word)
            expected.append((RENAMED_IN.get(base, {}).get(word, word), kind))
        signature = SIGNATURES[name]
        assert [argument for argument, _ in signature.arguments] == [word for word, _ in expected], name
        for (argument, kind), (_, declared_kind) in zip(signature.arguments, expected, strict=True):
            assert kind in TYPES[declared_kind], (name, argument)
        assert signature.results == 2


def test_every_signature_has_its_builder() -> None:
    assert set(BUILDERS) == set(SIGNATURES)


def test_tables_are_the_published_ones() -> None:
    text = re.sub(r"//.*", "", installed("exir/_serialize/program.fbs").read_text())
    tables = dict(re.findall(r"table (\w+) \{(.*?)\}", text, flags=re.DOTALL))
    unions = {
        name: tuple(re.findall(r"\w+", body)) for name, body in re.findall(r"union (\w+) \{(.*?)\}", text, re.DOTALL)
    }
    for name, fields in TABLES.items():
        declared = re.findall(r"(\w+):\s*([\[\]\w]+)", tables[name].replace("(force_align:", "("))
        if name == "BackendDelegate":
            assert declared[0][0] == "id"  # the rest is not looked at
            continue
        assert [word for word, _ in declared] == list(fields), name
        for word, kind in declared:
            if kind in unions:
                field = fields[word]
                assert isinstance(field, Union)
                assert field.members == unions[kind]


def test_element_types_are_the_published_ones() -> None:
    text = re.sub(r"//.*", "", installed("exir/_serialize/scalar_type.fbs").read_text())
    declared = {int(number): name.lower() for name, number in re.findall(r"(\w+) = (\d+)", text)}
    assert set(declared) == {*SCALAR_TYPES, *FOREIGN_SCALAR_TYPES}
    names = {"byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64", "float": "float32"}
    for number, dtype in SCALAR_TYPES.items():
        assert names.get(declared[number], declared[number]) == dtype.name.lower()
    assert FOREIGN_SCALAR_TYPES[29] == declared[29]
