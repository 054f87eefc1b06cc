"""Models that come as a `.pt2`."""

import pytest

from tests.lowering.conftest import work
from toolkit.errors import LoweringError, ModelError
from toolkit.lowering import load_model, lower


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def archive(layers, shape=(1, 3, 8, 8), *, train=False, without_inputs=False, dynamic=None, change=lambda e: e):
    """Exports a network from `layers(nn)` into net.pt2."""
    import torch

    torch.manual_seed(0)
    network = layers(torch.nn).train(train)
    exported = change(torch.export.export(network, (torch.randn(shape),), strict=True, dynamic_shapes=dynamic))
    if without_inputs:
        exported.example_inputs = None
    torch.export.save(exported, "net.pt2")


def convolution(nn):
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5))


def test_an_archive_with_its_inputs():
    archive(convolution)
    warnings = []
    model = load_model("net.pt2", warn=warnings.append)
    assert model.name == "net"
    assert [tuple(tensor.shape) for tensor in model.example_inputs] == [(1, 3, 8, 8)]
    assert len(model.calibration) == len(model.evaluation) == 1
    assert len(warnings) == 1
    assert "no calibration data" in warnings[0]
    program = lower(model, "cortex-m33")
    assert work(program.pte) == {"quantized_conv2d_nhwc": 1}
    assert "0" in program.layer_names


def test_an_archive_without_its_inputs():
    archive(convolution, without_inputs=True)
    with pytest.raises(ModelError, match="no example inputs"):
        load_model("net.pt2", warn=pytest.fail)
    model = load_model("net.pt2", random_calibration=3, warn=lambda _: None)
    assert [tuple(tensor.shape) for tensor in model.example_inputs] == [(1, 3, 8, 8)]
    assert len(model.calibration) == 3


def test_a_layer_that_does_not_lower_is_named():
    archive(lambda nn: nn.Sequential(nn.Flatten(), nn.LayerNorm(192)))
    with pytest.raises(LoweringError, match=r"1 \(LayerNorm\): native_layer_norm"):
        lower(load_model("net.pt2", warn=lambda _: None), "cortex-m33")


def quantized(exported):
    import torch
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    inputs = exported.example_inputs[0]
    prepared = prepare_pt2e(exported.module(check_guards=False), CortexMQuantizer(use_explicit_layout=True))
    prepared(*inputs)
    return torch.export.export(convert_pt2e(prepared), inputs, strict=True)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ({"change": lambda exported: exported.run_decompositions()}, "decomposed"),
        ({"train": True}, "training mode"),
        ({"change": quantized}, "quantised already"),
    ],
    ids=["decomposed", "training", "quantised"],
)
def test_archives_that_cannot_be_quantised(words, what):
    archive(convolution, **words)
    with pytest.raises(ModelError, match=what) as caught:
        load_model("net.pt2", warn=pytest.fail)
    assert caught.value.where == "net.pt2"
    assert "model.eval()" in caught.value.hint


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"x" * 1000])
def test_a_file_that_is_not_an_archive(tmp_path, content):
    (tmp_path / "net.pt2").write_bytes(content)
    with pytest.raises(ModelError, match="not an exported program"):
        load_model("net.pt2", warn=pytest.fail)
