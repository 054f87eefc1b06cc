"""Saying which operators of a program are not Cortex-M operators, all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.errors import ProgramError
from toolkit.program.place import Place, quote
from toolkit.program.signatures import PORTABLE_INT8, SIGNATURES
from toolkit.program.types import DType
from toolkit.program.values import StoredTensor, StoredTensors, Values

_MOST_NAMED = 8
_LAYERS = {
    "convolution": "a convolution",
    "linear": "a linear layer",
    "addmm": "a linear layer",
    "mm": "a matrix product",
    "bmm": "a batched matrix product",
    "mean": "a mean",
    "avg_pool2d": "an average pooling",
    "max_pool2d_with_indices": "a maximum pooling",
    "relu": "a ReLU",
    "clamp": "a clamp",
    "hardtanh": "a clamp",
    "sigmoid": "a sigmoid",
    "tanh": "a tanh",
    "_softmax": "a softmax",
    "native_layer_norm": "a layer normalisation",
    "_native_batch_norm_legit_no_training": "a batch normalisation",
    "add": "a sum",
    "sub": "a difference",
    "mul": "a product",
    "div": "a quotient",
    "cat": "a concatenation",
    "slice_copy": "a slice",
    "expand_copy": "a repetition",
    "permute_copy": "a permutation",
    "embedding": "an embedding",
}
_FLOAT_HINT = (
    "Lower with use_explicit_layout=True and contiguous inputs (or with channels_last inputs in the legacy layout); "
    "what still stays in float has no quantised kernel and must be replaced in the model."
)
_OWN_NAMESPACE = "cortex_m::"
_UNKNOWN_HINT = "Export the model again with the executorch version that this toolkit is made for."
_OTHER_HINT = "Replace the layer in the model, or move it before the first or behind the last quantised one."


def is_unsupported(name: str, ids: tuple[int, ...], values: Values) -> bool:
    """Whether a call of an operator with these arguments has no typed operator."""
    return name not in SIGNATURES or (name in PORTABLE_INT8 and _reads_float(ids, values))


def unsupported_operators(
    calls: Sequence[tuple[int, str, tuple[int, ...]]], values: Values, place: Place
) -> ProgramError:
    """One error for every call that has no typed operator.

    Args:
        calls: instruction index, `namespace::operator` and argument ids; not empty.
        values: the plan's values, from which the element types come.
        place: the plan.
    """
    unknown = [call for call in calls if call[1].startswith(_OWN_NAMESPACE)]
    in_float = [call for call in calls if call not in unknown and _reads_float(call[2], values)]
    named = unknown or in_float or list(calls)
    listed = ", ".join(_name(index, name) for index, name, _ in named[:_MOST_NAMED])
    if len(named) > _MOST_NAMED:
        listed += f" and {len(named) - _MOST_NAMED} more"
    where = place.inside(f"operator {named[0][0]}")
    count = f"{len(named)} operators have" if len(named) > 1 else "an operator has"
    if unknown:
        return where.error(f"{count} an unknown name: {listed}", hint=_UNKNOWN_HINT)
    if in_float:
        return where.error(
            f"{count} not been quantised or lowered for Cortex-M and would run in float: {listed}", hint=_FLOAT_HINT
        )
    return where.error(f"{count} no Cortex-M kernel: {listed}", hint=_OTHER_HINT)


def _name(index: int, name: str) -> str:
    layer = _LAYERS.get(name.partition("::")[2])
    return f"{quote(name)} ({layer}, operator {index})" if layer else f"{quote(name)} (operator {index})"


def _reads_float(ids: tuple[int, ...], values: Values) -> bool:
    """Whether a call touches a float tensor. Values that cannot be decoded are not what this error is about."""
    for id_ in ids:
        try:
            value = values.value(id_)
        except ProgramError:
            continue
        stored = value.tensors if isinstance(value, StoredTensors) else (value,)
        if any(isinstance(one, StoredTensor) and one.tensor.dtype is DType.FLOAT32 for one in stored):
            return True
    return False
