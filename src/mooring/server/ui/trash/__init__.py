"""What was dropped, for how long it can come back, and the ways out of the trash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.ui.route import Page, seen
from mooring.server.ui.trash.page import show_trash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.route import Route

__all__ = ["TRASH"]

TRASH: Sequence[Route] = (
    Page(name="Trash", path="/trash", view=show_trash, template="trash/trash.html", touches=seen),
)
