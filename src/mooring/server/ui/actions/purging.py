"""The end of what was dropped, told in a sentence; and of all that expired, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.amounts import how_many
from mooring.errors import MooringError
from mooring.server.ui.actions.wording import named, some, tables_and_namespaces
from mooring.server.ui.trash.drops import drops_of
from mooring.server.ui.view import Done, Question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.feed.look import SeenDrop
    from mooring.namespace.api import PurgeReport
    from mooring.server.ui.visit import Visit

__all__ = ["ask_purge_expired", "expired_goes_on", "purge_expired", "tell_purge"]


def tell_purge(report: PurgeReport) -> str:
    """Say what came of a purge of several tables."""
    told = f"Purged {how_many(len(report.purged), 'table')}."
    if not report.failed:
        return told
    table, exc = next(iter(report.failed.items()))
    why = str(exc) if isinstance(exc, MooringError) else "something unexpected happened"
    failed = how_many(len(report.failed), "table")
    return f"{told} {failed} could not be purged, such as {named(table)}: {why}"


def ask_purge_expired(visit: Visit) -> Question:
    """Say what of the trash is over its time."""
    tables, namespaces = _expired(visit)
    counted = tables_and_namespaces(len(tables), len(namespaces))
    return Question(
        cli=visit.cli("trash", "purge", "--expired"),
        title="Purge all expired?",
        explanation=_explained(tables, namespaces),
        warning="There is no way back.",
        listed=some([str(one.id) for one in (*namespaces, *tables)]),
        listed_as=counted,
        obstacle="" if counted else "Nothing in the trash has expired: there is nothing to purge.",
        submit="Purge",
        is_destructive=True,
        back=visit.links.to("trash"),
    )


def _explained(tables: Sequence[SeenDrop], namespaces: Sequence[SeenDrop]) -> list[str]:
    gone = how_many(len(tables), "dropped table")
    explanation = [f"All data of {gone} whose time in the trash is over is deleted."]
    if namespaces:
        explanation.append(f"The names of {how_many(len(namespaces), 'namespace')} go, too.")
    return [*explanation, "What still has time stays."]


def purge_expired(visit: Visit, _: Mapping[str, str]) -> Done:
    """Delete the bytes of all that expired."""
    return Done(visit.links.to("trash"), tell_purge(visit.backend.purge_tables(None)))


def expired_goes_on(visit: Visit) -> Done:
    """Say that a purge goes on."""
    return Done(visit.links.to("trash"), "The purge takes a while and goes on: look here again.")


def _expired(visit: Visit) -> tuple[list[SeenDrop], list[SeenDrop]]:
    drops, now_ms = drops_of(visit), visit.now_ms

    def is_over(one: SeenDrop) -> bool:
        return one.expires_at_ms is not None and one.expires_at_ms <= now_ms

    tables = [one for one in drops.all_tables if is_over(one)]
    return tables, [one for one in drops.namespaces if is_over(one)]
