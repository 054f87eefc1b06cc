"""Where the files live that are not Python: boards, firmware sources and templates, cmake modules, examples.

In a wheel they travel inside the package; in a checkout they are the top-level folders themselves.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).resolve().parent


def resource(name: str) -> Path:
    """Folder of one kind of resource: `boards`, `firmware`, `cmake` or `examples`."""
    packaged = _PACKAGE / "resources" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def cache_folder() -> Path:
    """Where things that can be made again are kept: built kernel libraries, trained examples.

    `DEPLOY_CACHE_DIR` overrides the platform's user cache folder.
    """
    override = os.environ.get("DEPLOY_CACHE_DIR")
    return Path(override) if override else Path(platformdirs.user_cache_dir("mcu-deploy", appauthor=False))
