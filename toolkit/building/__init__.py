"""From a project folder to an image: cmake, ninja, the Arm GNU toolchain, and sizes by part."""

from toolkit.building.builder import build, built_image
from toolkit.building.image import Flash, Image, Ram, read_image
from toolkit.building.tools import TOOLS, Tool, find, require, version

__all__ = ["TOOLS", "Flash", "Image", "Ram", "Tool", "build", "built_image", "find", "read_image", "require", "version"]
