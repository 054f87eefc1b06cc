"""Who wrote the bytes that an operator reads.

The exporter plans memory and elides views: a view's tensor is another name for bytes that an earlier operator wrote,
and no instruction says so. Reading a program therefore means to follow its memory plan: every read is traced to the
operator that wrote exactly these bytes, a `View` is inserted where it did so under another name, and anything else
(bytes never written, partly written, or overwritten in between) is an error of the plan.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from toolkit.program.layout import same_elements
from toolkit.program.place import Place
from toolkit.program.types import Tensor, View
from toolkit.program.values import StoredTensor

VIEW_NAME = "aten::view_copy"
"""Name of an inserted `View`: the operator that the exporter elided."""
_CONFLICT = "The program's memory plan is in conflict with its instructions: export it again."


@dataclass(slots=True)
class _Region:
    """Bytes `start` to `end` of one memory, as the last write left them.

    `overwritten_by` says who destroyed them, None while they are intact.
    """

    start: int
    end: int
    tensor: Tensor
    overwritten_by: str | None = None


class _Memory:
    """The intact regions of one memory, in order; they do not overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._regions: list[_Region] = []

    def overlapping(self, start: int, end: int) -> list[_Region]:
        first, last = self._span(start, end)
        return self._regions[first:last]

    def clear(self, start: int, end: int, by: str) -> None:
        first, last = self._span(start, end)
        for region in self._regions[first:last]:
            region.overwritten_by = by
        del self._starts[first:last], self._regions[first:last]

    def insert(self, region: _Region) -> None:
        at = bisect_left(self._starts, region.start)
        self._starts.insert(at, region.start)
        self._regions.insert(at, region)

    def _span(self, start: int, end: int) -> tuple[int, int]:
        first = bisect_right(self._starts, start)
        if first and self._regions[first - 1].end > start:
            first -= 1
        return first, bisect_left(self._starts, end)


class Dataflow:
    """The state of a program's memories while its operators are gone through in order."""

    def __init__(self) -> None:
        self._memories: dict[int, _Memory] = {}
        self._written: dict[int, _Region] = {}

    def read(self, stored: StoredTensor, index: int, place: Place) -> View | None:
        """Traces a read; a `View` where the bytes were written under another name.

        Args:
            stored: the tensor that is read; not a constant.
            index: the instruction that reads it.
            place: what reads it, for errors.
        """
        tensor = stored.tensor
        region = self._written.get(tensor.id)
        if region is not None:
            if region.overwritten_by is not None:
                raise place.error(
                    f"tensor {tensor.id} is read after {region.overwritten_by} has overwritten its bytes",
                    hint=_CONFLICT,
                )
            return None
        region = self._source(stored, place)
        if not same_elements(region.tensor, tensor):
            raise place.error(
                f"tensor {tensor.id} {list(tensor.shape)} takes the bytes of tensor {region.tensor.id} "
                f"{list(region.tensor.shape)} in the memory order {list(region.tensor.dim_order)}, "
                "so its elements would be in another order than the model's",
                hint="Lower with use_explicit_layout=True, or export with channels_last inputs: a view over an image "
                "in memory order channels-last must be preceded by a copy.",
            )
        self._written[tensor.id] = region
        return View(index=index, name=VIEW_NAME, output=tensor.id, input=region.tensor.id)

    def write(
        self,
        stored: StoredTensor,
        writer: str,
        place: Place,
        *,
        reads: Iterable[StoredTensor] = (),
        moves: bool = False,
    ) -> None:
        """Notes a result.

        Args:
            stored: the tensor that is written.
            writer: what writes it, for errors about later reads.
            place: where that is.
            reads: what the writer reads at the same time; its bytes must be elsewhere.
            moves: the writer leaves bytes as they are, so its result may lie exactly on what it reads, which is then
                not overwritten.
        """
        tensor, slot = stored.tensor, stored.slot
        if tensor.constant is not None:
            raise place.damage(f"tensor {tensor.id} is written, and is a constant")
        if tensor.id in self._written:
            raise place.error(f"tensor {tensor.id} is written, and already has a value", hint=_CONFLICT)
        start = slot.offset if slot else 0
        region = _Region(start, start + tensor.nbytes, tensor)
        if slot:
            in_place = next((read for read in reads if _same_bytes(read, stored)), None)
            if moves and in_place:
                self._written[tensor.id] = self._written[in_place.tensor.id]
                return
            self._require_apart(stored, reads, place)
            memory = self._memories.setdefault(slot.memory, _Memory())
            memory.clear(region.start, region.end, writer)
            memory.insert(region)
        self._written[tensor.id] = region

    def scratch(self, stored: StoredTensor, writer: str, place: Place, *, reads: Iterable[StoredTensor]) -> None:
        """Notes that an operator's own kernel would leave nothing meaningful in a tensor's bytes."""
        if stored.slot is None or stored.tensor.nbytes == 0:
            return
        self._require_apart(stored, reads, place)
        start = stored.slot.offset
        memory = self._memories.setdefault(stored.slot.memory, _Memory())
        memory.clear(start, start + stored.tensor.nbytes, writer)

    def _source(self, stored: StoredTensor, place: Place) -> _Region:
        """The intact region that a tensor without a writer of its own is another name for."""
        tensor, slot = stored.tensor, stored.slot
        found: list[_Region] = []
        if slot and slot.memory in self._memories:
            found = self._memories[slot.memory].overlapping(slot.offset, slot.offset + tensor.nbytes)
        if not found:
            raise place.error(f"tensor {tensor.id} is read, and no operator has written it")
        region = found[0]
        if slot is None or (region.start, region.end) != (slot.offset, slot.offset + tensor.nbytes):
            raise place.error(
                f"tensor {tensor.id} is read, and its bytes are only partly those of tensor {region.tensor.id}",
                hint="Views of a part of a tensor are not supported.",
            )
        if region.tensor.dtype is not tensor.dtype:
            raise place.error(
                f"tensor {tensor.id} ({tensor.dtype.name.lower()}) is read, and no operator has written it: "
                f"its bytes are those of tensor {region.tensor.id} ({region.tensor.dtype.name.lower()})"
            )
        return region

    def _require_apart(self, written: StoredTensor, reads: Iterable[StoredTensor], place: Place) -> None:
        if written.slot is None:
            return
        start, end = written.slot.offset, written.slot.offset + written.tensor.nbytes
        for read in reads:
            if read.slot is None or read.slot.memory != written.slot.memory:
                continue
            if read.slot.offset < end and start < read.slot.offset + read.tensor.nbytes:
                raise place.error(
                    f"tensor {written.tensor.id} is written over tensor {read.tensor.id} while that is read",
                    hint=_CONFLICT,
                )


def _same_bytes(first: StoredTensor, second: StoredTensor) -> bool:
    """Whether two tensors are planned at the same bytes."""
    return first.slot is not None and first.slot == second.slot and first.tensor.nbytes == second.tensor.nbytes
