"""From a plan to a project folder, through the Jinja templates in `firmware`."""

from toolkit.rendering.renderer import MANIFEST, render

__all__ = ["MANIFEST", "render"]
