"""What the interpreter needs of a program; what it has no use for is refused with its place."""

import pytest

from tests.interpreter.conftest import PROGRAMS, changed
from tests.program.document import add_value, plan, value
from toolkit.errors import ProgramError
from toolkit.interpreter.contents import read_contents
from toolkit.program import read_program


def refused(change):
    with pytest.raises(ProgramError) as caught:
        read_contents(changed("extrema", change), source="model.pte")
    return caught.value


@pytest.mark.parametrize("name", PROGRAMS)
def test_inputs_and_outputs_are_those_of_the_program(name):
    data = PROGRAMS[name].read_bytes()
    contents = read_contents(data, source=name)
    try:
        program = read_program(data, source=name)
    except ProgramError:
        assert name == "convolutions_in_float"  # which only the interpreter can run
        assert "aten::convolution.out" in contents.operators
        return
    assert contents.sha256 == program.sha256
    for found, ids in ((contents.inputs, program.inputs), (contents.outputs, program.outputs)):
        tensors = [program.tensors[id] for id in ids]
        assert [tensor.shape for tensor in found] == [tensor.shape for tensor in tensors]
        assert [tensor.dtype for tensor in found] == [tensor.dtype for tensor in tensors]
        assert [tensor.physical_shape for tensor in found] == [tensor.physical_shape for tensor in tensors]
        for tensor in found:
            assert 0 <= tensor.offset <= contents.memories[tensor.memory] - tensor.nbytes
    assert {name.rsplit(".", 1)[0] for name in contents.operators} >= {
        op.name for op in program.operators if op.name.startswith("cortex_m::")
    }


def test_sizes_in_memory_are_those_of_the_dim_order():
    (image,) = read_contents(PROGRAMS["ds_cnn"].read_bytes(), source="ds_cnn").inputs
    assert image.shape == (1, 1, 49, 10)
    assert image.dim_order == (0, 2, 1, 3)
    assert image.physical_shape == (1, 49, 1, 10)


def test_a_place_that_the_exporter_did_not_plan():
    def change(document):
        for side in ("inputs", "outputs"):
            value(document, plan(document)[side][0])["allocation_info"] = None

    contents = read_contents(changed("extrema", change), source="model.pte")
    assert contents.inputs[0].memory is None
    assert contents.outputs[0].memory is None


def test_constants_inside_the_program():
    """Which the runtime of this release does not open."""
    data = changed("extrema", lambda _: None, in_segment=False)
    with pytest.raises(ProgramError, match="constants lie inside the program, as old exporters put them"):
        read_contents(data, source="model.pte")


def test_delegates():
    error = refused(lambda document: plan(document).update(delegates=[{"id": "EthosUBackend"}]))
    assert "delegated to a backend" in error.what
    assert "its backend alone" in error.hint


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ({"shape_dynamism": 1}, "its sizes can change"),
        ({"shape_dynamism": 2}, "the tensor has sizes without a bound"),
        ({"scalar_type": 5}, "its element type has no place in the protocol"),
        ({"sizes": [1, 0, 7]}, "it is empty"),
        ({"dim_order": [0, 0]}, "make no sense"),
        ({"allocation_info": {"memory_id": 9}}, "it lies outside the program's memories"),
        ({"extra_tensor_info": {"location": 1}}, "the tensor's data is kept outside the program"),
        ({"extra_tensor_info": {"device_type": 1}}, "the tensor is placed on an accelerator"),
    ],
)
def test_inputs_that_a_runner_cannot_have(field, what):
    error = refused(lambda document: value(document, plan(document)["inputs"][0]).update(field))
    assert what in error.what
    assert error.where.startswith("model.pte, ")


def test_an_input_that_is_no_tensor():
    def change(document):
        plan(document)["inputs"][0] = add_value(document, "Int", {"int_val": 3})

    assert refused(change).what == "it is not a tensor"


def test_an_output_that_is_a_constant():
    def change(document):
        tensor = value(document, plan(document)["outputs"][0])
        tensor.update(allocation_info=None, data_buffer_idx=1)

    assert "it is a constant" in refused(change).what


@pytest.mark.parametrize("name", ["not a name", "zu_groß", "1st"])
def test_methods_that_c_cannot_name(name):
    assert "cannot be named in C" in refused(lambda document: plan(document).update(name=name)).what


@pytest.mark.parametrize("size", [0, 7, 40, 400, 2000])
def test_a_program_that_was_cut_short(size):
    data = PROGRAMS["dae"].read_bytes()[:size]
    with pytest.raises(ProgramError):
        read_contents(data, source="dae.pte")
