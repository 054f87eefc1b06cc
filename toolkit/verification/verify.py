"""The proof: the device's answers against the reference, every byte of every sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.device import Device
from toolkit.errors import DeviceError, ModelError
from toolkit.planning import Plan
from toolkit.program.types import Dequantize
from toolkit.reference import Execution, Reference
from toolkit.verification.layout import from_memory, to_memory

Array = npt.NDArray[Any]
Sample = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where device and reference disagree.

    Attributes:
        sample: number of the sample.
        output: number of the output.
        element: logical index in it.
        expected, got: values.
        layer: position of the first step whose result differs, None when every one is right.
    """

    sample: int
    output: int
    element: tuple[int, ...]
    expected: float
    got: float
    layer: int | None


@dataclass(frozen=True, slots=True)
class LayerRun:
    """One step that ran alone on the device.

    Attributes:
        result: bytes (uint8) of what it gave, in memory order.
        ticks: of the device's timer.
    """

    result: Array
    ticks: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the comparison gave.

    Attributes:
        samples: how many were run.
        bytes_compared: of outputs.
        max_abs_diff_lsb: largest difference, in quantisation steps of the output.
        difference: the first one, None when there is none.
        device, host: outputs per sample, logical shapes.
        ticks: of the device's timer, over all runs.
        ticks_per_s: how fast that counts.
        stack: deepest use of the device's stack in bytes.
    """

    samples: int
    bytes_compared: int
    max_abs_diff_lsb: int
    difference: Difference | None
    device: tuple[Sample, ...]
    host: tuple[Sample, ...]
    ticks: int
    ticks_per_s: int
    stack: int

    @property
    def verified(self) -> bool:
        return self.samples > 0 and self.difference is None


def verify(
    device: Device, plan: Plan, samples: Sequence[Sample], *, progress: Callable[[int], None] = lambda _: None
) -> Verdict:
    """Run every sample on the device and on the reference, and compare all bytes of all outputs.

    Args:
        device: the board, running this plan's program.
        plan: what runs there.
        samples: tuples of input arrays in logical shapes.
        progress: told how many samples are done.

    Raises:
        ModelError: a sample does not fit the program's inputs.
        DeviceError: the board runs another program, is silent, or reports a failure.
    """
    if device.hello.sha256 != plan.program.sha256:
        raise DeviceError(
            f"the board runs another program ({device.hello.model}, {device.hello.sha256[:12]})",
            where=device.hello.board,
            hint="Flash this model first: deploy MODEL --board BOARD.",
        )
    reference = Reference(plan.program)
    answers: list[Sample] = []
    expectations: list[Sample] = []
    ticks = 0
    compared = 0
    largest = 0
    first: Difference | None = None
    for number, sample in enumerate(samples):
        inputs = checked_sample(sample, plan, number)
        expected = reference.run(inputs)
        ticks += _run(device, plan, inputs)
        got = tuple(
            from_memory(array, plan.program.tensors[id])
            for array, id in zip(device.read_outputs(), plan.program.outputs, strict=True)
        )
        compared += sum(output.nbytes for output in got)
        difference = _first_difference(number, expected.outputs, got)
        if difference is not None:
            largest = max(largest, _distance_lsb(plan, expected.outputs, got))
            if first is None:
                layer = first_wrong_layer(fetch_layers(device, plan, inputs), plan, expected)
                first = Difference(*difference, layer)
        answers.append(got)
        expectations.append(expected.outputs)
        progress(number + 1)
    return Verdict(
        samples=len(answers),
        bytes_compared=compared,
        max_abs_diff_lsb=largest,
        difference=first,
        device=tuple(answers),
        host=tuple(expectations),
        ticks=ticks,
        ticks_per_s=device.hello.ticks_per_s,
        stack=device.stack_high_water(),
    )


def checked_sample(sample: Sample, plan: Plan, number: int) -> Sample:
    """The sample with the program's dtypes; raises ModelError when it does not fit the program's inputs."""
    ids = plan.program.inputs
    if len(sample) != len(ids):
        raise ModelError(f"sample {number} has {len(sample)} inputs; the model takes {len(ids)}", where=plan.model)
    arrays = []
    for index, (array, id) in enumerate(zip(sample, ids, strict=True)):
        tensor = plan.program.tensors[id]
        array = np.asarray(array)
        if array.shape != tensor.shape:
            raise ModelError(
                f"input {index} of sample {number} has shape {array.shape}; the model takes {tensor.shape}",
                where=plan.model,
                hint="The model was lowered for exactly this shape, batch included.",
            )
        if not np.can_cast(array.dtype, tensor.dtype.value, casting="same_kind"):
            raise ModelError(
                f"input {index} of sample {number} is {array.dtype}; the model takes {tensor.dtype.name.lower()}",
                where=plan.model,
            )
        arrays.append(array.astype(tensor.dtype.value))
    return tuple(arrays)


def fetch_layers(device: Device, plan: Plan, inputs: Sample) -> list[LayerRun]:
    """Run the steps one by one and fetch what each gives and takes."""
    _write(device, plan, inputs)
    runs = []
    for position, step in enumerate(plan.steps):
        ticks = device.invoke_layer(position)
        runs.append(LayerRun(device.read_layer(position, plan.tensor(step.operator.output).nbytes), ticks))
    return runs


def by_instruction(layers: Sequence[LayerRun], plan: Plan, inputs: Sample) -> dict[int, Array]:
    """Results of the steps, as the result of every instruction of the program, in logical shapes.

    Instructions that planning removed give the bytes of what they would have copied.
    """
    held: dict[int, Array] = {
        id: to_memory(array, plan.program.tensors[id]).view(np.uint8).reshape(-1)
        for id, array in zip(plan.program.inputs, inputs, strict=True)
    }
    held |= {step.operator.output: layer.result for step, layer in zip(plan.steps, layers, strict=True)}
    results = {}
    for op in plan.program.operators:
        source = plan.results.get(op.index)
        if source in held and op.index not in results:
            results[op.index] = from_memory(held[source], _result_tensor(plan, op.index))
    return results


def _result_tensor(plan: Plan, index: int) -> Any:
    """The tensor that the instruction itself gives: the last operator of that index, views for its operands aside."""
    operators = [op for op in plan.program.operators if op.index == index]
    return plan.program.tensors[operators[-1].output]


def _run(device: Device, plan: Plan, inputs: Sample) -> int:
    _write(device, plan, inputs)
    return device.invoke()


def _write(device: Device, plan: Plan, inputs: Sample) -> None:
    tensors = (plan.program.tensors[id] for id in plan.program.inputs)
    device.write_inputs([to_memory(array, tensor) for array, tensor in zip(inputs, tensors, strict=True)])


def _first_difference(
    number: int, expected: Sample, got: Sample
) -> tuple[int, int, tuple[int, ...], float, float] | None:
    for output, (right, answer) in enumerate(zip(expected, got, strict=True)):
        width = right.dtype.itemsize
        wrong = (_bytes(right).reshape(-1, width) != _bytes(answer).reshape(-1, width)).any(axis=1)
        if wrong.any():
            flat = int(np.argmax(wrong))
            element = tuple(int(i) for i in np.unravel_index(flat, right.shape))
            return number, output, element, float(right.reshape(-1)[flat]), float(answer.reshape(-1)[flat])
    return None


def _bytes(array: Array) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(array).view(np.uint8)


def _distance_lsb(plan: Plan, expected: Sample, got: Sample) -> int:
    """Largest difference in quantisation steps; at least 1 where any byte differs."""
    producers = {op.output: op for op in plan.program.operators}
    largest = 1
    for id, right, answer in zip(plan.program.outputs, expected, got, strict=True):
        producer = producers.get(id)
        step = producer.scale if isinstance(producer, Dequantize) else 1.0
        distance = np.abs(right.astype(np.float64) - answer.astype(np.float64)) / step
        if distance.size and np.isfinite(distance).all():
            largest = max(largest, int(np.rint(distance.max())))
    return largest


def first_wrong_layer(layers: Sequence[LayerRun], plan: Plan, expected: Execution) -> int | None:
    """Position of the first step whose result differs from the reference, None when every one is right."""
    for position, (step, layer) in enumerate(zip(plan.steps, layers, strict=True)):
        tensor = plan.tensor(step.operator.output)
        right = to_memory(expected.tensors[step.operator.output], tensor)
        if not np.array_equal(_bytes(right).reshape(-1), layer.result):
            return position
    return None
