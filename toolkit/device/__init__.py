"""A model on a board, over a serial line."""

from toolkit.device.client import Device, Timeouts
from toolkit.device.protocol import DeviceTensor, Hello
from toolkit.device.transport import Transport

__all__ = ["Device", "DeviceTensor", "Hello", "Timeouts", "Transport"]
