"""All pages and actions: where each is, who may see it, and what makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.addresses import match_path
from mooring.server.ui.actions import ACTIONS
from mooring.server.ui.activity import ACTIVITY
from mooring.server.ui.browse import BROWSE
from mooring.server.ui.rows import ROWS
from mooring.server.ui.table import TABLE
from mooring.server.ui.trash import TRASH
from mooring.server.ui.versions import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.server.ui.route import Route

__all__ = ["ROUTES", "find_route"]

ROUTES: Sequence[Route] = (
    *BROWSE,
    *TABLE,
    *ROWS,
    *VERSIONS,
    *TRASH,
    *ACTIVITY,
    *ACTIONS,
)


def find_route(segments: Sequence[bytes]) -> tuple[Route, Mapping[str, bytes]] | None:
    """Find what a path leads to, with its variable segments as they were sent.

    Args:
        segments: The path below the catalog, in parts, without the ending of a twin.
    """
    for route in ROUTES:
        path = match_path(route.segments, segments)
        if path is not None:
            return route, path
    return None
