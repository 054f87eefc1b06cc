"""Checks of the tensors a user's file yields: what is wrong is said in terms of that file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolkit.errors import ModelError

Sample = tuple[Any, ...]
"""One tensor per input of the model, all float32 on the CPU, contiguous."""


def check_example(value: object, where: str) -> Sample:
    """The example inputs as plain contiguous tensors.

    Raises:
        ModelError: not a tuple of at least one finite float32 tensor.
    """
    doing = "example_inputs()"
    tensors = _tensors(value, doing, where)
    if not tensors:
        raise ModelError(f"{doing} returned an empty tuple", where=where, hint="A model needs at least one input.")
    for i, tensor in enumerate(tensors):
        _check_dtype(tensor, f"{doing}: input {i}", where)
        _check_finite(tensor, f"{doing}: input {i}", where)
        if 0 in tensor.shape:
            raise ModelError(f"{doing}: input {i} has shape {tuple(tensor.shape)}: it has no elements", where=where)
    return tuple(_plain(tensor) for tensor in tensors)


def check_samples(values: Iterable[object], example: Sample, doing: str, where: str) -> tuple[Sample, ...]:
    """Tuples of inputs, each like the example in number, shape and dtype.

    Args:
        values: what the user's function gave.
        example: the checked example inputs.
        doing: the user's function, for the errors ("calibration_inputs()").

    Raises:
        ModelError: nothing there, or a tuple that the exported model cannot take.
    """
    if _is_tensor(values) or not isinstance(values, Iterable):
        raise ModelError(
            f"{doing} returned {_kind(values)}, not an iterable of tuples",
            where=where,
            hint="Return a list of tuples, one tensor per input of the model: [(x0,), (x1,), ...].",
        )
    samples = []
    for number, value in enumerate(values):
        place = f"{doing}: item {number}"
        tensors = _tensors(value, place, where)
        if len(tensors) != len(example):
            raise ModelError(
                f"{place} has {_count(len(tensors), 'tensor')}, but example_inputs() has {len(example)}", where=where
            )
        for i, (tensor, like) in enumerate(zip(tensors, example, strict=True)):
            _check_dtype(tensor, f"{place}, input {i}", where)
            _check_shape(tensor, like, f"{place}, input {i}", where)
            _check_finite(tensor, f"{place}, input {i}", where)
        samples.append(tuple(_plain(tensor) for tensor in tensors))
    if not samples:
        raise ModelError(f"{doing} gave no inputs at all", where=where)
    return tuple(samples)


def _tensors(value: object, place: str, where: str) -> Sample:
    hint = "Return a tuple with one tensor per input of the model; a single one is written (x,)."
    if not isinstance(value, tuple):
        raise ModelError(f"{place} is {_kind(value)}, not a tuple of tensors", where=where, hint=hint)
    for i, tensor in enumerate(value):
        if not _is_tensor(tensor):
            hint = "Convert a numpy array with torch.from_numpy()." if type(tensor).__name__ == "ndarray" else hint
            raise ModelError(f"{place}: input {i} is {_kind(tensor)}, not a tensor", where=where, hint=hint)
    return value


def _check_dtype(tensor: Any, place: str, where: str) -> None:
    import torch

    if tensor.dtype != torch.float32:
        dtype = str(tensor.dtype).removeprefix("torch.")
        raise ModelError(
            f"{place} is {dtype}, but only float32 inputs can be quantised",
            where=where,
            hint="Convert with .float(); the values the device takes are float32 too.",
        )


def _check_shape(tensor: Any, like: Any, place: str, where: str) -> None:
    shape, expected = tuple(tensor.shape), tuple(like.shape)
    if shape == expected:
        return
    hint = "The model is lowered for the shapes of example_inputs(), and every other input must have them."
    if shape[1:] == expected[1:]:
        hint = f"Yield batches of {expected[0]} as in example_inputs(): on the device the batch size is fixed."
    elif shape == expected[1:]:
        hint = "The batch dimension is missing: add it with x.unsqueeze(0) or x[None]."
    raise ModelError(f"{place} has shape {shape}, but example_inputs() has {expected}", where=where, hint=hint)


def _check_finite(tensor: Any, place: str, where: str) -> None:
    import torch

    if not bool(torch.isfinite(tensor).all()):
        raise ModelError(
            f"{place} holds NaN or infinity",
            where=where,
            hint="Quantisation takes its ranges from these values; clean the data first.",
        )


def _plain(tensor: Any) -> Any:
    """A copy with row-major strides, on the CPU, outside of autograd.

    A clone, because `contiguous()` keeps the channels-last strides of a one-channel image (they describe the same
    bytes), and from the strides the lowering would take it for a channels-last one.
    """
    import torch

    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)


def _is_tensor(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _kind(value: object) -> str:
    if value is None:
        return "None"
    if _is_tensor(value):
        return "a tensor"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
