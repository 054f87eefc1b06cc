"""Elementwise arithmetic becomes a table lookup, and arithmetic per channel a depthwise convolution."""

import numpy as np
import pytest

from tests.lowering.conftest import assert_close, executed, instructions, network, work
from toolkit.lowering import quantized_outputs

IMAGE = "torch.randn(1, 3, 8, 8)"
SIGNAL = "torch.randn(1, 3, 16)"
VECTOR = "torch.randn(1, 8)"
LOOKUP = {"quantized_activation": 1}

FUNCTIONS = [
    "torch.relu(x)",
    "F.leaky_relu(x, 0.2)",
    "F.elu(x)",
    "F.softplus(x)",
    "F.mish(x)",
    "F.hardswish(x)",
    "F.hardsigmoid(x)",
    "F.silu(x)",
    "F.gelu(x, approximate='tanh')",
    "torch.tanh(x) * 2 - 1",
    "(x - 0.5) / 0.25",
    "x * torch.sigmoid(x)",
    "x ** 2",
    "-x.abs()",
    "x.clamp(-1, 0.5)",
    "torch.where(x > 0, x, x * self.slope)",
    "torch.log(torch.relu(x) + 0.01)",
    "x.detach() + 1",
]


def test_a_function_of_one_element_is_one_lookup(lowered):
    """All of them in one model, with an output for each; the bytes are those of the quantised model."""
    body = network(f"({', '.join(FUNCTIONS)})", "self.slope = nn.Parameter(torch.tensor([0.1]))")
    model, program = lowered(body, tensors=VECTOR)
    assert work(program.pte) == {"quantized_activation": len(FUNCTIONS)}
    assert_close(model, program)
    for got, expected in zip(
        executed(program.pte, model.evaluation), quantized_outputs(program, model.evaluation), strict=True
    ):
        for function, one, other in zip(FUNCTIONS, got, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7, err_msg=function)


@pytest.mark.parametrize(
    ("forward", "layers", "tensors", "operators"),
    [
        ("F.gelu(self.a(x))", "self.a = nn.Linear(8, 4)", VECTOR, {"quantized_linear": 1, **LOOKUP}),
        ("torch.log(torch.softmax(self.a(x), 1) + 0.1)", "self.a = nn.Linear(8, 4)", VECTOR,
         {"quantized_linear": 1, "softmax": 1, **LOOKUP}),
        ("torch.tanh(self.a(x) / 2) + self.a(x)", "self.a = nn.Linear(8, 4)", VECTOR,
         {"quantized_linear": 2, "quantized_add": 1, **LOOKUP}),
        ("torch.sigmoid(x).mean((2, 3))", "pass", IMAGE, {"quantized_avg_pool2d_nhwc": 1, **LOOKUP}),
        ("F.leaky_relu(F.leaky_relu(x) + y)", "pass", "torch.randn(1, 8), torch.randn(1, 8)",
         {"quantized_add": 1, "quantized_activation": 2}),
    ],
    ids=["behind linear", "behind softmax", "one of two branches", "before pooling", "two inputs"],
)  # fmt: skip
def test_lookups_among_other_layers(lowered, forward, layers, tensors, operators):
    model, program = lowered(network(forward, layers, "x, y" if "y)" in forward else "x"), tensors=tensors)
    assert work(program.pte) == operators
    assert_close(model, program)


def test_a_function_that_changes_nothing_is_nothing(lowered):
    """Nor is one that changes the scale alone: the bytes stay, and mean something else."""
    _, program = lowered(network("(x.detach() + x) * 1.5"), tensors=VECTOR)
    assert instructions(program.pte) == ["cortex_m::quantize_per_tensor", "cortex_m::dequantize_per_tensor"]


def test_a_lookup_between_convolutions_costs_no_transposes(lowered):
    layers = (
        "self.net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.LeakyReLU(), nn.MaxPool2d(2), nn.SiLU(), nn.Conv2d(4, 2, 3))"
    )
    model, program = lowered(network("self.net(x)", layers), tensors="torch.randn(1, 3, 10, 10)")
    assert list(zip(instructions(program.pte), program.layer_names, strict=True)) == [
        ("cortex_m::quantize_per_tensor", ""),
        ("cortex_m::transpose", ""),
        ("cortex_m::quantized_conv2d_nhwc", "net.0"),
        ("cortex_m::quantized_activation", "net.1"),
        ("cortex_m::quantized_max_pool2d_nhwc", "net.2"),
        ("cortex_m::quantized_activation", "net.3"),
        ("cortex_m::quantized_conv2d_nhwc", "net.4"),
        ("cortex_m::transpose", ""),
        ("cortex_m::dequantize_per_tensor", ""),
    ]
    assert_close(model, program)


NUMBERS = """
def model(make=model):
    network = make()
    for layer in network.modules():
        if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2)
            if layer.affine:
                layer.weight.data.uniform_(-2, 2)
                layer.bias.data.normal_()
    return network
"""
BUFFERS = (
    "self.register_buffer('m', torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1))\nself.s = nn.Parameter(self.m[None] + 1)"
)
DEPTHWISE = {"quantized_depthwise_conv2d_nhwc": 1}


@pytest.mark.parametrize(
    ("forward", "layers", "tensors", "operators"),
    [
        ("torch.relu(self.n(x))", "self.n = nn.BatchNorm2d(3)", IMAGE, DEPTHWISE),
        ("self.n(torch.relu(self.c(x)))", "self.c = nn.Conv1d(3, 4, 3)\nself.n = nn.BatchNorm1d(4, affine=False)",
         SIGNAL, {"quantized_conv2d_nhwc": 1, **DEPTHWISE}),
        ("self.n(torch.relu(self.a(x)))", "self.a = nn.Linear(8, 4)\nself.n = nn.BatchNorm1d(4)", VECTOR,
         {"quantized_linear": 1, **DEPTHWISE}),
        ("self.n(self.a(x))", "self.a = nn.Linear(16, 8)\nself.n = nn.BatchNorm1d(3)", SIGNAL,
         {"quantized_linear": 1, **DEPTHWISE}),
        ("(x - self.m) / self.s", BUFFERS, IMAGE, DEPTHWISE),
        ("(self.m - x) * self.s + self.m", BUFFERS, IMAGE, DEPTHWISE),
    ],
    ids=["first", "behind relu", "vector", "other dimension", "normalise", "reversed"],
)  # fmt: skip
def test_numbers_per_channel_are_one_depthwise_convolution(lowered, forward, layers, tensors, operators):
    model, program = lowered(network(forward, layers) + NUMBERS, tensors=tensors)
    assert work(program.pte) == operators
    assert_close(model, program)


def test_a_batch_norm_behind_a_layer_folds_into_it(lowered):
    layers = (
        "self.c = nn.Conv2d(3, 4, 3)\nself.n = nn.BatchNorm2d(4)\nself.a = nn.Linear(4, 2)\nself.m = nn.BatchNorm1d(2)"
    )
    body = network("self.m(self.a(torch.relu(self.n(self.c(x))).mean((2, 3))))", layers)
    model, program = lowered(body + NUMBERS, tensors=IMAGE)
    assert work(program.pte) == {"quantized_conv2d_nhwc": 1, "quantized_avg_pool2d_nhwc": 1, "quantized_linear": 1}
    assert_close(model, program)
