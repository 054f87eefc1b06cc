"""From an image to a running board."""

from toolkit.flashing.flasher import RunningBoard, flash
from toolkit.flashing.uf2_drive import Wanted

__all__ = ["RunningBoard", "Wanted", "flash"]
