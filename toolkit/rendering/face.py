"""What a sketch sees of a model: its inputs and outputs, as float or as the quantised numbers themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np

from toolkit.errors import ModelError
from toolkit.planning.types import Plan
from toolkit.program.types import Dequantize, DType, Quantize
from toolkit.rendering.calls import c_float
from toolkit.rendering.renderer import C_TYPES


class Value(Protocol):
    """What a program takes or gives: element type, elements, and sizes in the order of memory."""

    @property
    def dtype(self) -> DType: ...
    @property
    def size(self) -> int: ...
    @property
    def physical_shape(self) -> tuple[int, ...]: ...


class Numbers(Enum):
    """What a sketch writes into the inputs and reads from the outputs."""

    PROGRAM = "program"  # whatever the program takes and gives
    FLOAT = "float"
    INT8 = "int8"


@dataclass(frozen=True, slots=True)
class FaceTensor:
    """An input or output, in the words of the templates.

    Attributes:
        name: member of `model`.
        struct: its C++ type.
        title: for people: name, type and shape in memory.
        c_type: of its elements.
        size: elements.
        writable: whether it is an input.
        place: C++ expression for the address of its first element.
        scale: C literal, empty for elements that are the values themselves.
        zero_point: 0 for those.
        quantise: arguments of `deploy_quantize_f32_s8` behind the size, as the program has them; empty for outputs.
    """

    name: str
    struct: str
    title: str
    c_type: str
    size: int
    writable: bool
    place: str
    scale: str = ""
    zero_point: int = 0
    quantise: str = ""


@dataclass(frozen=True, slots=True)
class Face:
    """Inputs, outputs, positions of the steps that a run leaves out, and C strings that name the classes."""

    inputs: tuple[FaceTensor, ...]
    outputs: tuple[FaceTensor, ...]
    skipped: tuple[int, ...]
    labels: tuple[str, ...]


def face_of(plan: Plan, numbers: Numbers, labels: Sequence[str]) -> Face:
    """The face of a plan.

    Raises:
        ModelError: the model does not have the numbers that are asked for.
    """
    inputs, outputs = [], []
    skipped: list[int] = []
    for index, id in enumerate(plan.inputs):
        name = _name("input", index, len(plan.inputs))
        step = _only_reader(plan, id) if numbers is Numbers.INT8 else None
        inputs.append(_input(plan, id, name, index, step))
        skipped += [] if step is None else [step]
    for index, id in enumerate(plan.outputs):
        name = _name("output", index, len(plan.outputs))
        step = _writer(plan, id) if numbers is Numbers.INT8 else None
        outputs.append(_output(plan, id, name, index, step))
        skipped += [] if step is None else [step]
    return _face(plan.model, inputs, outputs, skipped, numbers, labels)


def plain_face(
    model: str, inputs: Sequence[Value], outputs: Sequence[Value], numbers: Numbers, labels: Sequence[str]
) -> Face:
    """The face of a program that is run as a whole: its inputs and outputs as they are.

    Raises:
        ModelError: the model does not have the numbers that are asked for.
    """
    return _face(
        model,
        [_plain_input(value, _name("input", index, len(inputs)), index) for index, value in enumerate(inputs)],
        [_plain_output(value, _name("output", index, len(outputs)), index) for index, value in enumerate(outputs)],
        [],
        numbers,
        labels,
    )


def _name(side: str, index: int, count: int) -> str:
    return side if count == 1 else f"{side}{index}"


def _face(
    model: str,
    inputs: Sequence[FaceTensor],
    outputs: Sequence[FaceTensor],
    skipped: Sequence[int],
    numbers: Numbers,
    labels: Sequence[str],
) -> Face:
    wanted = {Numbers.FLOAT: "float", Numbers.INT8: "int8_t"}.get(numbers)
    for tensor in inputs:
        if wanted is not None and tensor.c_type != wanted:
            raise ModelError(
                f"`{tensor.name}` cannot be {wanted}: the program takes {tensor.c_type}",
                where=model,
                hint="Leave --input-type away, or export the model with inputs of that type.",
            )
    names = tuple(c_string(label) for label in labels)
    fits = len(outputs) == 1 and len(names) == outputs[0].size
    return Face(tuple(inputs), tuple(outputs), tuple(sorted(skipped)), names if fits else ())


def _only_reader(plan: Plan, id: int) -> int | None:
    """Position of the step that quantises an input, when nothing else reads that."""
    readers = [position for position, step in enumerate(plan.steps) if id in step.operator.inputs]
    if len(readers) == 1 and isinstance(plan.steps[readers[0]].operator, Quantize):
        return readers[0]
    return None


def _writer(plan: Plan, id: int) -> int | None:
    """Position of the step that makes an output float, when nothing else reads that and the source is a step's."""
    for position, step in enumerate(plan.steps):
        op = step.operator
        if op.output == id and isinstance(op, Dequantize):
            read_again = any(id in other.operator.inputs for other in plan.steps)
            made = any(other.operator.output == op.input for other in plan.steps)
            return position if made and not read_again else None
    return None


def _input(plan: Plan, id: int, name: str, index: int, step: int | None) -> FaceTensor:
    """The input itself; or, given the step that quantises it, what that step writes."""
    if step is None:
        return _plain_input(plan.tensor(id), name, index)
    op = plan.steps[step].operator
    assert isinstance(op, Quantize)
    inverse = c_float(float(np.float32(1.0 / op.scale)))
    return replace(
        _face_tensor(
            plan.tensor(op.output),
            name,
            f"static_cast<int8_t*>(const_cast<void*>(model_layers[{step}].result))",
            writable=True,
        ),
        scale=c_float(op.scale),
        zero_point=op.zero_point,
        quantise=f"{inverse}, {op.zero_point}, {op.quant_min}, {op.quant_max}",
    )


def _output(plan: Plan, id: int, name: str, index: int, step: int | None) -> FaceTensor:
    """The output itself; or, given the step that makes it float, what that step reads."""
    if step is None:
        return _plain_output(plan.tensor(id), name, index)
    op = plan.steps[step].operator
    assert isinstance(op, Dequantize)
    made = next(position for position, other in enumerate(plan.steps) if other.operator.output == op.input)
    place = f"static_cast<const int8_t*>(model_layers[{made}].result)"
    quantised = _face_tensor(plan.tensor(op.input), name, place, writable=False)
    return replace(quantised, scale=c_float(op.scale), zero_point=op.zero_point)


def _plain_input(value: Value, name: str, index: int) -> FaceTensor:
    place = f"static_cast<{C_TYPES[value.dtype]}*>(model_input({index}))"
    return _face_tensor(value, name, place, writable=True)


def _plain_output(value: Value, name: str, index: int) -> FaceTensor:
    place = f"static_cast<const {C_TYPES[value.dtype]}*>(model_output({index}))"
    return _face_tensor(value, name, place, writable=False)


def _face_tensor(tensor: Value, name: str, place: str, *, writable: bool) -> FaceTensor:
    return FaceTensor(
        name=name,
        struct=name.capitalize(),
        title=f"{name}: {_type(tensor)}",
        c_type=C_TYPES[tensor.dtype],
        size=tensor.size,
        writable=writable,
        place=place,
    )


def _type(tensor: Value) -> str:
    shape = " x ".join(map(str, tensor.physical_shape))
    return f"{'float' if tensor.dtype is DType.FLOAT32 else tensor.dtype.name.lower()}, {shape} in memory"


def c_string(text: str) -> str:
    """A C string literal of the UTF-8 bytes of a text; printable ASCII stays readable."""
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode()
    )
    return f'"{escaped}"'
