"""Model files: what is read from a right one, and what is said about a wrong one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.lowering.conftest import network
from toolkit.errors import ModelError, UsageError
from toolkit.lowering import float_outputs, load_model

ROOT = Path(__file__).parents[2]
VECTOR = "torch.randn(1, 8)"
NET = network("self.fc(x)", "self.fc = nn.Linear(8, 4)")
COMPLETE = f"""
{NET}
CLASS_NAMES = ["a", "b", "c", "d"]

def example_inputs():
    return (torch.ones(1, 8),)

def calibration_inputs():
    return ((torch.full((1, 8), float(i)),) for i in range(3))

def evaluation_set():
    return [(torch.full((1, 8), i / 2),) for i in range(2)], [3, 0]
"""
LINES_BEFORE = 5  # of a body given to `write`, whose own first line is empty


@pytest.fixture
def failure(write):
    """Writes a model file that cannot be loaded and returns the error."""

    def failed(body, spec=None, **words):
        name = write(body)
        with pytest.raises(ModelError) as caught:
            load_model(spec or name, warn=lambda _: None, **words)
        return caught.value

    return failed


def line_of(body, text):
    return next(n for n, line in enumerate(body.splitlines()) if text in line) + LINES_BEFORE


def test_a_complete_file(write):
    import torch

    path = write(COMPLETE, name="gestures.py")
    model = load_model(path, warn=pytest.fail)
    assert model.name == "gestures"
    assert model.source == Path(path).resolve()
    assert isinstance(model.module, torch.nn.Module)
    assert [tuple(tensor.shape) for tensor in model.example_inputs] == [(1, 8)]
    assert [float(sample[0][0, 0]) for sample in model.calibration] == [0, 1, 2]
    assert [array.dtype for sample in model.evaluation for array in sample] == [np.float32] * 2
    assert [float(sample[0][0, 0]) for sample in model.evaluation] == [0, 0.5]
    assert model.labels.dtype == np.int64
    assert model.labels.tolist() == [3, 0]
    assert model.class_names == ("a", "b", "c", "d")


def test_without_an_evaluation_set_the_calibration_inputs_are_evaluated(load):
    model = load(NET, tensors=VECTOR)
    assert len(model.evaluation) == 4
    for sample, arrays in zip(model.calibration, model.evaluation, strict=True):
        assert np.array_equal(sample[0].numpy(), arrays[0])
    assert model.labels is None
    assert model.class_names is None


def test_the_float_model_runs_in_eval_mode(load):
    """One output per input, each what plain PyTorch computes."""
    import torch

    body = network("self.fc(F.dropout(x, 0.5, self.training))", "self.fc = nn.Linear(8, 4)")
    model = load(body, tensors=VECTOR)
    assert model.module.training
    outputs = float_outputs(model, model.evaluation)
    with torch.no_grad():
        expected = [model.module.fc(torch.from_numpy(sample[0])).numpy() for sample in model.evaluation]
    assert [len(output) for output in outputs] == [1, 1, 1, 1]
    assert np.array_equal([output[0] for output in outputs], expected)


@pytest.mark.parametrize(
    ("suffix", "name"), [(":Net", "Net"), (":build", "build"), (":ready", "ready"), (":model", "net"), ("", "net")]
)
def test_the_model_can_be_an_attribute(write, suffix, name):
    path = write(f"{COMPLETE}\ndef build(size=4):\n    return Net()\n\nready = Net()\n")
    model = load_model(path + suffix, warn=pytest.fail)
    assert model.name == name
    assert type(model.module).__name__ == "Net"


def test_a_dotted_module(write, tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "sizes.py").write_text("OUTPUTS = 4\n")
    write(COMPLETE.replace("nn.Linear(8, 4)", "nn.Linear(8, OUTPUTS)"), name="shop/counter.py")
    path = tmp_path / "shop" / "counter.py"
    path.write_text("from shop.sizes import OUTPUTS\n" + path.read_text())
    model = load_model("shop.counter", warn=pytest.fail)
    assert model.name == "counter"
    assert model.source == path


def test_a_file_can_import_its_neighbours_and_leaves_nothing_behind(write, tmp_path):
    (tmp_path / "layers_of_mine.py").write_text("SIZE = 4\n")
    before, path = list(sys.path), write("from layers_of_mine import SIZE\n" + COMPLETE)
    load_model(path, warn=pytest.fail)
    assert sys.path == before
    assert not list(tmp_path.glob("__pycache__/net*"))


def test_no_calibration_data(write):
    warnings = []
    path = write(f"{NET}\ndef example_inputs():\n    return (torch.ones(1, 8),)\n")
    model = load_model(path, warn=warnings.append)
    assert len(warnings) == 1
    assert "net.py defines no calibration_inputs()" in warnings[0]
    assert len(model.calibration) == 1
    assert model.calibration[0][0].tolist() == [[1.0] * 8]


def test_random_calibration_data(write):
    warnings = []
    path = write(COMPLETE.replace("torch.ones(1, 8)", "torch.full((1, 8), 5.0)"))
    models = [load_model(path, random_calibration=50, warn=warnings.append) for _ in range(2)]
    assert len(warnings) == 2
    assert "50 random inputs" in warnings[0]
    drawn = [np.array([sample[0].numpy() for sample in model.calibration]) for model in models]
    assert drawn[0].shape == (50, 1, 8)
    assert np.array_equal(drawn[0], drawn[1])
    assert abs(drawn[0].mean() - 5) < 0.2
    assert abs(drawn[0].std() - 1) < 0.2
    with pytest.raises(UsageError, match="0 random inputs"):
        load_model(path, random_calibration=0, warn=warnings.append)


def test_strides_of_one_channel_are_rewritten(write):
    path = write(
        network("self.c(x)", "self.c = nn.Conv2d(1, 4, 3)")
        + "\ndef example_inputs():\n    return (torch.ones(1, 1, 8, 8).to(memory_format=torch.channels_last),)\n"
    )
    model = load_model(path, warn=lambda _: None)
    assert model.example_inputs[0].stride() == (64, 64, 8, 1)


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ("missing.py", "no such file"),
        ("folder.py", "not a file"),
        ("net.pte", "lowered already"),
        ("net.pth", "weights, not a model"),
        ("net.onnx", "only PyTorch models"),
        ("net.py:a.b", "not the name of an attribute"),
        ("net.py:", "not the name of an attribute"),
        ("net.pt2:model", "no attributes"),
        ("some/net", "neither a Python file"),
        ("no_such_package.model", "no module named 'no_such_package'"),
        ("toolkit.no_such_module", "no module named 'toolkit.no_such_module'"),
        ("", "neither a Python file"),
    ],
)
def test_words_that_name_no_model(write, tmp_path, spec, what):
    write(COMPLETE)
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(ModelError, match=what) as caught:
        load_model(spec, warn=pytest.fail)
    assert caught.value.where == (spec.partition(":")[0] if what == "no such file" else caught.value.where)


WITHOUT = {name: COMPLETE.replace(f"def {name}(", "def other(") for name in ("model", "example_inputs")}


@pytest.mark.parametrize(
    ("body", "what", "place", "hint"),
    [
        (COMPLETE + "\nx = (1,\n", "syntax error: '(' was never closed", "x = (1,", "x = (1,"),
        (COMPLETE + "\nx = undefined + 1\n", "NameError: name 'undefined' is not defined", "x = undefined",
         "x = undefined + 1"),
        (COMPLETE + "\nimport torchvision_of_mine\n", "ModuleNotFoundError", "import torchvision_of_mine",
         "provides 'torchvision_of_mine'"),
        (COMPLETE + "\nraise SystemExit(2)\n", "SystemExit: 2", "raise SystemExit", ""),
        (WITHOUT["model"], "the file defines no 'model'", "", "net.py:Net"),
        (WITHOUT["example_inputs"], "the file defines no example_inputs()", "", "examples/digits.py"),
        (COMPLETE.replace("return Net()", "return Net"), "model() is of type type", "def model", "network itself"),
        (COMPLETE.replace("return Net()", "pass"), "model() is None", "def model", "network itself"),
        (COMPLETE.replace("def model()", "def model(size)"), "model() must take no arguments, but needs size",
         "def model", "default"),
        (COMPLETE.replace("return Net()", "return nn.Linear(8)"), "model() raised TypeError", "return nn.Linear(8)",
         "return nn.Linear(8)"),
        (COMPLETE.replace("return self.fc(x)", "return self.fc(x[:, 1:])"),
         "the model, run on example_inputs(), raised RuntimeError: mat1 and mat2", "return self.fc", "return self.fc"),
        (COMPLETE.replace("return self.fc(x)", "return self.fc(x), 3"), "the model returns a value of type int",
         "def model", "must return a tensor"),
        (COMPLETE.replace("(torch.ones(1, 8),)", "torch.ones(1, 8)"),
         "example_inputs() is a tensor, not a tuple of tensors", "def example_inputs", "(x,)"),
        (COMPLETE.replace("(torch.ones(1, 8),)", "[torch.ones(1, 8)]"), "example_inputs() is a list", "def example",
         "(x,)"),
        (COMPLETE.replace("(torch.ones(1, 8),)", "(torch.ones(1, 8).numpy(),)"), "input 0 is a ndarray, not a tensor",
         "def example_inputs", "torch.from_numpy()"),
        (COMPLETE.replace("(torch.ones(1, 8),)", "()"), "empty tuple", "def example_inputs", "at least one"),
        (COMPLETE.replace("(torch.ones(1, 8),)", "(torch.ones(0, 8),)"), "shape (0, 8): it has no elements",
         "def example_inputs", ""),
        (COMPLETE.replace("torch.ones(1, 8)", "torch.ones(1, 8).double()"), "input 0 is float64", "def example_inputs",
         ".float()"),
        (COMPLETE.replace("torch.ones(1, 8)", "torch.ones(1, 8) / 0"), "holds NaN or infinity", "def example_inputs",
         "clean the data"),
        (COMPLETE.replace("(torch.ones(1, 8),)", "(torch.ones(1, 8) @ torch.ones(1, 8),)"),
         "example_inputs() raised RuntimeError", "return (torch.ones", "return (torch.ones(1, 8) @"),
        (COMPLETE.replace("torch.full((1, 8), float(i))", "torch.full((32, 8), float(i))"),
         "calibration_inputs(): item 0, input 0 has shape (32, 8), but example_inputs() has (1, 8)",
         "def calibration_inputs", "batch size is fixed"),
        (COMPLETE.replace("torch.full((1, 8), float(i))", "torch.full((8,), float(i))"), "has shape (8,)",
         "def calibration_inputs", "unsqueeze(0)"),
        (COMPLETE.replace("torch.full((1, 8), float(i))", "torch.full((1, 9), float(i))"), "has shape (1, 9)",
         "def calibration_inputs", "every other input must have them"),
        (COMPLETE.replace("torch.full((1, 8), float(i))", "torch.full((1, 8), i)"), "item 0, input 0 is int64",
         "def calibration_inputs", ".float()"),
        (COMPLETE.replace("torch.full((1, 8), float(i))", "torch.ones(1, 8) / (1 - i)"),
         "item 1, input 0 holds NaN or infinity", "def calibration_inputs", "clean"),
        (COMPLETE.replace("(torch.full((1, 8), float(i)),)", "torch.full((1, 8), float(i))"),
         "calibration_inputs(): item 0 is a tensor, not a tuple", "def calibration_inputs", "(x,)"),
        (COMPLETE.replace("(torch.full((1, 8), float(i)),)", "(torch.ones(1, 8), torch.ones(1, 8))"),
         "item 0 has 2 tensors, but example_inputs() has 1", "def calibration_inputs", ""),
        (COMPLETE.replace("range(3)", "range(0)"), "calibration_inputs() gave no inputs at all", "def calibration", ""),
        (COMPLETE.replace("range(3)", "__import__('itertools').count()").replace("float(i)", "0.0"),
         "yields more than 100,000 inputs", "def calibration_inputs", "does the generator end?"),
        (COMPLETE.replace("float(i)", "1 / (2 - i)"), "calibration_inputs() raised ZeroDivisionError",
         "return ((torch.full", "1 / (2 - i)"),
        (COMPLETE.replace("return ((torch.full((1, 8), float(i)),) for i in range(3))", "return 3"),
         "calibration_inputs() returned an int, not an iterable", "def calibration_inputs", "list of tuples"),
        (COMPLETE.replace(", [3, 0]", ""), "evaluation_set() returned list, not a pair", "def evaluation_set",
         "labels may be None"),
        (COMPLETE.replace("[3, 0]", "[3, 0, 1]"), "evaluation_set() has 2 inputs, but 3 labels", "def evaluation_set",
         ""),
        (COMPLETE.replace("[3, 0]", "[3.5, 0]"), "the labels have shape (2,) and type float64", "def evaluation_set",
         "class number"),
        (COMPLETE.replace("[3, 0]", "['a', 0]"), "the labels have shape (2,) and type <U", "def evaluation_set",
         "class number"),
        (COMPLETE.replace("[3, 0]", "[3, -1]"), "negative labels", "def evaluation_set", "class number"),
        (COMPLETE.replace("[3, 0]", "[4, 0]"), "label 4 has no name", "", ""),
        (COMPLETE.replace('["a", "b", "c", "d"]', '"abcd"'), "CLASS_NAMES is not a list of strings", "", "CLASS_NAMES"),
    ],
    ids=lambda value: "" if "\n" in value else value[:30],
)  # fmt: skip
def test_mistakes_in_a_file(failure, body, what, place, hint):
    error = failure(body)
    assert what in error.what
    assert error.where == (f"net.py:{line_of(body, place)}" if place else "net.py")
    assert hint in error.hint


def test_an_attribute_that_is_not_there(failure):
    error = failure(COMPLETE, spec="net.py:Nett")
    assert error.what == "the file defines no 'Nett'"


def test_a_mistake_in_a_neighbour_is_shown_there(failure, tmp_path):
    (tmp_path / "broken_neighbour.py").write_text("def size():\n    return 1 // 0\n")
    error = failure(COMPLETE.replace("return Net()", "import broken_neighbour; broken_neighbour.size()"))
    assert error.what == "model() raised ZeroDivisionError: integer division or modulo by zero"
    assert error.where == "broken_neighbour.py:2"
    (tmp_path / "broken_syntax.py").write_text("x = = 1\n")
    error = failure("import broken_syntax\n" + COMPLETE)
    assert error.where == "broken_syntax.py:1"


def test_an_interruption_is_not_swallowed(write):
    path = write(COMPLETE.replace("return Net()", "raise KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        load_model(path, warn=pytest.fail)


QUIET_SCRIPT = """
import sys
import toolkit.lowering as lowering
assert "torch" not in sys.modules and "executorch" not in sys.modules
model = lowering.load_model("net.py", warn=print)
assert "executorch" not in sys.modules
assert len(lowering.lower(model, "cortex-m33").pte) > 1000
"""


def test_nothing_is_imported_early_and_nothing_is_printed(write):
    """What the user's file prints goes to stderr; the libraries say nothing."""
    write('print("from the user")\n' + COMPLETE)
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", QUIET_SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "from the user\n")
