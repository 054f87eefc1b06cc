"""From a user's PyTorch model to the bytes of a `.pte`.

The only room that needs torch and ExecuTorch. They are imported when a model is loaded or lowered, not before: that
takes ten seconds.
"""

from toolkit.lowering.lower import Lowered, lower
from toolkit.lowering.model import Model, load_model
from toolkit.lowering.reference import float_outputs, quantized_outputs

__all__ = ["Lowered", "Model", "float_outputs", "load_model", "lower", "quantized_outputs"]
