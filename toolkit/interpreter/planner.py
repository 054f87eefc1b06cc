"""From a program and a board to what the stock interpreter needs there: all checks that can be made at the desk."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.board import Board
from toolkit.interpreter.contents import Contents, read_contents
from toolkit.interpreter.installation import RELEASE, Installation
from toolkit.interpreter.isa import check_isa
from toolkit.interpreter.pools import Pools, abi_of, pool_sizes
from toolkit.planning.fit import Part, heap_part, require_fit
from toolkit.planning.types import KernelLibrary, Plan
from toolkit.program.types import Program

RUNTIME_FLASH = 57344
"""Estimate of the interpreter, the operators and the kernels in flash: 31,040 to 51,884 bytes were measured for four
models, without this toolkit's serial runtime."""
RUNTIME_RAM = 4096
"""Estimate of static data besides the pools and the table of kernels, this toolkit's serial runtime included."""
_ARDUINO_RAM = 1536
"""The same without the serial runtime, which the file of an Arduino board counts beside the board's core."""
_ARDUINO_KERNELS = 32768
"""What such a file counts in flash for the default engine's runtime and kernels, which are not there."""

_ADVICE = "The default engine takes less of both memories: leave out --engine executorch."

KERNELS = f"ExecuTorch {RELEASE}"
"""What a runner with the interpreter says of itself."""


@dataclass(frozen=True, slots=True)
class InterpreterPlan:
    """Everything rendering needs to write a runner with the stock interpreter.

    Attributes:
        model: name of the model, from its file.
        pte: the program's bytes.
        contents: what the interpreter needs of it.
        board: what it runs on.
        pools: how much memory is set aside.
        libraries: of the installation, those that register the program's operators; those that usually do where no
            installation is known.
    """

    model: str
    pte: bytes
    contents: Contents
    board: Board
    pools: Pools
    libraries: tuple[str, ...]


def make_interpreter_plan(
    pte: bytes, board: Board, *, model: str, source: str, installation: Installation | None = None
) -> InterpreterPlan:
    """Plan a program for the stock interpreter on a board.

    Args:
        pte: the program's bytes.
        board: what it will run on.
        model: name of the model, for the rendered project.
        source: what to call the program in errors.
        installation: the ExecuTorch it will be linked with; None leaves unchecked which operators that has.

    Raises:
        ProgramError: the bytes are damaged, or the program needs what a runner does not have.
        PlanError: it was lowered for another core, an operator is not in the installation, or it does not fit.
    """
    contents = read_contents(pte, source=source)
    check_isa(pte, board, source=source)
    if installation is not None:
        libraries = installation.libraries_for(contents.operators)
    else:
        libraries = _usual_libraries(contents.operators)
    plan = InterpreterPlan(model, pte, contents, board, pool_sizes(contents, abi_of(board)), libraries)
    registry = installation.registry if installation is not None and installation.registry is not None else 0
    require_fit(_parts(plan, registry), board, model, lambda _: _ADVICE)
    return plan


def verifiable(plan: InterpreterPlan, program: Program) -> Plan:
    """The plan as verification and reports take it: a program on a board, whose layers nobody can look at."""
    return Plan(
        model=plan.model,
        program=program,
        board=plan.board,
        library=KernelLibrary(KERNELS),
        tensors=program.tensors,
        steps=(),
        activations={},
        constants=(),
        inputs=program.inputs,
        outputs=program.outputs,
        results={},
        arena=plan.pools.total + own_buffers(plan.contents),
    )


def own_buffers(contents: Contents) -> int:
    """Bytes that the runner sets aside for inputs and outputs whose places the exporter did not plan."""
    return sum(tensor.nbytes for tensor in (*contents.inputs, *contents.outputs) if tensor.memory is None)


def _usual_libraries(operators: tuple[str, ...]) -> tuple[str, ...]:
    usual = {
        "cortex_m": "cortex_m_ops_lib",
        "quantized_decomposed": "quantized_ops_lib",
        "executorch_prim": "executorch",
    }
    names = (usual.get(operator.split("::")[0], "portable_ops_lib") for operator in operators)
    return tuple(dict.fromkeys(names))


def _parts(plan: InterpreterPlan, registry: int) -> tuple[Part, ...]:
    pools, board = plan.pools, plan.board
    core: tuple[Part, ...] = ()
    static = RUNTIME_RAM
    if board.arduino is not None:
        core = (
            Part("flash", "core (estimate)", max(0, board.reserved_flash - _ARDUINO_KERNELS)),
            Part("ram", "core (estimate)", board.reserved_ram - board.reserved_heap),
            *heap_part(board),
        )
        static = _ARDUINO_RAM
    return (
        *core,
        Part("flash", "runtime (estimate)", RUNTIME_FLASH),
        Part("flash", "program", len(plan.pte)),
        Part("ram", "planned memory", sum(pools.planned) + own_buffers(plan.contents)),
        Part("ram", "method", pools.method + pools.temporary),
        Part("ram", "static (estimate)", static + registry),
        Part("ram", "stack", board.stack),
    )
