"""The audit log: every change that was asked for, by whom, when, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.identifiers import ObjectId

__all__ = ["Audit", "Change", "NoAudit", "outcome_of"]

_FAILURES, _SERVER_FAILURES = 400, 500


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was asked for.

    Attributes:
        subject: By whom; None where nobody is asked for a name.
        catalog: In which catalog.
        operation: What, as its protocol calls it, as in ``lance.DropTable``.
        objects: What it is about.
        status: What was answered, of HTTP.
        outcome: ``done``, ``refused`` or ``failed``.
        message: Why it was not done; None where it was.
        address: Of the client.
        request_id: By which all logs have it.
    """

    subject: str | None
    catalog: str
    operation: str
    objects: Sequence[ObjectId]
    status: int
    outcome: str
    message: str | None = None
    address: str | None = None
    request_id: str | None = None


class Audit(Protocol):
    """Hears of every change."""

    def record(self, change: Change) -> None:
        """Take note of a change that was answered; called in the loop, so that it must not wait."""
        ...


class NoAudit:
    """Takes no note."""

    def record(self, change: Change) -> None:
        """Forget it."""
        del change


def outcome_of(status: int) -> str:
    """Return what a status of HTTP says about a change."""
    if status < _FAILURES:
        return "done"
    return "failed" if status >= _SERVER_FAILURES else "refused"
