"""Pool sizes: equal, byte for byte, to what the real runtime takes."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.interpreter.conftest import GOLDEN, PROGRAMS, changed
from tests.program.document import add_value, value
from toolkit.board import load_board
from toolkit.building.tools import ARM_GCC, require
from toolkit.interpreter.contents import read_contents
from toolkit.interpreter.pools import COMPUTER, CORTEX_M, RESERVE, abi_of, method_bytes, pool_sizes

# Measured on a Cortex-M33 (executorch's main branch of 2026-08-22) by a runner that gave temporary memory no pool of
# its own: operators were looked up, and the temporary allocator's own record was kept, in the method's pool.
MEASURED = {"ds_cnn": 14142, "resnet8": 14082, "mbv1": 34926, "dae": 6718}
ALLOCATOR_RECORD = 28
PLANNED = {"ds_cnn": 16000, "resnet8": 49728, "mbv1": 138240, "dae": 3200}


def contents_of(name):
    path = PROGRAMS[name]
    return read_contents(path.read_bytes(), source=path.name)


OPERATOR_MISSING, MEMORY_ALLOCATION_FAILED = 0x14, 0x21


@pytest.fixture(scope="module")
def load(host_program):
    """Loads programs with the real runtime from pools of given sizes: (error, bytes for the method, most temporary)."""
    program = host_program(Path(__file__).with_name("measure_pools.cpp"))

    def run(pools):
        words = [str(word) for name, sizes in pools.items() for word in (PROGRAMS.get(name, name), *sizes)]
        done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
        lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
        return dict(zip(pools, lines, strict=True))

    return run


def test_on_this_computer_they_are_what_the_runtime_takes(load):
    """No operator is registered here: that is found out at the very end of loading, when everything is allocated."""
    assert len(PROGRAMS) >= 20
    pools = {name: pool_sizes(contents_of(name), COMPUTER) for name in PROGRAMS}
    exact = {name: method_bytes(contents_of(name), COMPUTER) for name in PROGRAMS}
    found = load({name: (pools[name].method, pools[name].temporary) for name in PROGRAMS})
    for name, (error, method, temporary) in found.items():
        assert error == OPERATOR_MISSING, name
        assert method == exact[name], name
        assert temporary <= pools[name].temporary
    for name, (error, _, _) in load({name: (exact[name] - 1, 1 << 12) for name in PROGRAMS}).items():
        assert error == MEMORY_ALLOCATION_FAILED, name


def test_with_less_temporary_memory_the_methods_pool_is_drained(load):
    contents = contents_of("ds_cnn")
    exact, temporary = method_bytes(contents, COMPUTER), pool_sizes(contents, COMPUTER).temporary
    found = load({"ds_cnn": (1 << 20, temporary - 16)})
    assert found["ds_cnn"][1] > exact + 1000


def test_values_of_every_kind_take_their_share(load, tmp_path):
    """No sample has these: they are added to one, and nothing uses them."""

    def change(document):
        value(document, 2)["shape_dynamism"] = 1  # a tensor in between
        add_value(document, "TensorList", {"items": [0, 1, 2]})
        add_value(document, "OptionalTensorList", {"items": [0, -1, 1]})
        add_value(document, "String", {"string_val": "sum"})
        add_value(document, "BoolList", {"items": [True, False]})
        add_value(document, "DoubleList", {"items": [0.5]})

    path = tmp_path / "model.pte"
    path.write_bytes(changed("extrema", change))
    contents = read_contents(path.read_bytes(), source="model.pte")
    assert [value.kind for value in contents.values[-5:]] == [
        "TensorList",
        "OptionalTensorList",
        "String",
        "BoolList",
        "DoubleList",
    ]
    assert sum(value.resizable for value in contents.values) == 1
    pools = pool_sizes(contents, COMPUTER)
    ((error, method, _),) = load({path: (pools.method, pools.temporary)}).values()
    assert error == OPERATOR_MISSING
    assert method == method_bytes(contents, COMPUTER)


def looked_up_in_the_method_pool(contents):
    """Bytes of the method's pool when every operator is looked up there: 12 per argument and 1 per axis of a tensor."""
    most = 0
    for chain in contents.chains:
        for call in chain:
            tensors = (contents.values[index] for index in call.arguments)
            most += 12 * len(call.arguments) + sum(value.length for value in tensors if value.kind == "Tensor")
    return most


@pytest.mark.parametrize("name", GOLDEN)
def test_on_a_cortex_m33_they_cover_what_was_measured(name):
    contents = contents_of(name)
    ours = method_bytes(contents, CORTEX_M) + looked_up_in_the_method_pool(contents) + ALLOCATOR_RECORD
    calls = sum(len(chain) for chain in contents.chains)
    # What follows a lookup begins at the next multiple of four, what follows the record at the next of eight; and that
    # branch took four bytes more than the release, which the reserve covers.
    assert 0 <= MEASURED[name] - ours <= 3 * calls + 4 + 4
    pools = pool_sizes(contents, CORTEX_M)
    assert pools.planned == (PLANNED[name],)
    assert pools.method + pools.temporary < MEASURED[name]
    assert 0 <= pools.method - method_bytes(contents, CORTEX_M) - RESERVE < 16
    assert pools.total == pools.planned[0] + pools.method + pools.temporary


def test_sizes_of_types_are_those_of_the_headers(header_flags, tmp_path):
    """The compiler for Cortex-M reads them off the public headers."""
    source = tmp_path / "sizes.cpp"
    source.write_text(
        "#include <executorch/runtime/executor/program.h>\n"
        "#include <executorch/runtime/executor/platform_memory_allocator.h>\n"
        "using namespace executorch::runtime;\n"
        "using Tensor = executorch::aten::Tensor;\n"
        "#define SIZE(name, ...) extern const unsigned name; const unsigned name = sizeof(__VA_ARGS__);\n"
        "SIZE(pointer, void*)\nSIZE(evalue, EValue)\nSIZE(tensor, etensor::TensorImpl)\n"
        "SIZE(boxed_list, BoxedEvalueList<int64_t>)\nSIZE(array_ref, executorch::aten::ArrayRef<bool>)\n"
        "SIZE(optional_tensor, std::optional<Tensor>)\nSIZE(tensor_meta, TensorMeta)\n"
        "SIZE(argument_list, InstructionArgs)\nSIZE(plain_tensor, Tensor)\n"
        "SIZE(allocator_record, internal::PlatformMemoryAllocator)\n"
    )
    board = load_board("qemu-m33")
    flags = [*board.flags, *header_flags, "-S", "-fno-exceptions", "-fno-rtti"]
    assembly = tmp_path / "sizes.s"
    subprocess.run([str(require(ARM_GCC)), *flags, str(source), "-o", str(assembly)], check=True)
    sizes = dict(re.findall(r"^(\w+):\n\s+\.word\s+(\d+)$", assembly.read_text(), re.MULTILINE))
    for field in ("pointer", "evalue", "tensor", "boxed_list", "array_ref", "optional_tensor", "tensor_meta"):
        assert int(sizes[field]) == getattr(CORTEX_M, field), field
    assert int(sizes["argument_list"]) == 2 * CORTEX_M.pointer
    assert int(sizes["plain_tensor"]) == CORTEX_M.pointer
    assert int(sizes["allocator_record"]) == ALLOCATOR_RECORD


def test_the_development_machine_has_an_abi_of_its_own():
    assert abi_of(load_board("host")) is COMPUTER
    assert abi_of(load_board("pico2")) is CORTEX_M
