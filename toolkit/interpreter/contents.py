"""What a `.pte` asks of the stock interpreter: its values, calls, memories, inputs and outputs.

The interpreter takes more programs than this toolkit compiles: any operator that its installation registers, control
flow, several element types. So nothing is decoded here that it does not need to be sized and fed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import prod

from toolkit.program.container import Container
from toolkit.program.flatbuffer import View
from toolkit.program.place import Place, quote
from toolkit.program.reader import select_plan
from toolkit.program.schema import CPU, EXTERNAL_DATA, SCALAR_TYPES, STATIC_SHAPE
from toolkit.program.types import DType, Shape

_DELEGATE_HINT = (
    "How much memory a delegate takes is known to its backend alone. Lower for Cortex-M without a partitioner, or "
    "write a runner of your own on ExecuTorch."
)
_LISTS = ("IntList", "DoubleList", "BoolList", "TensorList", "OptionalTensorList")


@dataclass(frozen=True, slots=True)
class Value:
    """One entry of the program's table of values, as far as memory is set aside for it.

    Attributes:
        kind: of the schema: `Tensor`, `Int`, `IntList`, ...
        length: number of axes of a tensor, of elements of a list; 0 for others.
        resizable: a tensor whose sizes can change, within bounds.
    """

    kind: str
    length: int = 0
    resizable: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a chain.

    Attributes:
        operator: full name, `namespace::name.overload`; empty when it is not a call of an operator.
        arguments: indices of values.
    """

    operator: str
    arguments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Boundary:
    """An input or an output.

    Attributes:
        dtype: element type.
        shape: logical sizes.
        dim_order: logical axes from the outermost to the innermost in memory.
        memory: number of the planned memory it lies in, from 0; None when the program leaves its place to the caller.
        offset: bytes from the start of that memory.
    """

    dtype: DType
    shape: Shape
    dim_order: tuple[int, ...]
    memory: int | None
    offset: int

    @property
    def physical_shape(self) -> Shape:
        return tuple(self.shape[axis] for axis in self.dim_order)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Contents:
    """A program as the interpreter sees it.

    Attributes:
        method: name of the method that is run.
        sha256: of the file, hexadecimal.
        values: the table of values.
        chains: instructions, chain by chain.
        memories: bytes of every planned memory.
        inputs, outputs: in the order of the program's signature.
    """

    method: str
    sha256: str
    values: tuple[Value, ...]
    chains: tuple[tuple[Instruction, ...], ...]
    memories: tuple[int, ...]
    inputs: tuple[Boundary, ...]
    outputs: tuple[Boundary, ...]

    @property
    def operators(self) -> tuple[str, ...]:
        """Full names of all operators it calls, sorted."""
        names = {instruction.operator for chain in self.chains for instruction in chain}
        return tuple(sorted(names - {""}))


def read_contents(data: bytes, *, source: str) -> Contents:
    """Read what the interpreter needs of a program.

    Args:
        data: the contents of a `.pte`.
        source: what to call the file in errors.

    Raises:
        ProgramError: the bytes are damaged or foreign, or the program needs what a runner on a microcontroller does
            not have: a delegate, data outside the file, inputs or outputs that are not tensors of fixed sizes.
    """
    place = Place(source)
    container = Container(data, place)
    plan, method = select_plan(container)
    if not (method.isascii() and method.isidentifier()):
        raise place.error(f"the method '{quote(method)}' cannot be named in C", hint="Export it under a plain name.")
    segment = container.root.table("constant_segment")
    if not (segment and segment.scalars("offsets")) and len(container.root.tables("constant_buffer")):
        raise place.error(
            "constants lie inside the program, as old exporters put them, which ExecuTorch 1.5 does not open",
            hint="Export the model again; or take the default engine, which reads both.",
        )
    if len(plan.tables("delegates")):
        raise place.error("a part of the program is delegated to a backend", hint=_DELEGATE_HINT)
    entries = [entry.union("val") for entry in plan.tables("values")]
    memories = tuple(plan.scalars("non_const_buffer_sizes"))
    if any(size < 0 for size in memories):
        raise place.damage(f"the sizes {list(memories)} of memories are not all positive")
    return Contents(
        method=method,
        sha256=hashlib.sha256(data).hexdigest(),
        values=tuple(_value(entry, place.inside(f"value {index}")) for index, entry in enumerate(entries)),
        chains=_chains(plan, len(entries), place),
        memories=memories[1:],  # the first stands for constants and is never used
        inputs=_boundaries(plan, "inputs", entries, memories, place),
        outputs=_boundaries(plan, "outputs", entries, memories, place),
    )


def _value(entry: View, place: Place) -> Value:
    if entry.name in _LISTS:
        return Value(entry.name, len(entry.scalars("items")))
    if entry.name != "Tensor":
        return Value(entry.name)
    _check_location(entry, place)
    dynamism = entry.integer("shape_dynamism")
    if dynamism not in (0, 1):
        raise place.error("the tensor has sizes without a bound", hint="Export the model with bounds for every size.")
    return Value("Tensor", len(entry.scalars("sizes")), resizable=dynamism != STATIC_SHAPE)


def _check_location(tensor: View, place: Place) -> None:
    extra = tensor.table("extra_tensor_info")
    if extra is None:
        return
    if extra.integer("location") == EXTERNAL_DATA:
        raise place.error(
            "the tensor's data is kept outside the program",
            hint="Export without external constants (`external_constants=False`), so that the .pte is complete.",
        )
    if extra.integer("device_type") != CPU:
        raise place.error("the tensor is placed on an accelerator")


def _chains(plan: View, values: int, place: Place) -> tuple[tuple[Instruction, ...], ...]:
    names = []
    for number, operator in enumerate(plan.tables("operators")):
        name = operator.string("name")
        if not name:
            raise place.damage(f"operator {number} has no name")
        overload = operator.string("overload")
        names.append(f"{name}.{overload}" if overload else name)
    chains = []
    for chain in plan.tables("chains"):
        instructions = (entry.union("instr_args") for entry in chain.tables("instructions"))
        chains.append(tuple(_instruction(call, index, names, values, place) for index, call in enumerate(instructions)))
    if not chains:
        raise place.damage("the program has no instructions")
    return tuple(chains)


def _instruction(call: View, index: int, names: list[str], values: int, place: Place) -> Instruction:
    where = place.inside(f"instruction {index}")
    if call.name == "DelegateCall":
        raise where.error("it calls a delegate", hint=_DELEGATE_HINT)
    if call.name != "KernelCall":
        return Instruction("", ())
    number = call.integer("op_index")
    if not 0 <= number < len(names):
        raise where.damage(f"it calls operator {number} of {len(names)}")
    arguments = call.scalars("args")
    if any(not 0 <= argument < values for argument in arguments):
        raise where.damage(f"an argument is not one of the {values} values")
    return Instruction(names[number], arguments)


def _boundaries(
    plan: View, side: str, entries: list[View], memories: tuple[int, ...], place: Place
) -> tuple[Boundary, ...]:
    found = []
    for position, index in enumerate(plan.scalars(side)):
        where = place.inside(f"{side[:-1]} {position} (value {index})")
        if not 0 <= index < len(entries):
            raise where.damage(f"there are {len(entries)} values")
        found.append(_boundary(entries[index], memories, where))
    if not 0 < len(found) < 256:
        raise place.error(f"the program has {len(found) or 'no'} {side}; a runner has 1 to 255")
    return tuple(found)


def _boundary(entry: View, memories: tuple[int, ...], place: Place) -> Boundary:
    if entry.name != "Tensor":
        raise place.error("it is not a tensor", hint="Give the model tensors only; fix other arguments on export.")
    if entry.integer("shape_dynamism") != STATIC_SHAPE:
        raise place.error("its sizes can change", hint="Export the model with fixed sizes of inputs and outputs.")
    dtype = SCALAR_TYPES.get(entry.integer("scalar_type"))
    if dtype is None:
        raise place.error("its element type has no place in the protocol", hint="Use float32, int8 or another integer.")
    shape: Shape = entry.scalars("sizes")
    dim_order: tuple[int, ...] = entry.scalars("dim_order")
    if any(size < 0 for size in shape) or sorted(dim_order) != list(range(len(shape))):
        raise place.damage(f"the sizes {list(shape)} and the dim order {list(dim_order)} make no sense")
    if prod(shape) == 0:
        raise place.error(f"it is empty: its shape is {list(shape)}")
    memory, offset = _slot(entry, prod(shape) * dtype.itemsize, memories, place)
    return Boundary(dtype, shape, dim_order, memory, offset)


def _slot(entry: View, nbytes: int, memories: tuple[int, ...], place: Place) -> tuple[int | None, int]:
    info = entry.table("allocation_info")
    if info is None:
        if entry.integer("data_buffer_idx"):
            raise place.error("it is a constant: nothing of it depends on the model's inputs")
        return None, 0
    memory = info.integer("memory_id")
    offset = info.integer("memory_offset_high") << 32 | info.integer("memory_offset_low")
    if not 0 < memory < len(memories) or offset + nbytes > memories[memory]:
        raise place.damage(f"it lies outside the program's memories (memory {memory}, byte {offset})")
    return memory - 1, offset
