"""The settings of a catalog in storage, as numbered revisions beside its tables.

A plain directory of tables has none and is a catalog all the same. The format number guards a
catalog against releases that are too old for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.clock import DAY_MS
from mooring.errors import CatalogFormatError, ConcurrentModificationError, UnreadableError
from mooring.store.numbered import create_once, find_newest, format_seq

if TYPE_CHECKING:
    from mooring.store import Store

__all__ = [
    "DEFAULT_TTL_MS",
    "DIRECTORY",
    "FORMAT",
    "METASTORE",
    "Settings",
    "load_settings",
    "save_settings",
    "settings_path",
]

FORMAT = 1
DEFAULT_TTL_MS = 7 * DAY_MS
DIRECTORY, METASTORE = "directory", "metastore"
_PREFIX = "_mooring-catalog."


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a catalog's settings.

    Attributes:
        format: The layout of the catalog; a release refuses one that is newer than it knows.
        adopted: Whether listings need not look for nested markers of other programs.
        default_ttl_ms: How long dropped tables stay in the trash; None is for ever.
        allowed_locations: Where tables may lie outside the root: URIs or paths.
        managed_versioning: Whether whoever opens a table through the catalog commits through it.
        nonce: Random; tells this revision from another with the same content.
        by: Who saved it.
        at_ms: When.
        kind: What the catalog is: a directory of tables, or a metastore.
        revision: Its number; 0 stands for a directory without settings.
    """

    format: int = FORMAT
    adopted: bool = False
    default_ttl_ms: int | None = DEFAULT_TTL_MS
    allowed_locations: tuple[str, ...] = ()
    managed_versioning: bool = False
    nonce: str = ""
    by: str = ""
    at_ms: int = 0
    kind: str = DIRECTORY
    revision: int = 0


def settings_path(seq: int) -> str:
    """Return the path of a revision of the catalog's settings."""
    return _PREFIX + format_seq(seq)


class _Format(msgspec.Struct, frozen=True):
    format: int


def load_settings(store: Store, known: Settings | None = None) -> Settings:
    """Read the newest settings, or the defaults for a plain directory.

    Args:
        store: The catalog's store.
        known: Settings that were read before: only newer ones are looked for.

    Raises:
        CatalogFormatError: the catalog is newer than this release.
    """
    known = known or Settings()
    revision, body = find_newest(store, settings_path, known.revision)
    return _decode(settings_path(revision), body) if body is not None else known


def save_settings(store: Store, settings: Settings) -> Settings:
    """Save settings as the revision after theirs.

    Raises:
        ConcurrentModificationError: somebody else saved settings first.
    """
    new = msgspec.structs.replace(settings, revision=settings.revision + 1)
    path = settings_path(new.revision)
    if not create_once(store, path, msgspec.json.encode(new)):
        msg = "the catalog's settings were changed by somebody else at the same time"
        raise ConcurrentModificationError(msg)
    return new


def _decode(path: str, body: bytes) -> Settings:
    try:
        found = msgspec.json.decode(body, type=_Format).format
        if found > FORMAT:
            msg = (
                f"this catalog has format {found} and this Mooring knows format {FORMAT}:"
                ' upgrade with "pip install --upgrade mooring"'
            )
            raise CatalogFormatError(msg)
        return msgspec.json.decode(body, type=Settings)
    except msgspec.DecodeError as exc:
        msg = f"'{path}' is damaged ({exc}): restore it from a copy"
        raise UnreadableError(msg) from exc
