"""Writes the programs in this folder, with the results that executorch's own operators give.

    python tests/program/lowered/generate.py

Each `NAME.pte` comes with `NAME.npz`: `input0`, ... and `output0`, ... in logical order. The outputs are those of the
lowered graph run by PyTorch, that is of executorch's Python operators, not of this project's code. The files are kept
in the tree, so that reading them needs neither torch nor a lowering; run this again to follow a newer executorch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

FOLDER = Path(__file__).parent
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Recipe:
    """A model and how to lower it; `explicit` selects the `*_nhwc` operators, else inputs are channels_last."""

    model: Callable[[], nn.Module]
    shapes: tuple[Shape, ...]
    explicit: bool = True
    cpu: str = "cortex-m33"
    channels_last: bool = True


class Convolutions(nn.Module):
    """A convolution, a grouped one without a bias, maximum pooling, and a flattening that must reorder."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.grouped = nn.Conv2d(8, 8, 3, padding=1, groups=2, bias=False)
        self.last = nn.Linear(8 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(torch.relu(self.first(x)), 2)
        x = functional.max_pool2d(torch.relu(self.grouped(x)), 2)
        return self.last(x.flatten(1))


class OneChannel(nn.Module):
    """One input channel (a depthwise convolution with a multiplier, no transpose) and different strides."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 6, (5, 3), stride=(2, 1), padding=(2, 1))
        self.depthwise = nn.Conv2d(6, 12, 3, padding=1, groups=6)
        self.last = nn.Conv2d(12, 5, (1, 3))

    def forward(self, x: Tensor) -> Tensor:
        x = functional.hardtanh(self.depthwise(torch.relu(self.first(x))), -1.0, 1.0)
        return self.last(x)


class Dilated(nn.Module):
    """PyTorch has no integer kernel for these, so there are no outputs to compare with."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 5, 3, padding=(1, 2), dilation=(1, 2))
        self.depthwise = nn.Conv2d(5, 5, 3, padding=2, dilation=2, groups=5)

    def forward(self, x: Tensor) -> Tensor:
        return self.depthwise(self.first(x))


class Linears(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 7)
        self.no_bias = nn.Linear(7, 5, bias=False)
        self.last = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.no_bias(torch.relu(self.first(x))))


class Elementwise(nn.Module):
    """Sums, differences, products, quotients, tables; two inputs and two outputs."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        gate = torch.sigmoid(x)
        mixed = (x * gate + y) - gate
        return mixed / gate, functional.softmax(torch.tanh(mixed), dim=-1)


class Extrema(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(x, y), x + y)


class Gate(nn.Module):
    """A product with one factor per channel, as squeeze-and-excitation has it, and a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(6, 6, 1)
        self.up = nn.ConvTranspose2d(6, 4, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        factors = torch.sigmoid(self.squeeze(functional.avg_pool2d(x, (6, 5))))
        return self.up(x * factors)


class Pools(nn.Module):
    """Padding, pooling over padded windows counted and not counted, and rounding up of sizes."""

    def forward(self, x: Tensor) -> Tensor:
        x = functional.avg_pool2d(functional.pad(x, (1, 2, 0, 1)), 3, stride=2, padding=1, count_include_pad=True)
        x = functional.max_pool2d(x, 3, stride=1, padding=1)
        return functional.avg_pool2d(x, 2, stride=2, padding=1, ceil_mode=True, count_include_pad=False)


class Upsampling(nn.Module):
    """A transposed convolution of one channel: its weight is contiguous in more than one dim order."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(1, 3, (3, 2), stride=(1, 2))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.up(x))


class Bounds(nn.Module):
    """Clamps that nothing before them can take up, and hard-swish, whose product has a zero point outside int8."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        return functional.hardswish(self.linear(torch.clamp(torch.relu(x), 0.1, 1.5)))


class Matmul(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.bmm(x, y)


class Signal(nn.Module):
    """One-dimensional convolutions over a batch of one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(4, 6, 5, padding=2)
        self.second = nn.Conv1d(6, 3, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x)))


class Joining(nn.Module):
    """Tensors behind one another along every axis, slices with and without gaps, and repetitions."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.second = nn.Conv2d(3, 2, 1)
        self.last = nn.Conv2d(6, 3, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        joined = torch.cat([self.first(x), self.second(x)], 1)
        rows = torch.cat([joined[:, :, 1:4], joined[:, :, :2], joined[:, :, -1:]], 2)
        repeated = functional.avg_pool2d(joined, (6, 8)).expand(-1, -1, 6, 8)
        return self.last(rows), joined[:, 4:, ::2, 1::3], repeated


class Branches(nn.Module):
    """Two branches behind one another. Slices of an image in channels-last order come out in another order: no runtime
    takes that."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.second = nn.Conv2d(3, 2, 1)
        self.last = nn.Conv2d(6, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.cat([self.first(x), self.second(x)], 1))


class Repeating(nn.Module):
    """Nearest upsampling as a repetition, between convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.last = nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        batch, channels, height, width = x.shape
        x = x.unsqueeze(3).unsqueeze(5).expand(batch, channels, height, 2, width, 3)
        return self.last(x.reshape(batch, channels, 2 * height, 3 * width))


RECIPES: dict[str, Recipe] = {
    "convolutions_explicit": Recipe(Convolutions, ((1, 3, 8, 8),)),
    "convolutions_legacy": Recipe(Convolutions, ((1, 3, 8, 8),), explicit=False),
    "convolutions_batch2": Recipe(Convolutions, ((2, 3, 8, 8),)),
    "convolutions_in_float": Recipe(Convolutions, ((1, 3, 8, 8),), explicit=False, channels_last=False),
    "one_channel_explicit": Recipe(OneChannel, ((1, 1, 12, 10),)),
    "one_channel_legacy": Recipe(OneChannel, ((1, 1, 12, 10),), explicit=False),
    "dilated": Recipe(Dilated, ((1, 4, 9, 8),)),
    "linears_m33": Recipe(Linears, ((2, 12),)),
    "linears_m55": Recipe(Linears, ((2, 12),), cpu="cortex-m55"),
    "elementwise": Recipe(Elementwise, ((2, 3, 8), (2, 3, 8))),
    "extrema": Recipe(Extrema, ((1, 5, 7), (1, 5, 7))),
    "gate_legacy": Recipe(Gate, ((1, 6, 6, 5),), explicit=False),
    "pools_explicit": Recipe(Pools, ((1, 3, 7, 6),)),
    "pools_legacy": Recipe(Pools, ((1, 3, 7, 6),), explicit=False),
    "upsampling_explicit": Recipe(Upsampling, ((1, 1, 5, 4),)),
    "upsampling_legacy": Recipe(Upsampling, ((1, 1, 5, 4),), explicit=False),
    "bounds": Recipe(Bounds, ((3, 6),)),
    "matmul": Recipe(Matmul, ((2, 3, 4), (2, 4, 5))),
    "joining_explicit": Recipe(Joining, ((1, 3, 6, 8),)),
    "joining_legacy": Recipe(Branches, ((1, 3, 6, 8),), explicit=False),
    "joining_batch2": Recipe(Joining, ((2, 3, 6, 8),)),
    "repeating": Recipe(Repeating, ((1, 3, 5, 4),)),
    "signal": Recipe(Signal, ((1, 4, 20),)),
}


def lower(recipe: Recipe) -> tuple[bytes, list[Tensor], list[Tensor]]:
    """The program, an input and the outputs that executorch's operators give for it."""
    from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
    from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
    from executorch.backends.cortex_m.target_config import CortexMTargetConfig
    from executorch.exir import to_edge
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    def sample() -> tuple[Tensor, ...]:
        tensors = [torch.randn(shape) for shape in recipe.shapes]
        legacy = not recipe.explicit and recipe.channels_last
        return tuple(t.to(memory_format=torch.channels_last) if legacy and t.dim() == 4 else t for t in tensors)

    torch.manual_seed(1)
    model = recipe.model().eval()
    inputs = sample()
    quantizer: Any = CortexMQuantizer(use_explicit_layout=recipe.explicit)
    prepared = prepare_pt2e(torch.export.export(model, inputs, strict=True).module(check_guards=False), quantizer)
    for _ in range(8):
        prepared(*sample())
    exported = torch.export.export(convert_pt2e(prepared), inputs, strict=True)
    edge = to_edge(exported, compile_config=cortex_m_edge_compile_config())
    lowered = CortexMPassManager(
        edge.exported_program(),
        target_config=CortexMTargetConfig.from_target_string(recipe.cpu),
        use_explicit_layout=recipe.explicit,
    ).transform()
    with torch.no_grad():
        try:
            result = lowered.module()(*inputs)
        except NotImplementedError:
            result = []
    edge._edge_programs["forward"] = lowered
    outputs = list(result) if isinstance(result, tuple | list) else [result]
    return edge.to_executorch().buffer, list(inputs), outputs


def main() -> None:
    for name, recipe in RECIPES.items():
        program, inputs, outputs = lower(recipe)
        (FOLDER / f"{name}.pte").write_bytes(program)
        arrays = {f"input{i}": t.numpy() for i, t in enumerate(inputs)}
        arrays.update({f"output{i}": t.numpy() for i, t in enumerate(outputs)})
        np.savez_compressed(FOLDER / f"{name}.npz", **arrays)
        print(f"{name}: {len(program)} bytes")


if __name__ == "__main__":
    main()
