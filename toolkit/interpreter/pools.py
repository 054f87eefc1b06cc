"""How much memory the stock interpreter takes: computed at the desk, so that nothing is too small on the board.

The interpreter takes everything from three pools. The planned memories hold activations; their sizes are in the
program. The method's pool holds what loading the method builds: a value for every entry of the program's table, a
descriptor and strides for every tensor, lists, and the arguments of every instruction. The temporary pool is emptied
after every use; loading needs it to look up one operator at a time, and Cortex-M kernels do not use it (their scratch
is a tensor of the program).

The order and the sizes of these allocations are those of ExecuTorch's runtime (release 1.5: `runtime/executor` and the
types in its public headers). The sizes are checked again by the compiler when a runner is built.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.board import Board
from toolkit.interpreter.contents import Contents, Instruction, Value

ALIGNMENT = 16
"""Bytes; of every pool, and of tensors in the planned memories."""


_LARGEST_RANK = 16
"""Of a tensor, in the runtime."""

RESERVE = 32
"""Bytes added to the method's pool: another release may keep a little more (4 bytes have been seen)."""


@dataclass(frozen=True, slots=True)
class Abi:
    """Bytes that the runtime's types take on a target.

    Attributes:
        pointer: an address.
        evalue: `EValue`, aligned to 8.
        tensor: `etensor::TensorImpl`.
        boxed_list: `BoxedEvalueList`.
        array_ref: `ArrayRef`.
        optional_tensor: `std::optional<Tensor>`.
        tensor_meta: `TensorMeta`.
        chain: the runtime's own record of a chain of instructions, which is in no header.
    """

    pointer: int
    evalue: int
    tensor: int
    boxed_list: int
    array_ref: int
    optional_tensor: int
    tensor_meta: int
    chain: int


CORTEX_M = Abi(pointer=4, evalue=16, tensor=32, boxed_list=12, array_ref=8, optional_tensor=8, tensor_meta=12, chain=16)
COMPUTER = Abi(
    pointer=8, evalue=16, tensor=64, boxed_list=24, array_ref=16, optional_tensor=16, tensor_meta=24, chain=32
)
"""A 64-bit development machine."""


@dataclass(frozen=True, slots=True)
class Pools:
    """Bytes of every pool.

    Attributes:
        planned: per memory of the program.
        method: for what loading builds and keeps.
        temporary: for what is needed for a moment.
    """

    planned: tuple[int, ...]
    method: int
    temporary: int

    @property
    def total(self) -> int:
        return sum(self.planned) + self.method + self.temporary


def abi_of(board: Board) -> Abi:
    """The ABI of a board's runners."""
    return COMPUTER if board.toolchain == "host" else CORTEX_M


def pool_sizes(contents: Contents, abi: Abi) -> Pools:
    """The pools that a program needs, with a small reserve, each rounded up to the alignment."""
    temporary = max((_lookup(call, abi) for chain in contents.chains for call in chain), default=0)
    return Pools(
        planned=tuple(_rounded(size) for size in contents.memories),
        method=_rounded(method_bytes(contents, abi) + RESERVE),
        temporary=_rounded(temporary),
    )


def method_bytes(contents: Contents, abi: Abi) -> int:
    """What loading a method takes from its pool, when temporary memory has a pool of its own."""
    pool = _Pool()
    pool.take(abi.evalue * len(contents.values), 8)
    pool.take(len(contents.inputs), 1)
    for value in contents.values:
        _take_value(pool, value, abi)
    pool.take(0, abi.pointer)  # delegates, of which there are none
    pool.take(abi.chain * len(contents.chains), abi.pointer)
    for chain in contents.chains:
        pool.take(abi.pointer * len(chain), abi.pointer)  # the kernel of every instruction
        pool.take(2 * abi.pointer * len(chain), abi.pointer)  # and where its arguments are
        for instruction in chain:
            if instruction.operator:
                pool.take(abi.pointer * len(instruction.arguments), abi.pointer)
    return pool.used


def _take_value(pool: _Pool, value: Value, abi: Abi) -> None:
    count = value.length
    if value.kind == "Tensor":
        if value.resizable:
            pool.take(4 * count, 4)
            pool.take(count, 1)
        pool.take(4 * count, 4)  # strides; sizes and dim order stay in the program
        pool.take(abi.tensor, abi.pointer)
    elif value.kind == "IntList":
        pool.take(abi.pointer * count, abi.pointer)
        pool.take(8 * count, 8)
        pool.take(abi.boxed_list, abi.pointer)
    elif value.kind in ("TensorList", "OptionalTensorList"):
        pool.take(abi.pointer * count, abi.pointer)
        pool.take((abi.pointer if value.kind == "TensorList" else abi.optional_tensor) * count, abi.pointer)
        pool.take(abi.boxed_list, abi.pointer)
    elif value.kind in ("BoolList", "DoubleList", "String"):
        pool.take(abi.array_ref, abi.pointer)


def _lookup(call: Instruction, abi: Abi) -> int:
    """Bytes that the temporary pool must have for finding an operator's kernel: else the method's pool is drained.

    The runtime asks for the worst case, in which every argument is a tensor of the largest rank.
    """
    return len(call.arguments) * (abi.tensor_meta + _LARGEST_RANK)


class _Pool:
    """A bump allocator that only counts."""

    def __init__(self) -> None:
        self.used = 0

    def take(self, nbytes: int, alignment: int) -> None:
        self.used = -(-self.used // alignment) * alignment + nbytes


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
