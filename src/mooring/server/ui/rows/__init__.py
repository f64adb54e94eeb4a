"""Looking at rows: a page of them at a time, one value by itself, and pictures among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.ui.route import Page, Picture
from mooring.server.ui.rows.cell_page import make_image, show_cell
from mooring.server.ui.rows.page import show_rows
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.route import Route

__all__ = ["ROWS"]

ROWS: Sequence[Route] = (
    Page(
        name="Rows",
        path="/tables/{table}/rows",
        view=show_rows,
        template="rows/rows.html",
        lane=Lane.DATA,
    ),
    Page(
        name="Cell",
        path="/tables/{table}/cell",
        view=show_cell,
        template="rows/cell.html",
        lane=Lane.DATA,
    ),
    Picture(
        name="Image",
        path="/tables/{table}/image",
        make=make_image,
        lane=Lane.DATA,
    ),
)
