"""Which version an action is about: by its address, and by its form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.server.ui.view import Field
from mooring.tables.reference_names import branch_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.server.ui.visit import Visit

__all__ = ["chosen_branch", "chosen_version", "version_field", "where"]

_MOST_DIGITS = 18  # long numbers take long to read


def chosen_branch(visit: Visit) -> str | None:
    """Return the branch in the address; None for main.

    Raises:
        InvalidInputError: no branch can have this name.
    """
    return branch_of(visit.query.get("branch"))


def version_field(version: int | None, hint: str = "") -> Field:
    """Ask for a version."""
    value = "" if version is None else str(version)
    return Field(name="version", label="Version", kind="number", value=value, hint=hint)


def chosen_version(form: Mapping[str, str]) -> int | None:
    """Return the version in a form; None where it is left empty.

    Raises:
        InvalidInputError: it is no number.
    """
    text = form.get("version", "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise InvalidInputError(f"a version is a whole number, not {quote(text)}")
    return int(text)


def where(branch: str | None) -> str:
    """Say of which branch something is; of main, nothing."""
    return f" of branch {quote(branch)}" if branch else ""
