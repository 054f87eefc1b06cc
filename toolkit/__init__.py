"""From a trained PyTorch model to a microcontroller, proven byte for byte on the device."""

__version__ = "0.1.0"
