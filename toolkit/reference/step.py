"""What a prepared operator is: a function from the arrays known so far to its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolkit.reference.arithmetic import Array

Arrays = Mapping[int, Array]
"""Arrays by tensor id, in physical shape."""

Step = Callable[[Arrays], Array]
"""Computes an operator's result: its elements in memory order, in any shape of the right size."""
