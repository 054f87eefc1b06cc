"""From the bytes of a `.pte` to a validated `Program`."""

from __future__ import annotations

import hashlib

from toolkit.program.call import Call, decode_call
from toolkit.program.container import Container
from toolkit.program.dataflow import Dataflow
from toolkit.program.flatbuffer import View as TableView
from toolkit.program.operators import BUILDERS
from toolkit.program.place import Place, quote
from toolkit.program.signatures import SIGNATURES
from toolkit.program.types import Copy, Operator, Program, View
from toolkit.program.unsupported import is_unsupported, unsupported_operators
from toolkit.program.values import StoredTensor, Values

_PREFERRED_METHOD = "forward"
_OTHER_INSTRUCTIONS = {
    "DelegateCall": "a call of a delegate",
    "MoveCall": "a move between values, as control flow needs it",
    "JumpFalseCall": "a jump, as control flow needs it",
    "FreeCall": "an allocation at run time, as dynamic shapes need it",
}
_DELEGATE_HINT = "Lower for Cortex-M without a partitioner: only operators that the CPU runs can be in the program."
_CONTROL_FLOW_HINT = "Export a model without control flow that depends on data."


def read_program(data: bytes, *, source: str = "program.pte") -> Program:
    """Reads and validates a program.

    What is returned holds together: operands exist, have the right element types, shapes and memory order, parameters
    are within the ranges of their arithmetic, and every operator reads what an earlier one wrote.

    Args:
        data: the contents of a `.pte` (file identifier ET12).
        source: what to call the file in errors.

    Raises:
        ProgramError: the bytes are damaged, foreign, or hold something that this toolkit does not know. It names what
            and where: the file, the index of the instruction, the tensor.
    """
    place = Place(source)
    container = Container(data, place)
    plan, name = select_plan(container)
    where = place if name == _PREFERRED_METHOD else place.inside(f"method '{quote(name)}'")
    values = Values(container, plan, data)
    calls = _read_calls(plan, values, where)
    inputs, outputs = _boundary(plan, "inputs", values, where), _boundary(plan, "outputs", values, where)
    operators = _connect(calls, inputs, outputs, values, where)
    ids = {id_ for operator in operators for id_ in (*operator.inputs, operator.output)}
    ids.update(stored.tensor.id for stored in (*inputs, *outputs))
    return Program(
        name=name,
        sha256=hashlib.sha256(data).hexdigest(),
        tensors={id_: values.tensor(id_).tensor for id_ in sorted(ids)},
        operators=tuple(operators),
        inputs=tuple(stored.tensor.id for stored in inputs),
        outputs=tuple(stored.tensor.id for stored in outputs),
    )


def select_plan(container: Container) -> tuple[TableView, str]:
    """The execution plan of `forward`, or the only one, with its name."""
    plans = container.root.tables("execution_plan")
    named = [(plan, plan.string("name") or "") for plan in plans]
    if not named:
        raise container.place.error("the program has no methods", hint="Export a model with a forward method.")
    for plan, name in named:
        if name == _PREFERRED_METHOD:
            return plan, name
    if len(named) > 1:
        names = ", ".join(f"'{quote(name)}'" for _, name in named[:8])
        raise container.place.error(
            f"the program has {len(named)} methods ({names}) and none is called '{_PREFERRED_METHOD}'",
            hint=f"Export with one method, or name the one to run '{_PREFERRED_METHOD}'.",
        )
    return named[0]


def _read_calls(plan: TableView, values: Values, place: Place) -> list[Call]:
    """The operator calls in order; raises ProgramError for every other instruction and for unknown operators."""
    delegates = plan.tables("delegates")
    if len(delegates):
        backend = quote(delegates[0].string("id") or "unnamed")
        raise place.error(f"a part of the program is delegated to '{backend}'", hint=_DELEGATE_HINT)
    chains = plan.tables("chains")
    if len(chains) != 1:
        raise place.error(f"the program has {len(chains)} chains of instructions; only one is supported")
    names = [_operator_name(operator, place) for operator in plan.tables("operators")]
    found: list[tuple[int, str, tuple[int, ...]]] = []
    for index, instruction in enumerate(chains[0].tables("instructions")):
        kernel = instruction.union("instr_args")
        if kernel.name != "KernelCall":
            kind = _OTHER_INSTRUCTIONS[kernel.name]
            hint = _DELEGATE_HINT if kernel.name == "DelegateCall" else _CONTROL_FLOW_HINT
            raise place.inside(f"operator {index}").error(f"the instruction is {kind}", hint=hint)
        number = kernel.integer("op_index")
        if not 0 <= number < len(names):
            raise place.inside(f"operator {index}").damage(f"it calls operator {number} of {len(names)}")
        found.append((index, names[number], kernel.scalars("args")))
    unknown = [call for call in found if is_unsupported(call[1], call[2], values)]
    if unknown:
        raise unsupported_operators(unknown, values, place)
    return [
        decode_call(index, name, place.inside(f"operator {index} ({name})"), SIGNATURES[name], ids, values)
        for index, name, ids in found
    ]


def _operator_name(operator: TableView, place: Place) -> str:
    name = operator.string("name")
    if not name:
        raise place.damage("an operator has no name")
    return name


def _boundary(plan: TableView, side: str, values: Values, place: Place) -> list[StoredTensor]:
    """The tensors of the method's inputs or outputs."""
    tensors: list[StoredTensor] = []
    for position, id_ in enumerate(plan.scalars(side)):
        stored = values.value(id_)
        where = place.inside(f"{side[:-1]} {position} (value {id_})")
        if not isinstance(stored, StoredTensor):
            raise where.error("it is not a tensor", hint="Give the model tensors only; fix other arguments on export.")
        if stored.tensor.constant is not None:
            raise where.error("it is a constant: nothing of it depends on the model's inputs")
        if stored.tensor.size == 0:
            raise where.error(f"it is empty: its shape is {list(stored.tensor.shape)}")
        tensors.append(stored)
    if not tensors:
        raise place.error(f"the program has no {side}")
    return tensors


def _connect(
    calls: list[Call], inputs: list[StoredTensor], outputs: list[StoredTensor], values: Values, place: Place
) -> list[Operator]:
    """Builds the operators and follows the memory plan, inserting the views that it implies."""
    flow = Dataflow()
    operators: list[Operator] = []
    for position, stored in enumerate(inputs):
        flow.write(stored, f"input {position}", place.inside(f"input {position}"))
    for call in calls:
        operator = BUILDERS[call.name](call)
        writer = f"operator {call.index}"
        operands = [values.tensor(id_) for id_ in operator.inputs]
        reads = [stored for stored in operands if stored.tensor.constant is None]
        for stored in reads:
            implied = flow.read(stored, call.index, call.place)
            if implied:
                operators.append(implied)
        for stored in call.scratch:
            flow.scratch(stored, writer, call.place, reads=[*reads, call.output])
        flow.write(call.output, writer, call.place, reads=reads, moves=_keeps_bytes(operator))
        operators.append(operator)
    for position, stored in enumerate(outputs):
        implied = flow.read(stored, len(calls), place.inside(f"output {position}"))
        if implied:
            operators.append(implied)
    return operators


def _keeps_bytes(operator: Operator) -> bool:
    if isinstance(operator, Copy):
        return operator.permutation == tuple(range(len(operator.permutation)))
    return isinstance(operator, View)
