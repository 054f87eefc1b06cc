"""From an image to a running board."""

from toolkit.flashing.choice import Wanted
from toolkit.flashing.flasher import RunningBoard, flash

__all__ = ["RunningBoard", "Wanted", "flash"]
