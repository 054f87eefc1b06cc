"""Keeping the libraries' chatter away from the user."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any


class _Hushed:
    """A text stream that drops what one thread writes and passes on what others do (a progress display)."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() != self._thread:
            self._stream.write(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drop warnings, log messages and what this thread prints.

    torch, torchao and executorch warn about their own deprecations and about optional parts that are not installed, and
    print whole graphs when an export fails. What matters of a failure arrives as an exception.
    """
    disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)
    out: Any = _Hushed(sys.stdout)
    err: Any = _Hushed(sys.stderr)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
