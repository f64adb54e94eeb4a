"""What Iceberg has and a catalog of Lance tables has not: views, and scans planned by a server.

Spec: iceberg-rest-openapi, "planTableScan" to "fetchScanTasks", "listViews" to "renameView".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import NotFoundError, UnsupportedError
from mooring.identifiers import quote
from mooring.server.iceberg.calls import Answer
from mooring.server.iceberg.problems import Problem

if TYPE_CHECKING:
    from mooring.server.iceberg.calls import Call

__all__ = ["no_plan", "no_planning", "no_view", "no_views"]


def no_views(call: Call) -> Answer:
    """Refuse whatever would list or make a view."""
    if "namespace" in call.path:
        call.backend.describe_namespace(call.namespace)
    raise UnsupportedError(
        "this catalog has no views: it holds Lance tables, and queries belong to the engine"
    )


def no_view(call: Call) -> Answer:
    """Answer that there is no such view."""
    shown = quote(f"{'.'.join(call.names.show(call.namespace))}.{call.path['view']}")
    problem = Problem(
        NotFoundError.http_status,
        "NoSuchViewException",
        f"there is no view {shown}: this catalog has none",
    )
    return Answer(problem.body(is_flat=True), problem.status)


def no_planning(call: Call) -> Answer:
    """Refuse to plan a scan."""
    info = call.backend.describe_table(call.table)
    raise UnsupportedError(
        f"scans of {quote(str(info.id))} cannot be planned here: it is a Lance table, which Lance"
        f" reads from '{info.location}'"
    )


def no_plan(call: Call) -> Answer:
    """Answer that there is no such plan."""
    call.backend.describe_table(call.table)
    problem = Problem(
        NotFoundError.http_status,
        "NoSuchPlanIdException",
        f"there is no plan {quote(call.path['plan-id'])}: scans are not planned here",
    )
    return Answer(problem.body(is_flat=False), problem.status)
