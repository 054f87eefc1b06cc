"""Virtual boards behind a serial port."""

from toolkit.emulation.virtual import VirtualBoard, start

__all__ = ["VirtualBoard", "start"]
