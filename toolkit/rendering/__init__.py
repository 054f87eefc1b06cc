"""From a plan to a project folder, through the Jinja templates in `firmware`."""

from toolkit.rendering.folder import MANIFEST, write_project
from toolkit.rendering.renderer import render

__all__ = ["MANIFEST", "render", "write_project"]
