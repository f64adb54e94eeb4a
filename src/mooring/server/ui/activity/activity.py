"""What happens in a catalog: its changes as they are seen, and a metastore's transactions."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from mooring.feed.event import Event, Kind
from mooring.server.catalogs import MooringCatalog
from mooring.server.mooring.kinds import name_kind
from mooring.server.roles import Role
from mooring.server.ui.activity.events import KINDS, KindChoice, ShownEvent, show_event
from mooring.server.ui.activity.stream import earshot_of
from mooring.server.ui.activity.transactions import Transactions, list_transactions
from mooring.server.ui.view import View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.feed.look import Look
    from mooring.server.earshot import Earshot
    from mooring.server.ui.visit import Visit

__all__ = ["ActivityView", "show_activity"]

_MOST = 100


class ActivityView(View, frozen=True, kw_only=True):
    """What happens in a catalog.

    Attributes:
        kind: What the catalog is, in words.
        can_watch: Whether its changes can be seen.
        events: The newest changes.
        most_events: How many a page shows.
        transactions: A metastore's; None where there are none to show.
        obstacle: Why there are none to show.
        stream: Where a page hears of new changes.
        within: The namespace that was asked for.
        wanted: The kind of change that was asked for.
        kinds: The kinds that can be asked for.
    """

    kind: str
    can_watch: bool
    events: list[ShownEvent]
    most_events: int = _MOST
    transactions: Transactions | None
    obstacle: str
    stream: str
    within: str
    wanted: str
    kinds: list[KindChoice]


def show_activity(visit: Visit) -> ActivityView:
    """Show what happens in a catalog.

    Raises:
        InvalidInputError: what was asked for makes no sense.
    """
    earshot = earshot_of(visit.identity, visit.served, visit.query)
    can_watch = isinstance(visit.served, MooringCatalog)
    transactions, obstacle = _transactions(visit, earshot)
    return ActivityView(
        cli=visit.cli("txn", "list") if transactions else visit.cli("watch") if can_watch else "",
        kind=name_kind(visit.kind),
        can_watch=can_watch,
        events=_events(visit, earshot) if can_watch else [],
        transactions=transactions,
        obstacle=obstacle,
        stream=_stream(visit, earshot) if can_watch else "",
        within=str(earshot.namespace) if earshot.namespace.names else "",
        wanted="" if earshot.kind is None else earshot.kind.value,
        kinds=KINDS,
    )


def _transactions(visit: Visit, earshot: Earshot) -> tuple[Transactions | None, str]:
    """Return the transactions, or why there are none to show."""
    if visit.kind != "metastore":
        return None, f"This catalog is {name_kind(visit.kind)}: only a metastore has transactions."
    if not visit.may(Role.READER):
        return None, "Transactions are shown to those who may read the whole catalog."
    return list_transactions(visit, earshot.namespace), ""


def _stream(visit: Visit, earshot: Earshot) -> str:
    watcher = visit.atlas.feed.watcher
    return visit.links.to(
        "stream",
        within=str(earshot.namespace) if earshot.namespace.names else None,
        kind=None if earshot.kind is None else earshot.kind.value,
        after=None if watcher is None else str(watcher.cursor),
    )


def _events(visit: Visit, earshot: Earshot) -> list[ShownEvent]:
    """Return what was seen since somebody watches, and what the trash tells of before."""
    watcher = visit.atlas.feed.watcher
    seen = [] if watcher is None else watcher.newest()
    told = {(one.kind, one.id) for one in seen}
    past = [one for one in _drops(visit.atlas.picture().look) if (one.kind, one.id) not in told]
    found = sorted([*seen, *past], key=lambda one: one.at_ms, reverse=True)
    shown = (earshot.show(one) for one in found)
    return [show_event(one, visit.links) for one in islice(filter(None, shown), _MOST)]


def _drops(look: Look) -> Iterator[Event]:
    for kind, drops in (
        (Kind.TABLE_DROPPED, look.drops),
        (Kind.NAMESPACE_DROPPED, look.namespace_drops),
    ):
        for one in drops:
            yield Event(kind, one.id, one.deleted_at_ms, one.by)
