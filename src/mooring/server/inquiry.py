"""What is known of a request for a change, until the audit log hears what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.asked import state_of
from mooring.server.audit import Change, outcome_of
from mooring.server.roles import NOBODY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from mooring.identifiers import ObjectId
    from mooring.server.audit import Audit

__all__ = ["Inquiry"]


class Inquiry:
    """One request; what it is about is filled in as it is found out."""

    def __init__(self, audit: Audit, request: Request, operation: str, *, changes: bool) -> None:
        """Begin with what is known at once.

        Args:
            audit: Hears of changes.
            request: The request.
            operation: What is asked for, with the protocol before it.
            changes: Whether that is a change: of others nothing is told.
        """
        self._audit = audit
        self._request = request
        self._operation = operation
        self._changes = changes
        self.identity = NOBODY
        self.catalog = ""
        self.objects: Sequence[ObjectId] = ()

    def end(self, status: int, message: str | None) -> None:
        """Tell what was answered, and where it is a failure, why."""
        if not self._changes:
            return
        client = self._request.client
        self._audit.record(
            Change(
                subject=self.identity.subject,
                catalog=self.catalog,
                operation=self._operation,
                objects=self.objects,
                status=status,
                outcome=outcome_of(status),
                message=message,
                address=client.host if client else None,
                request_id=state_of(self._request.scope).get("request_id"),
            )
        )
