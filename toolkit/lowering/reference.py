"""Running a model on the host: the answers that the device's are held against."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from toolkit.lowering.lower import Lowered
    from toolkit.lowering.model import Model

Arrays = tuple[NDArray[Any], ...]


def inference_copy(module: Any) -> Any:
    """A deep copy of a `torch.nn.Module` in eval mode, on the CPU, its tensors contiguous and without gradients.

    Contiguous, because a channels-last weight makes the exporter take what follows for channels-last too.
    """
    import torch

    module = copy.deepcopy(module)
    if not isinstance(module, torch.fx.GraphModule):
        module = module.eval().cpu()
    for layer in list(module.modules()):
        _bake(layer)
    for tensor in [*module.parameters(), *module.buffers()]:
        tensor.requires_grad_(False)
        tensor.data = tensor.data.contiguous()
    return module


def _bake(layer: Any) -> None:
    """Make constants of weights that a parametrisation (weight_norm and its like) computes at each call.

    By hand, because torch's own removal edits the class that the copy shares with the user's module.
    """
    import torch
    from torch.nn.utils import parametrize

    if not parametrize.is_parametrized(layer):
        return
    weights = {name: getattr(layer, name).detach() for name in layer.parametrizations}
    layer.__class__ = parametrize.type_before_parametrizations(layer)
    del layer.parametrizations
    for name, weight in weights.items():
        layer.register_parameter(name, torch.nn.Parameter(weight, requires_grad=False))


def run(module: Any, inputs: Iterable[Arrays]) -> tuple[Arrays, ...]:
    """Outputs of a module, one tuple per tuple of inputs; nested outputs are flattened in the exporter's order."""
    import torch
    from torch.utils import _pytree

    results = []
    with torch.no_grad():
        for sample in inputs:
            outputs = module(*(torch.tensor(array) for array in sample))  # copies: in-place layers write into them
            results.append(tuple(leaf.contiguous().numpy() for leaf in _pytree.tree_leaves(outputs)))
    return tuple(results)


def float_outputs(model: Model, inputs: Iterable[Arrays]) -> tuple[Arrays, ...]:
    """What the user's model computes in float32.

    Args:
        model: a loaded model.
        inputs: tuples of float32 arrays, one per input of the model, in the shapes of its example inputs.

    Returns:
        One tuple of arrays per tuple of inputs, one array per output of the model.
    """
    return run(inference_copy(model.module), inputs)


def quantized_outputs(lowered: Lowered, inputs: Iterable[Arrays]) -> tuple[Arrays, ...]:
    """What the quantised model computes: float32 arithmetic on values rounded to the int8 grid of every layer.

    This is what quantisation does to the accuracy. The device computes in integers and may differ by a step of the
    output's grid where float rounding and integer requantisation disagree.

    Args and returns as for `float_outputs`.
    """
    return run(lowered.quantized_module, inputs)
