"""Changes of a catalog as pages show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.feed.event import Event, Kind

if TYPE_CHECKING:
    from mooring.server.ui.links import Links

__all__ = ["KINDS", "KindChoice", "ShownEvent", "frame_shown", "show_event"]

_TONES = {
    "created": "good",
    "declared": "good",
    "registered": "good",
    "undropped": "good",
    "dropped": "warn",
    "removed": "warn",
    "purged": "bad",
}
_DROPS = frozenset({Kind.TABLE_DROPPED, Kind.NAMESPACE_DROPPED})
_ENDS = frozenset({Kind.TABLE_REMOVED, Kind.TABLE_PURGED})
_MOST_CHANGED = 4


class ShownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A change.

    Attributes:
        id: Its place among others; none for what happened before anybody watched.
        kind: What happened, as the stream names it.
        what: Whether to a table or a namespace.
        verb: What happened, in a word.
        tone: How it looks.
        names: To which table or namespace, level by level.
        href: Where it is now; empty where it is nowhere.
        at_ms: When it was seen.
        by: Who did it; None where nobody tells.
        detail: What else there is to tell.
    """

    id: str | None
    kind: str
    what: str
    verb: str
    tone: str
    names: list[str]
    href: str
    at_ms: int
    by: str | None
    detail: str


class KindChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of change that can be asked for."""

    value: str
    label: str


KINDS = [
    KindChoice(value=kind.value, label=kind.value.replace(".", " ").replace("_", " "))
    for kind in Kind
    if kind is not Kind.RESET
]


def show_event(event: Event, links: Links) -> ShownEvent:
    """Show a change."""
    what, _, verb = event.kind.value.partition(".")
    return ShownEvent(
        id=None if event.cursor is None else str(event.cursor),
        kind=event.kind.value,
        what=what,
        verb=verb.replace("_", " "),
        tone=_TONES.get(verb, "accent"),
        names=list(event.id.names),
        href=_href(event, links),
        at_ms=event.at_ms,
        by=event.by,
        detail=_detail(event),
    )


def _href(event: Event, links: Links) -> str:
    """Return where what it happened to is now."""
    if event.kind in _DROPS:
        return links.to("trash")
    if event.kind in _ENDS:
        return ""
    return links.namespace(event.id) if event.kind.is_of_namespaces else links.table(event.id)


def _detail(event: Event) -> str:
    if event.old_id is not None:
        return f"it was {event.old_id}"
    version = event.details.get("version")
    if isinstance(version, int):
        return f"version {version:,}"
    changed = event.details.get("changed")
    if isinstance(changed, dict | list):
        names = sorted(map(str, changed))
        more = f" and {len(names) - _MOST_CHANGED:,} more" if len(names) > _MOST_CHANGED else ""
        return ", ".join(names[:_MOST_CHANGED]) + more
    return ""


def frame_shown(event: Event, links: Links) -> bytes:
    """Write a change as the stream of a page has it."""
    if event.kind is Kind.RESET:
        return f"id: {event.cursor}\nevent: reset\ndata: {{}}\n\n".encode()
    body = msgspec.json.encode(show_event(event, links))
    return f"id: {event.cursor}\nevent: change\ndata: ".encode() + body + b"\n\n"
