"""Reading a `.pte`: from bytes to a validated `Program`.

Public: `read_program` here, and the types of a program in `toolkit.program.types`.
"""

from toolkit.program.reader import read_program
from toolkit.program.types import Program

__all__ = ["Program", "read_program"]
