"""What of the changes of a catalog one who listens may hear, and wants to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.feed.event import Kind
from mooring.identifiers import ROOT, ObjectId
from mooring.server.roles import Role

if TYPE_CHECKING:
    from mooring.feed.event import Event
    from mooring.server.roles import Identity

__all__ = ["Earshot"]


@dataclass(frozen=True, slots=True)
class Earshot:
    """What somebody hears of.

    Attributes:
        identity: Who it is.
        catalog: The catalog's name.
        namespace: Only what is in it.
        kind: Only events of this kind; None for all.
    """

    identity: Identity
    catalog: str
    namespace: ObjectId = ROOT
    kind: Kind | None = None

    def show(self, event: Event) -> Event | None:
        """Return what may be told of an event; None where that is nothing."""
        if event.kind is Kind.RESET:
            return event
        if not event.lies_in(self.namespace):
            return None
        shown = event.shown_to(lambda one: self._sees(event.kind, one))
        # A rename may be shown as something else.
        is_wanted = shown is not None and self.kind in {None, shown.kind}
        return shown if is_wanted else None

    def _sees(self, kind: Kind, one: ObjectId) -> bool:
        if kind.is_of_namespaces and kind is not Kind.NAMESPACE_CHANGED:
            return self.identity.sees(self.catalog, one)
        return self.identity.may(Role.READER, self.catalog, one)
