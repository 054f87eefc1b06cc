"""From a validated program and a board to a plan: what runs, in which order, with which kernel, where in memory."""

from toolkit.planning.fit import Part, parts
from toolkit.planning.planner import make_plan
from toolkit.planning.types import Kernel, Placement, Plan, Span, Step, StorageFormat

__all__ = ["Kernel", "Part", "Placement", "Plan", "Span", "Step", "StorageFormat", "make_plan", "parts"]
