"""What happens in a catalog: changes, transactions, runs of pipelines, lineage, audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.roles import Role
from mooring.server.ui.activity.activity import show_activity
from mooring.server.ui.activity.audit import ask_audit, follow_audit, perform_audit, show_audit
from mooring.server.ui.activity.lineage import show_lineage
from mooring.server.ui.activity.run import show_details
from mooring.server.ui.activity.runs import show_runs
from mooring.server.ui.activity.transactions import show_changes
from mooring.server.ui.route import Action, Page, everything, seen
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.route import Route

__all__ = ["ACTIVITY"]

ACTIVITY: Sequence[Route] = (
    Page(
        name="Activity",
        path="/activity",
        view=show_activity,
        template="activity/activity.html",
        touches=seen,
    ),
    Page(
        name="Transaction",
        path="/transactions/{txn}/changes",
        view=show_changes,
        template="activity/changes.html",
        touches=everything,
    ),
    Page(
        name="Runs",
        path="/runs",
        view=show_runs,
        template="activity/runs.html",
        touches=everything,
    ),
    Page(
        name="Run",
        path="/runs/{run}/details",
        view=show_details,
        template="activity/run.html",
        touches=everything,
    ),
    Page(
        name="Lineage",
        path="/lineage",
        view=show_lineage,
        template="activity/lineage.html",
        touches=everything,
    ),
    Page(
        name="Audit",
        path="/audit",
        view=show_audit,
        template="activity/audit.html",
        touches=everything,
    ),
    Action(
        name="StartAudit",
        path="/start-audit",
        role=Role.WRITER,
        ask=ask_audit,
        perform=perform_audit,
        goes_on=follow_audit,
        touches=everything,
        lane=Lane.DATA,
    ),
)
