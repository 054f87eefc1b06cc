"""From an image to a running board."""

from toolkit.flashing.flasher import RunningBoard, flash

__all__ = ["RunningBoard", "flash"]
