"""Seals: a table's last version, which everybody can read and nobody can add to.

A sealed version is a copy of the newest manifest with a feature flag that no writer knows. Every
Lance writer refuses a table with such a flag; readers do not look at it. Only fields are added to
the manifest's message: where one occurs twice, readers of the format take the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mooring.errors import ConcurrentModificationError, UnreadableError
from mooring.store.numbered import create_once
from mooring.tables.manifest_message import (
    FOOTER,
    LENGTH,
    find_message,
    read_fields,
    write_bytes,
    write_number,
)
from mooring.tables.versions import list_versions, manifest_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mooring.store import Store

__all__ = ["Seal", "is_sealed_once", "lift_seal", "put_seal", "read_seal", "renumber"]

_FLAG = 1 << 60
_KEY = b"mooring.sealed"
# Numbers of fields of the manifest's message, and of the entries of a map.
_VERSION, _WRITER_FLAGS, _CONFIG = 3, 10, 16
_MAP_KEY, _MAP_VALUE = 1, 2
_ROUNDS = 64


class Seal(NamedTuple):
    """The newest version of a table, and who sealed it, if anybody did."""

    version: int
    nonce: str | None


def read_seal(store: Store, table_dir: str) -> Seal:
    """Tell the newest version of a table and whether it is sealed; version 0 for none."""
    versions = list_versions(store, table_dir)
    version = max(versions, default=0)
    body = store.get(versions[version]) if version else None
    if body is None:
        return Seal(version, None)
    try:
        return Seal(version, _nonce_of(versions[version], body))
    except UnreadableError:
        # A seal is a copy of a manifest whose form is known: this is none.
        return Seal(version, None)


def is_sealed_once(config: Mapping[str, str]) -> bool:
    """Whether a version is sealed, or comes after one that was, by the map it carries."""
    return _KEY.decode() in config


def renumber(path: str, body: bytes, version: int) -> bytes:
    """Return a manifest as that of another version, without a seal.

    Raises:
        UnreadableError: it is damaged.
    """
    return _copy(path, body, version, None)


def put_seal(store: Store, table_dir: str, nonce: str) -> int:
    """Seal a table against all writers; one that is sealed by the same nonce stays as it is.

    Returns:
        The newest version that is no seal; 0 where the table has none, and then no seal.

    Raises:
        ConcurrentModificationError: others kept committing, or cleaned up all but the seal.
    """
    return _put_copy(store, table_dir, lambda found: found == nonce, nonce=nonce)


def lift_seal(
    store: Store, table_dir: str, require: Callable[[], None], nonce: str | None = None
) -> None:
    """Make a sealed table writable again, as its next version.

    Args:
        store: The catalog's store.
        table_dir: The table's directory in it.
        require: Raises where that may not be done any more; called after the versions are read.
        nonce: The seal to lift, where only one is meant.
    """

    def is_done(found: str | None) -> bool:
        return found is None or (nonce is not None and found != nonce)

    _put_copy(store, table_dir, is_done, nonce=None, require=require)


def _put_copy(
    store: Store,
    table_dir: str,
    is_done: Callable[[str | None], bool],
    *,
    nonce: str | None,
    require: Callable[[], None] | None = None,
) -> int:
    for _ in range(_ROUNDS):
        versions = list_versions(store, table_dir)
        newest = max(versions, default=0)
        body = store.get(versions[newest]) if newest else None
        if body is None:
            if newest:
                continue  # cleaned up since it was listed
            return 0
        found = _nonce_of(versions[newest], body)
        if not is_done(found):
            if require is not None:
                require()
            path = manifest_path(table_dir, newest + 1, like=versions[newest])
            if not create_once(store, path, _copy(versions[newest], body, newest + 1, nonce)):
                continue
        return _last_open(store, versions, newest) if nonce and found is not None else newest
    msg = f"other writers kept committing to '{table_dir}'"
    raise ConcurrentModificationError(msg)


def _last_open(store: Store, versions: Mapping[int, str], sealed: int) -> int:
    """Find the version that a seal is a copy of; what another rename has left may lie between."""
    for version in sorted((found for found in versions if found < sealed), reverse=True):
        body = store.get(versions[version])
        if body is not None and _nonce_of(versions[version], body) is None:
            return version
    msg = f"all versions before '{versions[sealed]}', which is sealed, were cleaned up: try again"
    raise ConcurrentModificationError(msg)


def _copy(path: str, body: bytes, version: int, nonce: str | None) -> bytes:
    """Return a manifest as another version, sealed or not."""
    start, message = find_message(path, body)
    flags = _flags_of(message)
    flags = flags | _FLAG if nonce else flags & ~_FLAG
    message += write_number(_VERSION, version)
    message += write_number(_WRITER_FLAGS, flags)
    if nonce:
        entry = write_bytes(_MAP_KEY, _KEY) + write_bytes(_MAP_VALUE, nonce.encode())
        message += write_bytes(_CONFIG, entry)
    footer = body[-FOOTER.size :]
    return body[:start] + LENGTH.pack(len(message)) + message + footer


def _nonce_of(path: str, body: bytes) -> str | None:
    _, message = find_message(path, body)
    if not _flags_of(message) & _FLAG:
        return None
    nonce = ""
    for number, value in read_fields(message):
        if number == _CONFIG and isinstance(value, bytes):
            entry = dict(read_fields(value))
            if entry.get(_MAP_KEY) == _KEY:
                found = entry.get(_MAP_VALUE)
                nonce = found.decode() if isinstance(found, bytes) else ""
    return nonce


def _flags_of(message: bytes) -> int:
    flags = 0
    for number, value in read_fields(message):
        if number == _WRITER_FLAGS and isinstance(value, int):
            flags = value
    return flags
