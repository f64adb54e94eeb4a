"""A change of a catalog that somebody saw, and its place among others.

An event is about what two looks at a catalog show, not about requests: what was undone between the
two leaves none. Its cursor tells which events came after it, as long as they are kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from mooring.identifiers import ROOT, ObjectId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["OLD_ID", "Cursor", "Event", "Kind", "reset"]

OLD_ID = "old_id"
_CURSOR = re.compile(r"([0-9a-f]{1,32})-([0-9]{1,18})", re.ASCII)


class Kind(StrEnum):
    """What happened."""

    NAMESPACE_CREATED = "namespace.created"
    NAMESPACE_DROPPED = "namespace.dropped"
    NAMESPACE_UNDROPPED = "namespace.undropped"
    NAMESPACE_CHANGED = "namespace.properties_changed"
    TABLE_CREATED = "table.created"
    TABLE_DECLARED = "table.declared"
    TABLE_REGISTERED = "table.registered"
    TABLE_DROPPED = "table.dropped"
    TABLE_UNDROPPED = "table.undropped"
    TABLE_RENAMED = "table.renamed"
    TABLE_REMOVED = "table.removed"
    TABLE_PURGED = "table.purged"
    TABLE_CHANGED = "table.properties_changed"
    TABLE_WRITTEN = "table.written"
    RESET = "reset"

    @property
    def is_of_namespaces(self) -> bool:
        """Whether it happens to namespaces."""
        return self.value.startswith("namespace.")


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the events of one watcher.

    Attributes:
        epoch: Tells the watcher: what another one saw has other numbers.
        number: How many events there were until then.
    """

    epoch: str
    number: int

    def __str__(self) -> str:
        """Write it as `parse` reads it."""
        return f"{self.epoch}-{self.number}"

    @classmethod
    def parse(cls, text: str) -> Cursor | None:
        """Read a cursor; None for what is none."""
        match = _CURSOR.fullmatch(text)
        return cls(match[1], int(match[2])) if match else None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        kind: What.
        id: To which table or namespace; the root for a reset.
        at_ms: When it was seen, which is a little after it happened.
        by: Who did it; None where the catalog does not tell, or only by many requests.
        details: What else there is to tell, of JSON's types.
        cursor: Its place; None until it has one.
    """

    kind: Kind
    id: ObjectId
    at_ms: int
    by: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    cursor: Cursor | None = None

    @property
    def old_id(self) -> ObjectId | None:
        """What a table was called before, where it has another name now."""
        found = self.details.get(OLD_ID)
        return ObjectId(tuple(found)) if isinstance(found, list) else None

    def to_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "id": str(self.cursor) if self.cursor else None,
            "kind": self.kind.value,
            "object": list(self.id.names),
            "at_ms": self.at_ms,
            "by": self.by,
            "details": dict(self.details),
        }

    def encode(self) -> bytes:
        """Write it as JSON, on one line."""
        return msgspec.json.encode(self.to_dict())

    @classmethod
    def decode(cls, body: bytes) -> Event:
        """Read what `encode` wrote.

        Raises:
            msgspec.MsgspecError: it is something else.
        """
        read = msgspec.json.decode(body, type=_Written)
        return cls(
            read.kind,
            ObjectId(tuple(read.names)),
            read.at_ms,
            read.by,
            read.details,
            Cursor.parse(read.id) if read.id else None,
        )

    def lies_in(self, namespace: ObjectId) -> bool:
        """Whether it is about a namespace, or what is in it, now or before."""
        return any(
            one.names[: namespace.level] == namespace.names
            for one in (self.id, self.old_id)
            if one is not None
        )

    def shown_to(self, sees: Callable[[ObjectId], bool]) -> Event | None:
        """Return what somebody may know of it; None where that is nothing.

        A table that got another name appears, or is gone, for who sees only one of the two.

        Args:
            sees: Whether an object may be known.
        """
        old = self.old_id
        if old is None:
            return self if sees(self.id) else None
        match sees(old), sees(self.id):
            case True, True:
                return self
            case False, True:
                kept = {key: value for key, value in self.details.items() if key != OLD_ID}
                kind = Kind.TABLE_CREATED if self.kind is Kind.TABLE_RENAMED else self.kind
                return replace(self, kind=kind, details=kept)
            case True, False if self.kind is Kind.TABLE_RENAMED:
                return replace(self, kind=Kind.TABLE_REMOVED, id=old, details={})
        return None


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    id: str | None = None
    kind: Kind
    names: list[str] = msgspec.field(name="object")
    at_ms: int
    by: str | None = None
    details: dict[str, object] = {}


def reset(at_ms: int, cursor: Cursor) -> Event:
    """Return what tells that events are missing: list anew, and go on from here."""
    return Event(Kind.RESET, ROOT, at_ms, cursor=cursor)
