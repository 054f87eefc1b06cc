"""What does not lower: an error that names the layer, its operator, its line and what to do."""

import pytest

from tests.lowering.conftest import network
from toolkit.errors import LoweringError
from toolkit.lowering import lower

IMAGE = "torch.randn(1, 3, 8, 8)"
VECTOR = "torch.randn(1, 8)"
CONV = "self.conv = nn.Conv2d(3, 4, 3)"


@pytest.fixture
def failure(load):
    def failed(forward, layers="pass", tensors=IMAGE):
        model = load(network(forward, layers), tensors=tensors)
        with pytest.raises(LoweringError) as caught:
            lower(model, "cortex-m33")
        return caught.value

    return failed


@pytest.mark.parametrize(
    ("forward", "layers", "tensors", "layer", "operator", "hint"),
    [
        ("self.rnn(x)[0]", "self.rnn = nn.LSTM(8, 4, batch_first=True)", "torch.randn(1, 2, 8)", "rnn (LSTM)",
         "sigmoid (6 times)", "Conv1d layers over a window"),
        ("self.fc(self.norm(x))", "self.norm = nn.LayerNorm(8)\nself.fc = nn.Linear(8, 2)", VECTOR, "norm (LayerNorm)",
         "native_layer_norm", "Use BatchNorm"),
        ("self.conv(x)[:, torch.tensor([2, 0])]", CONV, IMAGE, "in forward()", "index", "slices are"),
        ("F.log_softmax(self.fc(x), 1)", "self.fc = nn.Linear(8, 4)", VECTOR, "in forward()", "_log_softmax",
         "Leave it out"),
        ("F.interpolate(self.conv(x), scale_factor=1.5)", CONV, IMAGE, "in forward()", "upsample_nearest2d", "a whole"),
        ("F.interpolate(self.conv(x), scale_factor=2, mode='bilinear')", CONV, IMAGE, "in forward()",
         "upsample_bilinear2d", "(nearest)"),
        ("self.conv(x).flip(2)", CONV, IMAGE, "in forward()", "flip", "slices and concatenations"),
        ("self.c(x)", "self.c = nn.Conv3d(3, 4, 3)", "torch.randn(1, 3, 8, 8, 8)", "c (Conv3d)", "convolution",
         "one- and two-dimensional"),
        ("self.conv(x)", CONV, "torch.randn(3, 8, 8)", "conv (Conv2d)", "convolution", "batch dimension"),
    ],
)  # fmt: skip
def test_a_layer_that_would_stay_in_float(failure, forward, layers, tensors, layer, operator, hint):
    error = failure(forward, layers, tensors)
    listed = error.what.splitlines()
    assert listed[0] == "one part of the model cannot be lowered to int8 Cortex-M operators:"
    assert listed[1].startswith(f"    {layer}: ")
    assert operator in listed[1]
    number = network(forward, layers).splitlines().index(f"        return {forward}") + 5
    assert listed[1].endswith(f", at net.py:{number}: return {forward}")
    assert hint in error.what
    assert "no kernels for these operators" in error.hint
    assert error.where == "net.py"


SPATIAL = {
    "a (ConvTranspose2d)": ("nn.ConvTranspose2d(3, 3, 3, groups=3)", "cannot have groups"),
    "b (ConvTranspose2d)": ("nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1)", "output_padding"),
    "c (ConvTranspose2d)": ("nn.ConvTranspose2d(3, 4, 3, dilation=2)", "cannot be dilated"),
    "d (MaxPool2d)": ("nn.MaxPool2d(3, ceil_mode=True)", "ceil_mode is not supported"),
    "e (MaxPool2d)": ("nn.MaxPool2d(2, dilation=2)", "dilated pooling"),
    "f (AvgPool2d)": ("nn.AvgPool2d(2, divisor_override=3)", "divisor_override"),
    "g (AdaptiveAvgPool2d)": ("nn.AdaptiveAvgPool2d(3)", "must divide the input size"),
}


def test_all_of_them_are_named_at_once(failure):
    """Also those at which the passes of executorch would stop without a name."""
    names = [title[0] for title in SPATIAL]
    error = failure(
        f"({', '.join(f'self.{name}(x)' for name in names)})",
        "\n".join(f"self.{name} = {layer}" for name, (layer, _) in zip(names, SPATIAL.values(), strict=True)),
    )
    lines = error.what.splitlines()
    assert lines[0].startswith("7 parts of the model")
    assert [line.split(":")[0].strip() for line in lines[1::2]] == list(SPATIAL)
    for line, (_, hint) in zip(lines[2::2], SPATIAL.values(), strict=True):
        assert hint in line


def test_a_path_that_depends_on_the_data(failure):
    error = failure("self.conv(x) if x.sum() > 0 else x", CONV)
    assert error.what.startswith("torch cannot export the model: Data-dependent branching")
    assert "\n" not in error.what
    assert error.where == "net.py:11"
    assert error.hint.startswith("return self.conv(x) if x.sum() > 0 else x\n")


def test_a_dropout_that_drops(failure):
    error = failure("F.dropout(self.conv(x))", CONV)
    assert error.what == "this dropout is active although the model is in eval mode"
    assert error.where == "net.py:11"


def test_a_failure_inside_the_libraries_is_one_line_of_the_user(failure):
    error = failure("x * x.max().item()")
    assert error.where == "net.py:11"
    assert error.hint == "return x * x.max().item()"
    assert "\n" not in error.what


def test_a_value_that_is_not_a_number(failure):
    error = failure("torch.log(x)")
    assert error.what == "the model computes NaN or infinity for calibration input 0"
    error = failure("1 / (x - x)")
    assert error.what == "the model computes NaN or infinity for calibration input 0"
