"""Writing the folder of a project: what is new is written, what is no longer needed goes, what is not ours stays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolkit.errors import DeployError

MANIFEST = "rendered.json"
"""Names the board and the files of a rendered project, and what building needs to know of it besides."""


def write_project(files: Mapping[str, bytes], folder: Path, about: Mapping[str, Any]) -> None:
    """Write the files of a project, and its manifest.

    Files that are already as they should be are not touched, so that a build repeats only what changed; files of an
    earlier rendering that are no longer needed are removed, and no others.

    Args:
        files: contents by path in the project.
        folder: new, empty, or of an earlier rendering.
        about: what the manifest says besides the list of files.

    Raises:
        DeployError: the folder holds something else, or cannot be written.
    """
    try:
        _write(files, folder, about)
    except OSError as error:
        raise DeployError(
            f"cannot write the project: {error.strerror}",
            where=str(error.filename or folder),
            hint="Choose another folder with --out.",
        ) from None


def _write(files: Mapping[str, bytes], folder: Path, about: Mapping[str, Any]) -> None:
    manifest = folder / MANIFEST
    stale: set[str] = set()
    if manifest.is_file():
        stale = set(_rendered_files(manifest)) - set(files)
    elif folder.exists() and any(folder.iterdir()):
        raise DeployError(
            "the folder is not empty and was not rendered by deploy",
            where=str(folder),
            hint="Choose another folder with --out, or empty this one.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    # The manifest goes first: after an interruption the folder is still known as ours and is completed.
    _replace(manifest, json.dumps({**about, "files": sorted(files)}, indent=1).encode())
    for name, content in files.items():
        _replace(folder / name, content)
    for path in (folder / name for name in stale):
        if path.resolve().is_relative_to(folder.resolve()):
            path.unlink(missing_ok=True)


def _rendered_files(manifest: Path) -> list[str]:
    try:
        return list(json.loads(manifest.read_text(encoding="utf-8"))["files"])
    except (ValueError, KeyError, TypeError):
        return []  # cut short or edited: nothing is known to be stale


def _replace(path: Path, content: bytes) -> None:
    """Write a whole file or nothing; leave it alone when it is the same."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    shutil.move(part, path)
