"""Versions that a catalog asked for and never heard of.

Lance asks for such a version, and would take an answer for a lost race and write the same rows
again: so it is told that nothing is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import UnknownOutcomeError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from mooring.identifiers import ObjectId

__all__ = ["never_told"]


def never_told(table: ObjectId, version: int) -> UnknownOutcomeError:
    """Word that nothing told whether a version was made."""
    msg = f"whether version {version} of table {quote(str(table))} was made is not known"
    return UnknownOutcomeError(msg)
