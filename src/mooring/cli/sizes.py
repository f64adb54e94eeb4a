"""Sizes as people write them."""

from __future__ import annotations

import re

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

__all__ = ["parse_size"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?)b?", re.IGNORECASE)
_UNITS = " kmgtp"


def parse_size(text: str) -> int:
    """Read a number of bytes: ``4096``, ``64MB``, ``1.5GiB``.

    Raises:
        InvalidInputError: it is none, or below one.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise InvalidInputError(f"{quote(text)} is no size: write 4096, 64MB or 1.5GiB")
    number, unit, binary = found.groups()
    factor: int = (1024 if binary else 1000) ** _UNITS.index(unit.lower() or " ")
    size = round(float(number) * factor)
    if size < 1:
        raise InvalidInputError(f"{quote(text)} is no size: it is less than a byte")
    return size
