"""Cutting, joining and repeating tensors, on the path that users' models take."""

from collections import Counter

import numpy as np
import pytest

from tests.lowering.conftest import assert_close, executed, instructions, network, work
from toolkit.lowering import quantized_outputs

IMAGE = "torch.randn(1, 3, 8, 6)"
SLICE, CAT, EXPAND = ({f"aten::{name}": 1} for name in ("slice_copy", "cat", "expand_copy"))

SPELLINGS = {
    "x[:, 1:]": SLICE,
    "x[..., 1::2]": SLICE,
    "x[:, :, -3:-1]": SLICE,
    "x.narrow(2, 3, 4)": SLICE,
    "x[:, 1]": SLICE,
    "x.select(-1, -2)": SLICE,
    "x.chunk(2, 2)[1]": SLICE,
    "x.split(3, 3)[0]": SLICE,
    "torch.split(x, [1, 2], dim=1)[1]": SLICE,
    "x.unbind(2)[5]": SLICE,
    "torch.cat([x, x[:, :1]], 1)": {**SLICE, **CAT},
    "torch.concat((x, x), -1)": CAT,
    "torch.stack([x, x], 2)": CAT,
    "F.interpolate(x, scale_factor=2)": EXPAND,
    "F.interpolate(x, size=(8, 18))": EXPAND,
    "F.interpolate(x[:, 0], scale_factor=3)": {**SLICE, **EXPAND},
    "x.repeat(1, 2, 1, 3)": EXPAND,
    "x.repeat(2, 1, 1, 1, 1)": EXPAND,
    "x * x[:, :1]": {**SLICE, **EXPAND, "quantized_mul": 1},
    "x - x[:, :, :1, :1]": {"aten::slice_copy": 2, **EXPAND, "quantized_add": 1},
    "x[:, 0] + x": {**SLICE, **EXPAND, "quantized_add": 1},
    "x + self.row": {**EXPAND, "quantized_add": 1},
    "x / (x[:, :, :, :1].abs() + 1)": {**SLICE, **EXPAND, "quantized_activation": 1, "quantized_div": 1},
}


def test_everything_that_moves_elements_is_three_operators(lowered):
    """One model with an output for each; the bytes are those of the quantised model."""
    body = network(f"({', '.join(SPELLINGS)})", "self.row = nn.Parameter(torch.randn(6))")
    model, program = lowered(body, tensors=IMAGE)
    assert work(program.pte) == sum((Counter(operators) for operators in SPELLINGS.values()), Counter())
    assert_close(model, program)
    got, expected = executed(program.pte, model.evaluation), quantized_outputs(program, model.evaluation)
    for one, other in zip(got, expected, strict=True):
        for spelling, left, right in zip(SPELLINGS, one, other, strict=True):
            if not any(operator.startswith("quantized") for operator in SPELLINGS[spelling]):
                np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-7, err_msg=spelling)


LAYERS = """
self.stem = nn.Conv2d(3, 8, 3, padding=1, stride=2)
self.down, self.up = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)
self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
self.narrow, self.wide = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 4, 3, padding=1)
self.grow = nn.ConvTranspose2d(8, 4, 2, stride=2)
self.last = nn.Conv2d(7, 2, 1)
"""
BLOCKS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
{layers}

    def forward(self, x):
        y = F.relu(self.stem(x))
        y = y * F.hardsigmoid(self.up(F.relu(self.down(y.mean((2, 3), keepdim=True)))))  # squeeze and excitation
        y = F.hardswish(self.depthwise(y))
        y = torch.cat([F.relu(self.narrow(y)), F.relu(self.wide(y))], 1)  # a fire module
        a, b = y.chunk(2, 1)
        y = torch.cat([b, a], 1)
        return self.last(torch.cat([F.relu(self.grow(y)), x], 1))  # a skip connection

def model():
    torch.manual_seed(1)
    return Net()
"""


def test_blocks_of_well_known_networks(lowered):
    """Nothing is transposed between them: images stay channels-last from the input to the output, and the input is
    turned for each of its two readers."""
    layers = "\n".join(" " * 8 + line for line in LAYERS.strip().splitlines())
    model, program = lowered(BLOCKS.format(layers=layers), tensors=IMAGE)
    assert work(program.pte) == {
        "quantized_conv2d_nhwc": 6,
        "quantized_depthwise_conv2d_nhwc": 1,
        "quantized_transpose_conv2d_nhwc": 1,
        "quantized_avg_pool2d_nhwc": 1,
        "quantized_mul": 1,
        "quantized_activation": 2,  # hardswish, and a ReLU that is joined with the input
        "aten::expand_copy": 1,
        "aten::slice_copy": 2,
        "aten::cat": 3,
    }
    assert instructions(program.pte).count("cortex_m::transpose") == 3
    assert_close(model, program)


def test_a_part_of_a_joined_tensor_keeps_its_activation(lowered):
    """All parts have one scale, so that a ReLU's zero is not at the end of the range: it becomes a lookup."""
    layers = "\n".join(f"self.{name} = nn.Conv2d(3, 2, 1)" for name in "abcd") + "\nself.fc = nn.Linear(6, 6)"
    parts = [
        "3 * self.a(x)",
        "F.relu(self.b(x))",
        "F.hardsigmoid(self.c(x))",
        "F.relu6(self.d(x))",
        "F.relu(self.fc(x))",
        "torch.clamp(self.b(x), -0.2, 0.3)",
    ]
    model, program = lowered(network(f"torch.cat([{', '.join(parts)}], 1)", layers), tensors=IMAGE)
    assert work(program.pte) == {
        "quantized_conv2d_nhwc": 5,
        "quantized_linear": 1,
        "quantized_activation": 5,  # three times a result is the same numbers with another scale
        "aten::cat": 1,
    }
    assert_close(model, program)
    for got, expected in zip(
        executed(program.pte, model.evaluation), quantized_outputs(program, model.evaluation), strict=True
    ):
        step = np.diff(np.unique(expected[0])).min()
        assert np.abs(got[0] - expected[0]).max() < 1.5 * step


@pytest.mark.parametrize("batch", [1, 2])
def test_a_gate_of_any_batch(lowered, batch):
    body = network("self.b(self.a(x) * torch.sigmoid(self.g(F.adaptive_avg_pool2d(x, 1))))",
                   "self.a = nn.Conv2d(3, 4, 3)\nself.g = nn.Conv2d(3, 4, 1)\nself.b = nn.Conv2d(4, 2, 1)")  # fmt: skip
    model, program = lowered(body, tensors=f"torch.randn({batch}, 3, 8, 8)")
    assert_close(model, program)
