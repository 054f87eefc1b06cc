"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def deserialize() -> Callable[[bytes], Any]:
    """executorch's own reader: from bytes to its `Program`, with constants restored from segments.

    Importing it takes several seconds, so it is done once, and only where it is asked for.
    """
    program = pytest.importorskip("executorch.exir._serialize._program")

    def read(data: bytes) -> Any:
        return program.deserialize_pte_binary(data).program

    return read
