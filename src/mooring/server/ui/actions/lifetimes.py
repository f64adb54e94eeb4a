"""How long something is to stay in the trash: what a catalog does by itself, and what is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.clock import DAY_MS, format_time, parse_ttl
from mooring.errors import InvalidInputError
from mooring.identifiers import ObjectId, quote
from mooring.namespace.api import Ttl
from mooring.namespace.properties import RETENTION
from mooring.server.ui.formats import whole_duration
from mooring.server.ui.view import Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.namespace.settings import Settings
    from mooring.server.ui.visit import Visit

__all__ = ["read_ttl", "stay_explained", "ttl_field", "until"]

_TTL = "ttl"
_SUGGESTED = (("1d", "a day"), ("7d", "a week"), ("30d", "a month"), ("never", "for ever"))


def ttl_field(visit: Visit, about: ObjectId) -> Field:
    """Ask how long something is to stay in the trash."""
    return Field(
        name=_TTL,
        label="Time in the trash",
        hint=f"As 12h, 7d, 4w or never. Empty: as {_usual(visit, about)[1]} says.",
        choices=[*_SUGGESTED],
        required=False,
    )


def read_ttl(form: Mapping[str, str]) -> Ttl | None:
    """Read the answer; None where the catalog decides.

    Raises:
        InvalidInputError: it is no duration.
    """
    text = form.get(_TTL, "").strip()
    return Ttl(parse_ttl(text)) if text else None


def stay_explained(visit: Visit, about: ObjectId) -> str:
    """Say how long something stays in the trash where nobody says otherwise."""
    ttl, whose = _usual(visit, about)
    if ttl is None:
        return f"It stays in the trash as long as {whose} says, unless you say otherwise below."
    if ttl.ms is None:
        return f"It stays in the trash for ever, as {whose} says, unless you say otherwise below."
    return (
        f"It stays in the trash for {whole_duration(ttl.ms)}, as {whose} says, unless you say"
        " otherwise below; then the next purge deletes it."
    )


def _usual(visit: Visit, about: ObjectId) -> tuple[Ttl | None, str]:
    """Return how long something stays where nobody says, and who has it so; None where unknown."""
    for level in range(about.level, 0, -1):
        one = ObjectId(about.names[:level])
        said = (visit.atlas.picture().look.namespaces.get(one) or {}).get(RETENTION)
        try:
            if said is not None:
                return Ttl(parse_ttl(said)), f"namespace {quote(str(one))}"
        except InvalidInputError:
            pass  # another program wrote it, and the catalog passes over it as well
    settings: Settings | None = getattr(getattr(visit.backend, "home", None), "settings", None)
    return None if settings is None else Ttl(settings.default_ttl_ms), "the catalog"


def until(expires_at_ms: int | None, now_ms: int) -> str:
    """Say until when something is in the trash."""
    if expires_at_ms is None:
        return "for ever"
    # A time of day says nothing of what is weeks away.
    text = format_time(expires_at_ms)
    return f"until {text[:10]}" if expires_at_ms - now_ms > 2 * DAY_MS else f"until {text}"
