"""Properties of namespaces and tables: what may be set, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.clock import parse_ttl
from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PROTECTED", "RETENTION", "check_properties", "merge_properties"]

PROTECTED = "mooring.protected"
RETENTION = "mooring.retention"
_OURS = "mooring."


def check_properties(properties: Mapping[str, str | None]) -> None:
    """Refuse properties that could not be kept or understood.

    Raises:
        InvalidInputError: with the reason.
    """
    for key, value in properties.items():
        if not key:
            msg = "a property needs a name"
            raise InvalidInputError(msg)
        if not isinstance(value, str | None):
            msg = f"property {quote(str(key))} is a string, not {type(value).__name__}"
            raise InvalidInputError(msg)
        if key.startswith(_OURS) and key not in {PROTECTED, RETENTION}:
            msg = (
                f"{quote(key)} cannot be a property: of those that begin with '{_OURS}' only"
                f" {quote(PROTECTED)} and {quote(RETENTION)} can be set"
            )
            raise InvalidInputError(msg)
    protected = properties.get(PROTECTED)
    if protected not in {None, "true", "false"}:
        msg = f"property {quote(PROTECTED)} is 'true' or 'false', not {quote(str(protected))}"
        raise InvalidInputError(msg)
    retention = properties.get(RETENTION)
    if retention is not None:
        parse_ttl(retention)


def merge_properties(known: Mapping[str, str], updates: Mapping[str, str | None]) -> dict[str, str]:
    """Return properties with updates applied; None removes one."""
    merged = {**known, **updates}
    return {key: value for key, value in merged.items() if value is not None}
