"""What all protocols of a server share: its catalogs, who may use them, and who does the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.errors import PermissionDeniedError, UnauthenticatedError
from mooring.server.audit import NoAudit
from mooring.server.auth import Expired
from mooring.server.ending import Ending
from mooring.server.metrics import Metrics
from mooring.server.roles import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from mooring.server.audit import Audit
    from mooring.server.auth import Authority
    from mooring.server.catalogs import Catalogs, Served
    from mooring.server.roles import Identity
    from mooring.server.settings import ServerSettings
    from mooring.server.vending import Vendor
    from mooring.server.work import Workers

__all__ = ["Service"]


@dataclass(frozen=True, slots=True)
class Service:
    """A server, below its protocols.

    Attributes:
        catalogs: What is served.
        authority: Knows who asks.
        workers: Do the work.
        settings: How the server behaves.
        audit: Hears of every change.
        vendor: Gives clients credentials of the store; None where they get none.
        metrics: Counts.
        ending: Tells when the server is about to end.
    """

    catalogs: Catalogs
    authority: Authority
    workers: Workers
    settings: ServerSettings
    audit: Audit = field(default_factory=NoAudit)
    vendor: Vendor | None = None
    metrics: Metrics = field(default_factory=Metrics)
    ending: Ending = field(default_factory=Ending)

    def identify(self, request: Request, *, changes: bool) -> Identity | Expired:
        """Tell who asks, also to the log.

        Args:
            request: The request.
            changes: Whether something is to be changed.

        Raises:
            UnauthenticatedError: nobody knows.
            PermissionDeniedError: a web page asks for a change where nobody is asked for a token.
        """
        found = self.authority.identify(_lowered(request))
        if found is None:
            is_shown = bool(self.authority.shown(_lowered(request)))
            needed = "a token is needed" + (", and this is none that counts" if is_shown else "")
            msg = f"{needed}: show one of this server's clients, or its id and secret"
            raise UnauthenticatedError(msg)
        if isinstance(found, Expired):
            return found
        request.scope.setdefault("state", {})["subject"] = found.subject
        if changes and self.authority.asks_nobody and "origin" in request.headers:
            # A browser lets any page send requests to this machine, and only tells of it.
            msg = (
                "web pages may not change anything where nobody is asked for a token: have the"
                " server name its clients with --credentials"
            )
            raise PermissionDeniedError(msg)
        return found

    def find_catalog(self, identity: Identity, name: str | None) -> Served:
        """Return the catalog of a name, for somebody.

        Raises:
            PermissionDeniedError: they have no role there, whether there is one or not.
            NotFoundError: there is none.
        """
        if name is not None and name not in self.catalogs:
            identity.require_somewhere(Role.READER, name)
        return self.catalogs.find(name)

    def close(self) -> None:
        """Finish all that was begun, and write down what came of it."""
        self.workers.close()
        self.audit.close()


def _lowered(request: Request) -> Mapping[str, str]:
    return {key.lower(): value for key, value in request.headers.items()}
