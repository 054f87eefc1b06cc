"""Reading a `.pte`: from bytes to a validated `Program`.

Public: `read_program` here, and the types of a program, which are all in `toolkit.program.types`.
"""

from toolkit.program.reader import read_program
from toolkit.program.types import DType, Operator, Program, Tensor

__all__ = ["DType", "Operator", "Program", "Tensor", "read_program"]
