"""What the command line leaves out: `deploy.toml` in the current folder, then the bundled example."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.resources import resource

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path("deploy.toml")
_KEYS = ("model", "board")


@dataclass(frozen=True, slots=True)
class Settings:
    """Model and board of `deploy.toml`, None where it names none."""

    model: str | None = None
    board: str | None = None


def read_settings(path: Path = FILE) -> Settings:
    """Settings of a `deploy.toml`; empty when there is no such file.

    Raises:
        UsageError: the file is not TOML, or holds something unknown.
    """
    if not path.is_file():
        return Settings()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"not a TOML file: {error}", where=str(path)) from None
    for key, value in data.items():
        if key not in _KEYS:
            raise UsageError(f"unknown key `{key}`", where=str(path), hint=f"Known keys: {', '.join(_KEYS)}.")
        if not isinstance(value, str):
            raise UsageError(f"`{key}` should be a string", where=str(path))
    return Settings(**data)


def chosen_model(model: str | None) -> str:
    """The model to work on: the one named, that of `deploy.toml`, or the bundled example."""
    return model or read_settings().model or str(resource("examples") / "digits.py")


def chosen_board(board: str | None) -> str:
    """The board to work for: the one named, or that of `deploy.toml`.

    Raises:
        UsageError: neither names one.
    """
    name = board or read_settings().board
    if name is None:
        raise UsageError("no board is named", hint="Add --board NAME; `deploy boards` lists them.")
    return name
