"""How long a dropped object is kept, as a request says it: Lance REST has no field for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring.namespace.api import Ttl

__all__ = ["ttl_headers"]

# Headers of this beginning are what Lance calls the context of a request.
_TTL = "x-mooring-ttl"


def ttl_headers(ttl: Ttl | None) -> dict[str, str]:
    """Return the headers that tell a time in the trash; none for the catalog's own."""
    if ttl is None:
        return {}
    return {_TTL: "never" if ttl.ms is None else f"{-(-ttl.ms // 1000)}s"}
