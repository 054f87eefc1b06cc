"""What the device must compute, in numpy: bit-exact, operator by operator.

Public: `execute` for one inference, `Reference` for many, `Execution` for what they return.
"""

from toolkit.reference.execution import Execution, Reference, execute

__all__ = ["Execution", "Reference", "execute"]
