"""What planning decides: a kernel per operator, a storage format and a place per tensor, scratch for this board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from toolkit.board import Board
from toolkit.program.types import Operator, Program, Tensor


class Encoding(Enum):
    """How an element's value becomes bytes."""

    NATIVE = "native"  # the tensor's own dtype
    OFFSET_UINT8 = "uint8 = int8 + 128"


@dataclass(frozen=True, slots=True)
class StorageFormat:
    """How the bytes of a tensor lie on one edge of the plan. What they mean is fixed by the program.

    Attributes:
        encoding: how an element's value becomes bytes.
        channel_order: for each stored channel the program's channel, None for the program's order.
        pixel_group: how many neighbouring pixels are interleaved channel by channel; 1 is plain.
        border: rows above, columns left, rows below, columns right of stored padding.
    """

    encoding: Encoding = Encoding.NATIVE
    channel_order: tuple[int, ...] | None = None
    pixel_group: int = 1
    border: tuple[int, int, int, int] = (0, 0, 0, 0)


PROGRAM_FORMAT = StorageFormat()
"""The program's own format: native elements in physical order, nothing between them."""


@dataclass(frozen=True, slots=True)
class KernelLibrary:
    """What computes the layers behind CMSIS-NN's public API.

    Attributes:
        name: for people, e.g. `Arm CMSIS-NN 7.0.0`.
        folder: where Arm's library is; None for our own, which travels with every project.
    """

    name: str
    folder: Path | None = None


OUR_KERNELS = KernelLibrary("deploy kernels")
"""The library in `firmware/kernels`."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function of a kernel library, as planning sees it.

    Attributes:
        function: C name.
        takes, gives: storage formats of activations in and out.
        scratch: bytes of working memory one call needs.
        second_scratch: of them, those at the end that are a buffer of their own (the second context of a transposed
            convolution).
        in_place: the output may start at the address of the (first) input when that is not needed any more.
        kernel_sum: id of a constant that planning made and the function finds in its context: per output the bias and
            the part of the sum that does not depend on the input. None for functions that take none.
        reason: why the function is ours although the plan uses another library; empty where that library's is used.
    """

    function: str
    takes: StorageFormat = PROGRAM_FORMAT
    gives: StorageFormat = PROGRAM_FORMAT
    scratch: int = 0
    second_scratch: int = 0
    in_place: bool = False
    kernel_sum: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of the arena."""

    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a kernel. Tensor ids are resolved: identities of the program are gone.

    Attributes:
        operator: what is computed, with operands replaced by the tensors that hold their bytes.
        kernel: what computes it.
        scratch: where its working memory lies, None when it needs none.
        layer: name of the layer in the user's model, empty when unknown.
    """

    operator: Operator
    kernel: Kernel
    scratch: Span | None
    layer: str

    @property
    def reads(self) -> tuple[tuple[str, int], ...]:
        """Every tensor the call reads, constants that planning made for the kernel included: name and id."""
        sums = self.kernel.kernel_sum
        return self.operator.reads + (() if sums is None else (("kernel_sum", sums),))


@dataclass(frozen=True, slots=True)
class Placement:
    """An activation in the arena.

    Attributes:
        format: how its bytes lie.
        span: where.
        first, last: steps (positions in `Plan.steps`) from which to which it must stay; -1 is "written before the
            first step", len(steps) is "read after the last".
    """

    format: StorageFormat
    span: Span
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Regions:
    """What is kept in RAM although it never changes.

    Attributes:
        code_in_ram: whether the kernels run from RAM.
        constants_in_ram: ids of the constants that are copied to RAM at start-up.
    """

    code_in_ram: bool = False
    constants_in_ram: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything rendering needs to write the runner.

    Attributes:
        model: name of the model, from its file.
        program: what is run.
        board: what it runs on.
        library: the kernel library.
        tensors: by id, those of the program and constants that planning made.
        steps: in execution order.
        activations: by tensor id, every tensor that has a place in the arena.
        constants: ids of the constant tensors that some step reads, in order of first use.
        inputs, outputs: ids (resolved) in the order of the program's signature.
        results: for every instruction of the program, by index, the activation that holds its result's bytes.
        arena: bytes.
        regions: what is kept in RAM although it never changes.
    """

    model: str
    program: Program
    board: Board
    library: KernelLibrary
    tensors: Mapping[int, Tensor]
    steps: tuple[Step, ...]
    activations: Mapping[int, Placement]
    constants: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    results: Mapping[int, int]
    arena: int
    regions: Regions = Regions()

    def tensor(self, id: int) -> Tensor:
        return self.tensors[id]

    @property
    def kernels(self) -> str:
        """The kernel library in a few words, and how many layers it computes where that is not all of them."""
        ours = sum(1 for step in self.steps if step.kernel.reason)
        if not ours:
            return self.library.name
        return f"{self.library.name}: {len(self.steps) - ours} of {len(self.steps)} layers, ours for {ours}"

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants in flash; equal ones are stored once."""
        return self._bytes_of(self.constants)

    @property
    def constant_bytes_in_ram(self) -> int:
        """Bytes of the constants that are copied to RAM."""
        return self._bytes_of(tuple(self.regions.constants_in_ram))

    def _bytes_of(self, constants: tuple[int, ...]) -> int:
        return sum({self.tensor(id).constant or b"": self.tensor(id).nbytes for id in constants}.values())
