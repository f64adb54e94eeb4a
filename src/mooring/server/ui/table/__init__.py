"""The pages of one table: what it is, its indexes, how it does, how to open it, its past."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.ui.route import Page
from mooring.server.ui.table.health import show_health
from mooring.server.ui.table.history import show_history
from mooring.server.ui.table.indexes import show_indexes
from mooring.server.ui.table.opening import show_open
from mooring.server.ui.table.overview import show_overview
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.route import Route

__all__ = ["TABLE"]

TABLE: Sequence[Route] = (
    Page(
        name="Table",
        path="/tables/{table}/overview",
        view=show_overview,
        template="table/overview.html",
        lane=Lane.DATA,
    ),
    Page(
        name="TableIndexes",
        path="/tables/{table}/indexes",
        view=show_indexes,
        template="table/indexes.html",
        lane=Lane.DATA,
    ),
    Page(
        name="TableHealth",
        path="/tables/{table}/health",
        view=show_health,
        template="table/health.html",
        lane=Lane.DATA,
    ),
    Page(
        name="TableOpen",
        path="/tables/{table}/open",
        view=show_open,
        template="table/open.html",
        lane=Lane.DATA,
    ),
    Page(
        name="TableHistory",
        path="/tables/{table}/history",
        view=show_history,
        template="table/history.html",
        lane=Lane.DATA,
    ),
)
