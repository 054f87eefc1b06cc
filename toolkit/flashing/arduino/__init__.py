"""Uploading to Arduino boards: one flasher, and one uploader for each program that the cores use."""

from toolkit.flashing.arduino.bench import Patience
from toolkit.flashing.arduino.flasher import ArduinoFlasher

__all__ = ["ArduinoFlasher", "Patience"]
