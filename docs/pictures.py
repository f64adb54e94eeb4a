# ruff: noqa: INP001  # a script, not a package
"""The pictures of the README: pages of the demo's catalog.

``make pictures`` writes them to docs/pictures. The demo is run first where ./lake is not there.
"""

from __future__ import annotations

import runpy
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.own_server import run_server
from tests.ui.browser.chromium import run_chromium
from tests.ui.browser.reader import looking

import mooring

_ROOT = Path(__file__).parents[1]
_PICTURES = Path(__file__).parent / "pictures"
_LAKE = "metastore+lake"
_MOST_BYTES = 150_000


@dataclass(frozen=True)
class Shot:
    """A picture to take.

    Attributes:
        name: Of its file.
        path: Of its page, below the catalog.
        height: How much of the page is on it.
        scheme: Light or dark.
    """

    name: str
    path: str
    height: int
    scheme: str = "light"


_COLUMNS = "time_hour,carrier,flight,origin,dest,arr_delay,profile"
_SHOTS = (
    Shot("versions", "tables/air%24late/versions", 800),
    Shot(
        "rows",
        f"tables/air%24published/rows?where=arr_delay+%3E+600&limit=10&columns={_COLUMNS}",
        700,
    ),
    Shot("diff", "tables/air%24late/diff?from=2&to=year-2013", 700, "dark"),
)


def main() -> None:
    """Take all of them."""
    if not Path("lake").exists():
        runpy.run_path(str(_ROOT / "examples" / "demo.py"), run_name="__main__")
    _PICTURES.mkdir(exist_ok=True)
    catalog = mooring.connect(_LAKE)
    with run_server({"lake": catalog}) as base, run_chromium() as browser:
        for shot in _SHOTS:
            window = {"width": 1280, "height": shot.height}
            with looking(
                browser, base, "lake", viewport=window, color_scheme=shot.scheme
            ) as reader:
                reader.go(shot.path)
                reader.page.wait_for_load_state("networkidle")
                file = _PICTURES / f"{shot.name}.png"
                # Without the place that is kept for a scroll bar.
                width = reader.page.evaluate("document.documentElement.clientWidth")
                clip = {"x": 0, "y": 0, "width": width, "height": shot.height}
                reader.page.screenshot(path=file, clip=clip)
            size = file.stat().st_size
            sys.stdout.write(f"{file.relative_to(_ROOT)}: {size:,} bytes\n")
            if size > _MOST_BYTES:
                sys.exit(f"{file.name} is larger than {_MOST_BYTES:,} bytes: show less of the page")


if __name__ == "__main__":
    main()
