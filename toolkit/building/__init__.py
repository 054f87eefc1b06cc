"""From a project folder to an image: cmake, ninja, the Arm GNU toolchain, and sizes by part."""

from toolkit.building.arduino_core import with_core_limits
from toolkit.building.builder import build, built_image
from toolkit.building.cmsis_nn import CmsisNn, find_cmsis_nn, require_cmsis_nn
from toolkit.building.image import Flash, Image, Ram, read_image
from toolkit.building.tools import TOOLS, Tool, find, require, version

__all__ = [
    "TOOLS",
    "CmsisNn",
    "Flash",
    "Image",
    "Ram",
    "Tool",
    "build",
    "built_image",
    "find",
    "find_cmsis_nn",
    "read_image",
    "require",
    "require_cmsis_nn",
    "version",
    "with_core_limits",
]
