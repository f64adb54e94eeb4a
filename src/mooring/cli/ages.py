"""Ages, as they are given on the command line."""

from __future__ import annotations

from mooring.errors import InvalidInputError

__all__ = ["parse_age"]


def parse_age(text: str) -> int:
    """Read for how long nothing was written, in milliseconds.

    Raises:
        InvalidInputError: it is no duration, or never ends.
    """
    from mooring.clock import parse_ttl

    age_ms = parse_ttl(text)
    if age_ms is None:
        msg = f"'{text}' is no age: say how long nothing was written, as in 7d or 12h"
        raise InvalidInputError(msg)
    return age_ms
