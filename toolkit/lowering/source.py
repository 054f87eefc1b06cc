"""Where a model comes from: the words a user gives, the file behind them, and running the user's own code.

Whatever goes wrong inside that code is reported as a `ModelError` at the line of the user's file it went wrong at. What
the code prints goes to stderr, so that the toolkit's own stdout stays parseable.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from toolkit.errors import ModelError

_CHECKPOINTS = (".pt", ".pth", ".ckpt", ".safetensors", ".bin")
_FOREIGN = (".onnx", ".tflite", ".h5", ".keras", ".pb", ".mlmodel")


@dataclass(frozen=True)
class Source:
    """A model as the user named it.

    Attributes:
        path: the `.py` or `.pt2` file, absolute; None for a dotted module name.
        module: the dotted module name; empty for a file.
        attribute: what follows the colon, empty when the model is the one that `model()` makes.
    """

    path: Path | None
    module: str
    attribute: str

    @property
    def name(self) -> str:
        """A short name for the model: the attribute, or the file's or the module's last word."""
        stem = self.path.stem if self.path else self.module.rpartition(".")[2]
        return stem if self.attribute in ("", "model") else self.attribute


def parse_source(spec: str) -> Source:
    """Take apart `path.py`, `path.pt2` or `package.module`, the first and the last with an optional `:attribute`.

    Raises:
        ModelError: the words name a kind of file that is not a PyTorch model's source, or a file that is not there.
    """
    place, colon, attribute = spec.partition(":")
    if colon and not attribute.isidentifier():
        raise ModelError(f"{attribute!r} is not the name of an attribute", where=spec, hint="Write path.py:name.")
    suffix = Path(place).suffix.lower()
    _refuse_other_kinds(place, suffix)
    if suffix in (".py", ".pt2"):
        if suffix == ".pt2" and colon:
            raise ModelError("an exported program has no attributes", where=spec, hint=f"Write {place} alone.")
        path = Path(place).expanduser().resolve()
        if not path.is_file():
            raise ModelError("there is no such file" if not path.exists() else "this is not a file", where=place)
        return Source(path, "", attribute)
    if os.sep in place or not all(word.isidentifier() for word in place.split(".")):
        raise ModelError(
            "this is neither a Python file, an exported program nor a module",
            where=spec,
            hint="Give a model as path.py, path.pt2 or package.module, optionally with :attribute.",
        )
    return Source(None, place, attribute)


def _refuse_other_kinds(place: str, suffix: str) -> None:
    if suffix == ".pte":
        raise ModelError(
            "this program is lowered already", where=place, hint="A .pte needs no lowering; read it as a program."
        )
    if suffix in _CHECKPOINTS:
        raise ModelError(
            "a checkpoint holds weights, not a model",
            where=place,
            hint="Write a model.py whose model() builds the network and loads these weights into it.",
        )
    if suffix in _FOREIGN:
        raise ModelError("only PyTorch models can be lowered", where=place, hint="Give a model.py or a .pt2 archive.")


def import_source(source: Source) -> ModuleType:
    """Run the user's file or import the user's module.

    Raises:
        ModelError: it is not there, does not parse, or raises.
    """
    if source.path is not None:
        return _run_file(source.path)
    with user_code(source.module, Path.cwd()):
        try:
            return importlib.import_module(source.module)
        except ModuleNotFoundError as error:
            if error.name and (source.module == error.name or source.module.startswith(f"{error.name}.")):
                raise ModelError(
                    f"there is no module named {error.name!r}",
                    where=source.module,
                    hint="Run from the folder that holds it, or give the path of a .py file.",
                ) from None
            raise


def _run_file(path: Path) -> ModuleType:
    """Execute a file as a module of its own, without leaving compiled files beside it."""
    name = f"user_{path.stem}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ModelError("this is not a Python file", where=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # torch's tracer and dataclasses look modules up by name
    try:
        with user_code(shown(path), path.parent):
            exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextlib.contextmanager
def user_code(where: str, folder: Path | None, doing: str = "") -> Iterator[None]:
    """Run what stands inside as the user's code.

    Args:
        where: the place to name when the error has no line in the user's file.
        folder: where the user's own modules are found, as if Python had been started on a file in it.
        doing: what was being run, for the error ("calibration_inputs()").

    Raises:
        ModelError: for any exception of the user's code, at the innermost line of it that lies in `folder`.
    """
    entry = str(folder) if folder else None
    if entry:
        sys.path.insert(0, entry)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except ModelError:
        raise
    except SyntaxError as error:
        place = f"{shown(error.filename)}:{error.lineno}" if error.filename else where
        raise ModelError(f"syntax error: {error.msg}", where=place, hint=(error.text or "").strip()) from error
    except (Exception, SystemExit) as error:
        raise _as_model_error(error, where, folder, doing) from error
    finally:
        if entry and entry in sys.path:
            sys.path.remove(entry)


def _as_model_error(error: BaseException, where: str, folder: Path | None, doing: str) -> ModelError:
    summary = type(error).__name__ + (f": {first_lines(str(error))}" if str(error) else "")
    frame = _user_frame(error, folder)
    if frame is not None:
        where = f"{shown(frame.filename)}:{frame.lineno}"
    hint = (frame.line or "").strip() if frame else ""
    if isinstance(error, ModuleNotFoundError) and error.name:
        hint = f"Install the package that provides {error.name!r} into the environment of this command."
    return ModelError(f"{doing} raised {summary}" if doing else summary, where=where, hint=hint)


def _user_frame(error: BaseException, folder: Path | None) -> traceback.FrameSummary | None:
    """The innermost frame that lies in the user's folder, installed packages excepted."""
    found = None
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        ours = path.parent == Path(__file__).parent
        if folder and path.is_relative_to(folder) and not ours and not installed(frame.filename):
            found = frame
    return found


def shown(path: str | Path) -> str:
    """A path as it is shown to the user: relative to the current folder where it lies in it."""
    path = Path(path)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def installed(path: str) -> bool:
    """The code is not the user's: of an installed package, or without a file."""
    return path.startswith("<") or not {"site-packages", "dist-packages"}.isdisjoint(Path(path).parts)


def first_lines(text: str, count: int = 1) -> str:
    """The first `count` lines of a message that say something, joined by spaces."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:count])
