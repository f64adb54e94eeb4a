"""HTML of what pages show. Everything that is put in is text, whatever it holds."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from mooring import __version__
from mooring.server.ui.assets import asset_href
from mooring.server.ui.formats import FILTERS

if TYPE_CHECKING:
    from mooring.server.ui.chrome import Chrome
    from mooring.server.ui.view import View

__all__ = ["render"]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("mooring.server.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    environment.globals.update({"asset": asset_href, "mooring_version": __version__})
    return environment


def render(template: str, chrome: Chrome, view: View) -> bytes:
    """Make HTML.

    Args:
        template: Which template.
        chrome: What stands around a page.
        view: What the page shows.
    """
    shown = _environment().get_template(template)
    return shown.render(page=chrome, view=view, now_ms=chrome.now_ms).encode()
