"""The user's model: what a model file has to offer, and reading it.

A model file is ordinary Python with

    model()               -> torch.nn.Module
    example_inputs()      -> tuple of float32 tensors, one per input of the model
    calibration_inputs()  -> iterable of such tuples: typical data, from which quantisation takes its ranges
    evaluation_set()      -> (iterable of such tuples, labels or None)          optional
    CLASS_NAMES           =  names of the classes the labels count              optional

A `.pt2` archive holds the module and, mostly, its example inputs.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import ModelError, UsageError
from toolkit.lowering.archive import archive_placeholders, load_archive
from toolkit.lowering.reference import inference_copy
from toolkit.lowering.samples import Sample, check_example, check_samples
from toolkit.lowering.source import Source, import_source, parse_source, shown, user_code

MAX_SAMPLES = 100_000
"""More inputs than this are taken for a generator without an end."""

_CONTRACT = "See examples/digits.py for a model file with all of its functions."


@dataclass(frozen=True, eq=False)
class Model:
    """A model with the data that comes with it.

    Attributes:
        name: short name, from the file's or the attribute's name.
        source: the user's file.
        module: the user's `torch.nn.Module`, as the user made it.
        example_inputs: one float32 tensor per input: the shapes the model is lowered for.
        calibration: inputs from which quantisation takes its ranges; at least one.
        evaluation: inputs the device is verified on, float32 arrays; the calibration inputs where the user gives none.
        labels: int64 (inputs,), the right class of each evaluation input; None where the user gives none.
        class_names: names of the classes, in the order of the labels; None where the user gives none.
    """

    name: str
    source: Path
    module: Any
    example_inputs: Sample
    calibration: tuple[Sample, ...]
    evaluation: tuple[tuple[NDArray[np.float32], ...], ...]
    labels: NDArray[np.int64] | None
    class_names: tuple[str, ...] | None


def load_model(spec: str, *, random_calibration: int | None = None, warn: Callable[[str], None]) -> Model:
    """Read a model file or an archive and check all that it gives.

    Args:
        spec: `path.py`, `package.module` (each optionally with `:attribute`, a module or a callable that makes one,
            instead of `model`), or `path.pt2`.
        random_calibration: calibrate with this many random inputs, whatever data the model has.
        warn: called with a sentence for what works but should not stay so.

    Raises:
        ModelError: a file is missing or does not keep the contract, or the user's code raised an error.
        UsageError: `random_calibration` is not a positive number.
    """
    if random_calibration is not None and random_calibration < 1:
        raise UsageError(f"{random_calibration} random inputs cannot calibrate a model", hint="Ask for at least one.")
    source = parse_source(spec)
    if source.path is not None and source.path.suffix.lower() == ".pt2":
        return _load_exported(source.path, random_calibration, warn)
    import torch  # noqa: F401 - before the user's folder is searched, where a file may be named like one that torch imports

    return _ModelFile(source, import_source(source)).load(random_calibration, warn)


def _load_exported(path: Path, random_calibration: int | None, warn: Callable[[str], None]) -> Model:
    module, inputs = load_archive(path)
    if inputs is None and random_calibration is None:
        raise ModelError(
            "the archive has no example inputs, so there is nothing to calibrate the quantisation with",
            where=shown(path),
            hint="Ask for random calibration data, or write a model.py with calibration_inputs().",
        )
    example = check_example(archive_placeholders(module) if inputs is None else inputs, shown(path))
    if random_calibration is None:
        warn(_poor_calibration("An exported program has no calibration data"))
    calibration = (example,) if random_calibration is None else random_samples(example, random_calibration, warn)
    return Model(path.stem, path, module, example, calibration, _arrays(calibration), None, None)


@dataclass(frozen=True)
class _ModelFile:
    """A user's file that has been run, and the reading of what it offers."""

    source: Source
    module: ModuleType

    @property
    def path(self) -> Path:
        return self.source.path or Path(self.module.__file__ or self.source.module)

    @property
    def folder(self) -> Path:
        """Where the user's modules are looked for: as for `python path.py` and for `python -m package.module`."""
        return self.source.path.parent if self.source.path else Path.cwd()

    def load(self, random_calibration: int | None, warn: Callable[[str], None]) -> Model:
        network = self.network()
        example = check_example(self.call("example_inputs"), self.where("example_inputs"))
        self.try_out(network, example)
        calibration = self.calibration(example, random_calibration, warn)
        evaluation, labels = self.evaluation(example)
        names = self.class_names(labels)
        if evaluation is None:
            evaluation = calibration
        return Model(self.source.name, self.path, network, example, calibration, _arrays(evaluation), labels, names)

    def where(self, function: str) -> str:
        """File and line of a function of the user's."""
        code = getattr(getattr(self.module, function, None), "__code__", None)
        return f"{shown(code.co_filename)}:{code.co_firstlineno}" if code else shown(self.path)

    def network(self) -> Any:
        import torch

        attribute = self.source.attribute or "model"
        if not hasattr(self.module, attribute):
            hint = _CONTRACT
            if found := _networks(self.module):
                hint = f"Define {attribute}() that returns the network, or name it: {self.source.name}.py:{found[0]}"
            raise ModelError(f"the file defines no {attribute!r}", where=shown(self.path), hint=hint)
        value = getattr(self.module, attribute)
        if not isinstance(value, torch.nn.Module) and callable(value):
            value = self.call(attribute)
            attribute += "()"
        if not isinstance(value, torch.nn.Module):
            raise ModelError(
                f"{attribute} is {'None' if value is None else f'of type {type(value).__name__}'}, "
                "not a torch.nn.Module",
                where=self.where(attribute.removesuffix("()")),
                hint="Return the network itself." if attribute.endswith("()") else _CONTRACT,
            )
        return value

    def call(self, name: str) -> Any:
        """Call a function of the contract; an iterable it returns is drawn from here, where its errors are caught."""
        function = getattr(self.module, name, None)
        if not callable(function):
            raise ModelError(f"the file defines no {name}()", where=shown(self.path), hint=_CONTRACT)
        if needed := _required_parameters(function):
            raise ModelError(
                f"{name}() must take no arguments, but needs {', '.join(needed)}",
                where=self.where(name),
                hint="Give every argument a default.",
            )
        with user_code(self.where(name), self.folder, f"{name}()"):
            return function()

    def draw(self, values: object, name: str) -> Any:
        """The items of an iterable of the user's, which may be a generator that runs his code."""
        import torch

        if not isinstance(values, Iterable) or isinstance(values, torch.Tensor):
            return values
        with user_code(self.where(name), self.folder, f"{name}()"):
            drawn = list(itertools.islice(values, MAX_SAMPLES + 1))
        if len(drawn) > MAX_SAMPLES:
            raise ModelError(
                f"{name}() yields more than {MAX_SAMPLES:,} inputs",
                where=self.where(name),
                hint="A few hundred are plenty; does the generator end?",
            )
        return drawn

    def try_out(self, network: Any, example: Sample) -> None:
        """Run the model once: a mismatch is easier to understand here than in a trace of the exporter."""
        import torch
        from torch.utils import _pytree

        where = self.where("example_inputs")
        with user_code(where, self.folder, "the model, run on example_inputs(),"), torch.no_grad():
            outputs = _pytree.tree_leaves(inference_copy(network)(*(tensor.clone() for tensor in example)))
        for output in outputs:
            if not isinstance(output, torch.Tensor):
                raise ModelError(
                    f"the model returns a value of type {type(output).__name__}",
                    where=self.where(self.source.attribute or "model"),
                    hint="forward() must return a tensor, or a tuple of tensors.",
                )

    def calibration(
        self, example: Sample, random_calibration: int | None, warn: Callable[[str], None]
    ) -> tuple[Sample, ...]:
        if random_calibration is not None:
            return random_samples(example, random_calibration, warn)
        name = "calibration_inputs"
        if not hasattr(self.module, name):
            warn(_poor_calibration(f"{self.path.name} defines no {name}()"))
            return (example,)
        return check_samples(self.draw(self.call(name), name), example, f"{name}()", self.where(name))

    def evaluation(self, example: Sample) -> tuple[tuple[Sample, ...] | None, NDArray[np.int64] | None]:
        name = "evaluation_set"
        if not hasattr(self.module, name):
            return None, None
        value, where = self.call(name), self.where(name)
        if not isinstance(value, tuple) or len(value) != 2:
            raise ModelError(
                f"{name}() returned {type(value).__name__}, not a pair",
                where=where,
                hint="Return (inputs, labels); labels may be None.",
            )
        inputs = check_samples(self.draw(value[0], name), example, f"{name}()", where)
        if value[1] is None:
            return inputs, None
        labels = _labels(self.draw(value[1], name), where)
        if len(labels) != len(inputs):
            raise ModelError(f"{name}() has {len(inputs)} inputs, but {len(labels)} labels", where=where)
        return inputs, labels

    def class_names(self, labels: NDArray[np.int64] | None) -> tuple[str, ...] | None:
        names = getattr(self.module, "CLASS_NAMES", None)
        if names is None:
            return None
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise ModelError(
                "CLASS_NAMES is not a list of strings",
                where=shown(self.path),
                hint='Write CLASS_NAMES = ["cat", "dog"], in the order of the model\'s outputs.',
            )
        if labels is not None and len(labels) and int(labels.max()) >= len(names):
            raise ModelError(
                f"label {int(labels.max())} has no name: CLASS_NAMES has {len(names)} entries", where=shown(self.path)
            )
        return tuple(names)


def random_samples(example: Sample, count: int, warn: Callable[[str], None]) -> tuple[Sample, ...]:
    """Normal noise with the mean and the spread of the example inputs (of one where they do not vary); repeatable."""
    import torch

    warn(
        f"Calibrating with {count} random inputs. The program will run, but its accuracy says nothing: "
        "give real data in calibration_inputs()."
    )
    generator = torch.Generator().manual_seed(0)

    def noise(like: Any) -> Any:
        spread = float(like.std(correction=0)) or 1.0
        return torch.randn(like.shape, generator=generator) * spread + float(like.mean())

    return tuple(tuple(noise(like) for like in example) for _ in range(count))


def _poor_calibration(reason: str) -> str:
    return (
        f"{reason}: quantising with the ranges of the example inputs alone. Expect wrong answers on other data; "
        "give 50 to 500 typical inputs in calibration_inputs()."
    )


def _labels(value: Any, where: str) -> NDArray[np.int64]:
    hint = "Give one class number per input: [0, 3, 1, ...]."
    try:
        labels = np.asarray(value)
    except ValueError as error:
        raise ModelError("evaluation_set(): the labels are not numbers", where=where, hint=hint) from error
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ModelError(
            f"evaluation_set(): the labels have shape {labels.shape} and type {labels.dtype}", where=where, hint=hint
        )
    if len(labels) and int(labels.min()) < 0:
        raise ModelError("evaluation_set(): there are negative labels", where=where, hint=hint)
    return labels.astype(np.int64)


def _required_parameters(function: Callable[..., object]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in optional]


def _networks(module: ModuleType) -> list[str]:
    """Names the user may have meant: modules made by the file, and classes of modules it defines."""
    import torch

    made = [name for name, value in vars(module).items() if isinstance(value, torch.nn.Module)]
    classes = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__module__ == module.__name__
    ]
    return made + [name for name in reversed(classes) if not _required_parameters(vars(module)[name])]


def _arrays(samples: tuple[Sample, ...]) -> tuple[tuple[NDArray[np.float32], ...], ...]:
    return tuple(tuple(tensor.numpy() for tensor in sample) for sample in samples)
