"""The digits example: honest data, a network that reads it, and weights that are trained once."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from toolkit.lowering import float_outputs, load_model, lower, quantized_outputs

DIGITS = Path(__file__).parents[2] / "examples" / "digits.py"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache") / "not" / "there" / "yet"
        patch.setenv("DEPLOY_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def digits(cache):
    return load_model(str(DIGITS), warn=pytest.fail)


def imported(path):
    spec = importlib.util.spec_from_file_location("digits_example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bytes_of(images):
    return {np.ascontiguousarray(image).tobytes() for image in images}


def accuracy(outputs, labels):
    return float((np.array([output[0].argmax() for output in outputs]) == labels).mean())


def test_it_keeps_the_contract(digits):
    assert digits.name == "digits"
    assert digits.example_inputs[0].shape == (1, 1, 8, 8)
    assert len(digits.calibration) >= 50
    assert len(digits.evaluation) >= 360
    assert digits.class_names == tuple("0123456789")
    counts = np.bincount(digits.labels, minlength=10)
    assert counts.min() >= 30
    assert counts.sum() == len(digits.evaluation)


def test_the_labels_are_those_of_the_data_set(digits):
    from sklearn.datasets import load_digits

    data = load_digits()
    labels = {
        (image / 16).astype(np.float32).tobytes(): target
        for image, target in zip(data.images, data.target, strict=True)
    }
    assert len(labels) == 1797
    assert [labels[sample[0].tobytes()] for sample in digits.evaluation] == digits.labels.tolist()


def test_it_reads_scans_it_has_never_seen(digits):
    program = lower(digits, "cortex-m33")
    assert accuracy(float_outputs(digits, digits.evaluation), digits.labels) >= 0.97
    assert accuracy(quantized_outputs(program, digits.evaluation), digits.labels) >= 0.97
    names = ("stem.0", "block1.0", "block1.3", "pool", "block2.0", "block2.3", "pool", "classifier")
    assert tuple(name for name in program.layer_names if name) == names


def test_calibration_does_not_see_the_held_out_scans(digits):
    held_out = bytes_of(sample[0] for sample in digits.evaluation)
    assert len(held_out) == len(digits.evaluation)
    assert held_out.isdisjoint(bytes_of(sample[0].numpy() for sample in digits.calibration))


def test_training_does_not_see_the_held_out_scans(digits):
    """Nor any of them shifted, as training shifts its own."""
    import torch

    class Recorder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = set()
            self.layer = torch.nn.Linear(64, 10)

        def forward(self, x):
            self.seen |= bytes_of(x.numpy())
            return self.layer(x.flatten(1))

    recorder = Recorder()
    imported(DIGITS).train(recorder)
    assert len(recorder.seen) > 5000
    padded = [np.pad(sample[0][0], ((0, 0), (1, 1), (1, 1))) for sample in digits.evaluation]
    shifts = [(dy, dx) for dy in range(3) for dx in range(3)]
    assert recorder.seen.isdisjoint(bytes_of(p[:, dy : dy + 8, dx : dx + 8] for p in padded for dy, dx in shifts))


def test_training_is_repeatable_and_happens_once(digits, cache, tmp_path, monkeypatch, capfd):
    import torch

    [weights] = cache.iterdir()
    first = torch.load(weights)
    state = torch.random.get_rng_state()
    monkeypatch.setenv("DEPLOY_CACHE_DIR", str(tmp_path))
    module = imported(DIGITS)
    module.model()
    assert capfd.readouterr() == ("", "training the digits network...\n")
    second = torch.load(tmp_path / weights.name)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert torch.equal(torch.random.get_rng_state(), state)
    written = (tmp_path / weights.name).stat().st_mtime_ns
    again = module.model().state_dict()
    assert capfd.readouterr() == ("", "")
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert [(path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir()] == [(weights.name, written)]


def test_an_edited_file_is_trained_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("DEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    copy = tmp_path / "digits.py"
    for edit in ("", "# another line\n", "# another line\n"):
        shutil.copy(DIGITS, copy)
        copy.write_text(copy.read_text() + edit)
        module = imported(copy)
        monkeypatch.setattr(module, "train", lambda network: None)
        module.model()
    assert len(list((tmp_path / "cache").iterdir())) == 2
