"""Whether a program was lowered for the instruction set that it will run on.

A lowering writes two things into a program that belong to one instruction set: the sizes of scratch tensors, and, for
MVE, the kernel sum of a linear layer, which then stands in for its bias. The stock interpreter checks neither: on
another core it overwrites what lies beside a scratch tensor, or leaves the bias out, and reports success. (The engine
of this toolkit derives both anew, so it takes programs of any core.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.board import Board, Isa
from toolkit.errors import PlanError
from toolkit.planning.cmsis_nn import scratch_of
from toolkit.program.call import Call, decode_call
from toolkit.program.container import Container
from toolkit.program.flatbuffer import View
from toolkit.program.operators import BUILDERS
from toolkit.program.place import Place
from toolkit.program.reader import select_plan
from toolkit.program.signatures import SIGNATURES, Kind
from toolkit.program.types import DType, Linear, Operator
from toolkit.program.values import Values

CORES = {Isa.SCALAR: "a core without DSP", Isa.DSP: "a core with DSP", Isa.MVE: "a core with MVE"}
"""Instruction sets in words."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one call holds that belongs to an instruction set.

    Attributes:
        place: the call, for errors.
        operator: what it computes.
        scratch: bytes of its scratch tensors in the program.
        kernel_sum: for a linear layer, whether the program holds its kernel sum; None for others.
    """

    place: str
    operator: Operator
    scratch: tuple[int, ...]
    kernel_sum: bool | None

    def contradiction(self, isa: Isa) -> str:
        """Why this call goes wrong on an instruction set, empty when it does not."""
        if self.kernel_sum and isa is not Isa.MVE:
            return "its bias is only in a kernel sum, which this core's kernel does not read: wrong numbers"
        if self.kernel_sum is False and isa is Isa.MVE:
            return "it has no kernel sum, which this core's kernel reads instead of the bias: wrong numbers"
        for stored, needed in zip(self.scratch, scratch_of(self.operator, isa), strict=False):
            if stored < needed:
                return (
                    f"it has {stored:,} bytes of scratch and needs {needed:,}: what lies beside it would be overwritten"
                )
        return ""


def check_isa(data: bytes, board: Board, *, source: str) -> None:
    """Raise a PlanError when the stock interpreter would go wrong with this program on this board.

    Raises:
        PlanError: the first call that does not fit, why, and which cores the program was lowered for.
        ProgramError: a Cortex-M operator's arguments are damaged.
    """
    demands = tuple(_demands(data, source))
    for demand in demands:
        reason = demand.contradiction(board.isa)
        if reason:
            fitting = [isa for isa in Isa if not any(other.contradiction(isa) for other in demands)]
            made_for = " or ".join(CORES[isa] for isa in fitting) or "no core that this toolkit knows"
            raise PlanError(
                f"{reason}. The program fits {made_for}; {board.name} has {CORES[board.isa]}",
                where=demand.place,
                hint=f"Lower it for {board.cpu}, or take the default engine, which takes a program of any core.",
            )


def _demands(data: bytes, source: str) -> Iterator[Demand]:
    container = Container(data, Place(source))
    plan, _ = select_plan(container)
    values = Values(container, plan, data)
    names = [operator.string("name") or "" for operator in plan.tables("operators")]
    for index, number, ids in _kernel_calls(plan):
        name = names[number] if 0 <= number < len(names) else ""
        if not _is_bound_to_a_core(name):
            continue
        place = container.place.inside(f"operator {index} ({name})")
        call = decode_call(index, name, place, SIGNATURES[name], ids, values)
        yield _demand(call)


def _kernel_calls(plan: View) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Index, operator and arguments of every call of a kernel."""
    for chain in plan.tables("chains"):
        for index, instruction in enumerate(chain.tables("instructions")):
            call = instruction.union("instr_args")
            if call.name == "KernelCall":
                yield index, call.integer("op_index"), call.scalars("args")


def _is_bound_to_a_core(name: str) -> bool:
    signature = SIGNATURES.get(name)
    return signature is not None and any(
        kind is Kind.SCRATCH or argument == "kernel_sum" for argument, kind in signature.arguments
    )


def _demand(call: Call) -> Demand:
    operator = BUILDERS[call.name](call)
    kernel_sum = None
    if isinstance(operator, Linear):
        kernel_sum = call.optional_constant("kernel_sum", DType.INT32) is not None
    scratch = tuple(stored.tensor.nbytes for stored in call.scratch)
    return Demand(call.place.text, operator, scratch, kernel_sum)
