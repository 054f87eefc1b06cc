"""What becomes of the layers of a model, on the path that users' models take."""

from collections import Counter

import pytest

from tests.lowering.conftest import assert_close, instructions, network, work
from toolkit.errors import LoweringError
from toolkit.lowering import float_outputs, lower
from toolkit.program import read_program

IMAGE = "torch.randn(1, 3, 8, 8)"
SIGNAL = "torch.randn(1, 3, 16)"
VECTOR = "torch.randn(1, 8)"
CONV = "self.conv = nn.Conv2d(3, 4, 3)"


@pytest.mark.parametrize(
    ("activation", "operators"),
    [
        ("SiLU", {"quantized_activation": 2}),
        ("Hardswish", {"quantized_activation": 2}),
        ("Hardsigmoid", {}),  # computed by the layer before
    ],
)
def test_an_activation_behind_a_layer(lowered, activation, operators):
    """One operator for each activation, in place behind a convolution and not in place behind a linear layer."""
    layers = f"{CONV}\nself.a = nn.{activation}(inplace=True)\nself.fc = nn.Linear(144, 5)\nself.b = nn.{activation}()"
    model, program = lowered(network("self.b(self.fc(self.a(self.conv(x)).flatten(1)))", layers), tensors=IMAGE)
    assert work(program.pte) == {"quantized_conv2d_nhwc": 1, "quantized_linear": 1, **operators}
    assert_close(model, program)


def test_max_pooling_is_one_operator(lowered):
    _, program = lowered(network("F.max_pool2d(x, 2)"), tensors=IMAGE)
    assert work(program.pte) == {"quantized_max_pool2d_nhwc": 1}


def test_a_linear_layer_is_one_operator(lowered):
    _, program = lowered(network("self.fc(x)", "self.fc = nn.Linear(8, 4)"), tensors=VECTOR)
    assert work(program.pte) == {"quantized_linear": 1}
    assert instructions(program.pte)[0] == "cortex_m::quantize_per_tensor"
    assert instructions(program.pte)[-1] == "cortex_m::dequantize_per_tensor"


@pytest.mark.parametrize(
    ("name", "body", "tensors", "operators"),
    [
        ("conv1d", network("self.c(x)", "self.c = nn.Conv1d(3, 4, 3)"), SIGNAL, {"quantized_conv2d_nhwc": 1}),
        ("grouped", network("self.c(x)", "self.c = nn.Conv2d(4, 8, 3, groups=2)"), "torch.randn(1, 4, 8, 8)",
         {"quantized_conv2d_nhwc": 1}),
        ("transposed", network("self.c(x)", "self.c = nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1)"), IMAGE,
         {"quantized_transpose_conv2d_nhwc": 1}),
        ("batch norm", network("torch.relu(self.n(self.conv(x)))", f"{CONV}\nself.n = nn.BatchNorm2d(4)"), IMAGE,
         {"quantized_conv2d_nhwc": 1}),
        ("two inputs", network("self.a(x) + y", "self.a = nn.Linear(8, 4)", "x, y"),
         "torch.randn(1, 8), torch.randn(1, 4)", {"quantized_linear": 1, "quantized_add": 1}),
        ("two outputs", network("(self.a(x), self.b(x))", "self.a = nn.Linear(8, 4)\nself.b = nn.Linear(8, 2)"), VECTOR,
         {"quantized_linear": 2}),
        ("decoder", network("self.c(F.relu(self.a(x)).view(1, 4, 4, 4))",
                            "self.a = nn.Linear(8, 64)\nself.c = nn.ConvTranspose2d(4, 2, 2, stride=2)"), VECTOR,
         {"quantized_linear": 1, "quantized_transpose_conv2d_nhwc": 1}),
        ("weight norm", network("self.a(x)", "self.a = nn.utils.parametrizations.weight_norm(nn.Linear(8, 4))"), VECTOR,
         {"quantized_linear": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) and "\n" not in value and "torch" not in value else "",
)  # fmt: skip
def test_layers_that_lower(lowered, name, body, tensors, operators):
    model, program = lowered(body, tensors=tensors)
    assert work(program.pte) == operators
    assert_close(model, program)


IMAGE_SPELLINGS = {
    "F.relu6(self.conv(x))": {"quantized_conv2d_nhwc": 1},
    "F.relu6(self.conv(x), inplace=True)": {"quantized_conv2d_nhwc": 1},
    "F.relu(F.dropout2d(self.conv(x), 0.5, self.training))": {"quantized_conv2d_nhwc": 1},
    "F.conv2d(x, self.conv.weight, padding='same')": {"quantized_conv2d_nhwc": 1},
    "F.conv2d(x, self.even.weight, padding='same', dilation=(1, 2))": {"pad": 1, "quantized_conv2d_nhwc": 1},
    "F.conv2d(x, self.even.weight, padding='valid', stride=2)": {"quantized_conv2d_nhwc": 1},
    "F.adaptive_avg_pool2d(x, (2, 4))": {"quantized_avg_pool2d_nhwc": 1},
    "F.adaptive_max_pool2d(x, 1)": {"quantized_max_pool2d_nhwc": 1},
    "self.conv(x.to(memory_format=torch.channels_last))": {
        "dim_order_ops::_clone_dim_order": 1,
        "quantized_conv2d_nhwc": 1,
    },
}
SIGNAL_SPELLINGS = {
    "F.conv1d(x, self.c.weight, padding='same')": {"pad": 1, "quantized_conv2d_nhwc": 1},
    "F.conv1d(x, self.c.weight, padding='valid', stride=2)": {"quantized_conv2d_nhwc": 1},
    "F.max_pool1d(x, 3, 2, 1)": {"quantized_max_pool2d_nhwc": 1},
    "F.avg_pool1d(x, 4, 2)": {"quantized_avg_pool2d_nhwc": 1, "pad": 1},
    "F.adaptive_avg_pool1d(x, 2)": {"quantized_avg_pool2d_nhwc": 1},
    "F.adaptive_max_pool1d(x, 2)": {"quantized_max_pool2d_nhwc": 1},
    "x.mean(-1)": {"quantized_avg_pool2d_nhwc": 1},
    "x.mean(2, keepdim=True)": {"quantized_avg_pool2d_nhwc": 1},
}


@pytest.mark.parametrize(
    ("spellings", "layers", "tensors"),
    [
        (IMAGE_SPELLINGS, f"{CONV}\nself.even = nn.Conv2d(3, 4, (2, 3))", IMAGE),
        (SIGNAL_SPELLINGS, "self.c = nn.Conv1d(3, 4, 4)", SIGNAL),
    ],
    ids=["images", "signals"],
)
def test_other_spellings_of_what_lowers(lowered, spellings, layers, tensors):
    """One model with an output for each, so that it is lowered once."""
    model, program = lowered(network(f"({', '.join(spellings)})", layers), tensors=tensors)
    expected = sum((Counter(operators) for operators in spellings.values()), Counter())
    assert work(program.pte) == expected
    assert_close(model, program)


@pytest.mark.parametrize("channels", [1, 3])
def test_both_memory_formats_give_the_same_program(lowered, channels):
    """One channel has the same bytes in both formats, and only the strides tell them apart."""
    layers = f"self.a = nn.Conv2d({channels}, 4, 3)\nself.b = nn.Conv2d(4, 4, 3, groups=4)\nself.c = nn.Conv2d(4, 1, 1)"
    body = network("self.c(self.b(self.a(x)))", layers)
    tensors = f"torch.randn(1, {channels}, 8, 8)"
    _, contiguous = lowered(body, tensors=tensors)
    last = ".to(memory_format=torch.channels_last)"
    _, channels_last = lowered(body.replace("return Net()", f"return Net(){last}"), tensors=tensors + last)
    assert channels_last.pte == contiguous.pte


def test_every_cpu_has_its_own_program(lowered):
    body = network("self.fc(x)", "self.fc = nn.Linear(8, 4)")
    programs = {cpu: lowered(body, tensors=VECTOR, cpu=cpu)[1] for cpu in ("cortex-m0plus", "cortex-m55")}
    assert [program.cpu for program in programs.values()] == list(programs)
    assert programs["cortex-m55"].pte != programs["cortex-m0plus"].pte  # M55 gets kernel sums


@pytest.mark.parametrize("cpu", ["cortex-m99", "rp2350", ""])
def test_an_unknown_cpu(load, cpu):
    model = load(network("x"), tensors=VECTOR)
    with pytest.raises(LoweringError, match="CPU") as caught:
        lower(model, cpu)
    assert repr(cpu) in caught.value.what


def test_the_program_is_the_one_the_next_room_reads(lowered):
    body = network("self.fc(F.max_pool2d(F.relu(self.conv(x)), 2).flatten(1))", f"{CONV}\nself.fc = nn.Linear(36, 5)")
    _, lowering = lowered(body, tensors=IMAGE)
    program = read_program(lowering.pte)
    assert program.macs == 6 * 6 * 4 * 27 + 36 * 5
    assert program.tensors[program.outputs[0]].shape == (1, 5)
    assert all(step.lowered for step in lowering.coverage)
    assert [step.operator for step in lowering.coverage] == instructions(lowering.pte)


LAYERED = """
class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(Block(3, 4), Block(4, 4))
        self.extra = nn.ModuleList([Block(4, 4)])
        self.head = nn.Linear(4 * 16, 5)

    def forward(self, x):
        x = self.features(x)
        x = x + self.extra[0](x)
        return self.head(F.max_pool2d(x, 2).flatten(1))

def model():
    return Net()
"""


def test_instructions_are_named_by_the_layers_of_the_user(lowered):
    _, program = lowered(LAYERED, tensors=IMAGE)
    assert list(zip(instructions(program.pte), program.layer_names, strict=True)) == [
        ("cortex_m::quantize_per_tensor", ""),
        ("cortex_m::transpose", ""),
        ("cortex_m::quantized_conv2d_nhwc", "features.0.conv"),
        ("cortex_m::quantized_conv2d_nhwc", "features.1.conv"),
        ("cortex_m::quantized_conv2d_nhwc", "extra.0.conv"),
        ("cortex_m::quantized_add", ""),
        ("cortex_m::quantized_max_pool2d_nhwc", ""),
        ("cortex_m::transpose", ""),
        ("cortex_m::quantized_linear", "head"),
        ("cortex_m::dequantize_per_tensor", ""),
    ]


def test_the_module_of_the_user_is_left_as_it_was(load):
    import torch

    model = load(LAYERED, tensors=IMAGE)
    model.module.train()
    model.module.to(memory_format=torch.channels_last)
    before = {name: value.clone() for name, value in model.module.state_dict().items()}
    lower(model, "cortex-m33")
    float_outputs(model, model.evaluation)
    after = model.module.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(module.training for module in model.module.modules())
    assert all(parameter.requires_grad for parameter in model.module.parameters())
    assert model.module.head.weight.is_contiguous()
    assert not model.module.features[0].conv.weight.is_contiguous()
