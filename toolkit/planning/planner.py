"""From a program and a board to a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolkit.board import Board
from toolkit.planning.fit import check_fit
from toolkit.planning.kernels import choose_kernels
from toolkit.planning.memory import Block, Demand, allocate
from toolkit.planning.regions import Place, choose_regions
from toolkit.planning.simplify import Graph, simplify
from toolkit.planning.tables import fold_clamps, fuse_tables
from toolkit.planning.types import OUR_KERNELS, Kernel, KernelLibrary, Placement, Plan, Span, Step
from toolkit.program.types import Operator, Program


def make_plan(
    program: Program,
    board: Board,
    *,
    model: str,
    layer_names: Sequence[str] = (),
    place: Place = Place.AUTO,
    library: KernelLibrary = OUR_KERNELS,
) -> Plan:
    """Plan a program for a board.

    Args:
        program: validated program.
        board: what it will run on.
        model: name of the model, for messages and the rendered project.
        layer_names: name of the user's layer per instruction index; empty where unknown.
        place: where hot code and constants should be.
        library: what computes the layers; those for which it is not right are computed by our own kernels.

    Raises:
        PlanError: an operator has no kernel, or the whole does not fit the board.
    """
    graph, kernels = choose_kernels(fold_clamps(fuse_tables(simplify(program))), library, board)
    activations, scratch, arena = _place(graph, kernels)
    steps = tuple(
        Step(op, kernel, scratch[position], layer_names[op.index] if op.index < len(layer_names) else "")
        for position, (op, kernel) in enumerate(zip(graph.operators, kernels, strict=True))
    )
    constants = (id for step in steps for _, id in step.reads if graph.tensors[id].constant is not None)
    plan = Plan(
        model=model,
        program=program,
        board=board,
        library=library,
        tensors=graph.tensors,
        steps=steps,
        activations=activations,
        constants=tuple(dict.fromkeys(constants)),
        inputs=graph.inputs,
        outputs=graph.outputs,
        results=graph.results,
        arena=arena,
    )
    check_fit(plan)
    return replace(plan, regions=choose_regions(plan, place))


def _place(graph: Graph, kernels: Sequence[Kernel]) -> tuple[dict[int, Placement], list[Span | None], int]:
    """Places of all activations, of each step's scratch, and the bytes of the arena."""
    lifetimes = _lifetimes(graph)
    owners = _owners(graph, kernels, lifetimes)
    groups: dict[int, list[int]] = {}
    for id in lifetimes:
        groups.setdefault(owners.get(id, id), []).append(id)
    demands = [Demand(tuple(Block(graph.tensors[id].nbytes, *lifetimes[id]) for id in ids)) for ids in groups.values()]
    scratch_at = [position for position, kernel in enumerate(kernels) if kernel.scratch]
    demands += [Demand((Block(kernels[position].scratch, position, position),)) for position in scratch_at]
    offsets, arena = allocate(demands)

    formats = {op.output: kernel.gives for op, kernel in zip(graph.operators, kernels, strict=True)}
    activations = {}
    for ids, offset in zip(groups.values(), offsets, strict=False):
        for id in ids:
            span = Span(offset, graph.tensors[id].nbytes)
            activations[id] = Placement(formats.get(id, Kernel("").gives), span, *lifetimes[id])
    scratch: list[Span | None] = [None] * len(kernels)
    for position, offset in zip(scratch_at, offsets[len(groups) :], strict=True):
        scratch[position] = Span(offset, kernels[position].scratch)
    return activations, scratch, arena


def _lifetimes(graph: Graph) -> dict[int, tuple[int, int]]:
    """First and last step of every activation; outputs live past the last step."""
    lifetimes = dict.fromkeys(graph.inputs, (-1, -1))
    for position, op in enumerate(graph.operators):
        for id in op.inputs:
            if graph.tensors[id].constant is None:
                lifetimes[id] = (lifetimes[id][0], position)
        lifetimes[op.output] = (position, position)
    for id in graph.outputs:
        lifetimes[id] = (lifetimes[id][0], len(graph.operators))
    return lifetimes


def _owners(graph: Graph, kernels: Sequence[Kernel], lifetimes: dict[int, tuple[int, int]]) -> dict[int, int]:
    """For an output that may overwrite its input: the tensor whose place it takes."""
    owners: dict[int, int] = {}
    for position, (op, kernel) in enumerate(zip(graph.operators, kernels, strict=True)):
        source = _first_activation(op, lifetimes)
        if kernel.in_place and source is not None and lifetimes[source][1] == position:
            owners[op.output] = owners.get(source, source)
    return owners


def _first_activation(op: Operator, lifetimes: dict[int, tuple[int, int]]) -> int | None:
    first = op.inputs[0]
    return first if first in lifetimes else None
