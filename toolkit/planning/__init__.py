"""From a validated program and a board to a plan: what runs, in which order, with which kernel, where in memory."""

from toolkit.planning.fit import Part, parts
from toolkit.planning.planner import make_plan
from toolkit.planning.regions import Place
from toolkit.planning.types import (
    OUR_KERNELS,
    Kernel,
    KernelLibrary,
    Placement,
    Plan,
    Regions,
    Span,
    Step,
    StorageFormat,
)

__all__ = [
    "OUR_KERNELS",
    "Kernel",
    "KernelLibrary",
    "Part",
    "Place",
    "Placement",
    "Plan",
    "Regions",
    "Span",
    "Step",
    "StorageFormat",
    "make_plan",
    "parts",
]
