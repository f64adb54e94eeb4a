"""Looking at what a client staged before it becomes a version, which cannot be undone.

Whoever can write a table's directory could put anything there; a version that Lance cannot read
would leave the table unreadable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError, UnreadableError
from mooring.identifiers import quote
from mooring.tables.manifest_message import FOOTER, find_message, read_fields
from mooring.tables.records import VersionRecords

if TYPE_CHECKING:
    from mooring.namespace.api import Backend, TableInfo
    from mooring.namespace.table_operations import CreateVersion

__all__ = ["check_staged"]

_MAGIC = b"LANC"
_VERSION_FIELD = 3


def check_staged(backend: Backend, info: TableInfo, wanted: CreateVersion) -> None:
    """Refuse a file that is no manifest of this version; one that is absent is not looked at.

    Raises:
        InvalidInputError: it is none, or lies where none can.
    """
    from mooring.namespace.located import locate  # imports lance

    place = locate(backend, info.id, info).place
    records = VersionRecords(place.store, place.directory)
    body = place.store.get(records.staged_path(wanted.manifest_path))
    if body is None:
        return
    shown = quote(wanted.manifest_path)
    if not _is_manifest(body):
        raise InvalidInputError(f"{shown} is no manifest of Lance's")
    found = _version(wanted.manifest_path, body)
    if found is not None and found != wanted.version:
        msg = f"{shown} is the manifest of version {found}, and not of {wanted.version}"
        raise InvalidInputError(msg)


def _is_manifest(body: bytes) -> bool:
    """Whether a file ends as manifests do: with where in it the message begins.

    Files of data end with the same letters, and other numbers before them.
    """
    if len(body) < FOOTER.size or not body.endswith(_MAGIC):
        return False
    start: int = FOOTER.unpack(body[-FOOTER.size :])[0]
    return 0 <= start < len(body) - FOOTER.size


def _version(path: str, body: bytes) -> int | None:
    """Return the version that a manifest says it is; None where it is of a newer form."""
    try:
        _, message = find_message(path, body)
        numbers = [value for number, value in read_fields(message) if number == _VERSION_FIELD]
    except (UnreadableError, IndexError, KeyError):
        return None
    return numbers[-1] if numbers and isinstance(numbers[-1], int) else None
