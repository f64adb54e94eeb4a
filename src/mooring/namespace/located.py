"""From a name in a catalog to a table whose content can be read and changed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from mooring.clock import SystemClock
from mooring.errors import (
    ConcurrentModificationError,
    MooringError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.identifiers import quote
from mooring.tables.api import AT_MS, BY, EXPIRES_AT
from mooring.tables.changes import Changed, insert
from mooring.tables.handle import TableHandle
from mooring.tables.records import ALL
from mooring.tables.watched_rows import WatchedRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from mooring.identifiers import ObjectId
    from mooring.namespace.api import Backend, TableInfo
    from mooring.tables.api import VersionRecord

__all__ = ["insert_into", "locate"]

# As early as Lance itself asks for others.
_RENEWED_BEFORE_MS = 60_000


class _TableLedger:
    """The versions of one table, as its catalog decides about them."""

    def __init__(self, backend: Backend, found: TableInfo) -> None:
        self._backend = backend
        self._table = found.id
        self._location = found.location
        self._keeps_versions = found.has_versions_kept(backend)
        self._info: TableInfo | None = None

    def prepare(self) -> None:
        self._backend.require_writable()

    @property
    def keeps_versions(self) -> bool:
        return self._keeps_versions

    def forget(self, branch: str) -> None:
        if self.keeps_versions:
            self._backend.delete_table_versions(self._table, [ALL], branch=branch)

    def options(self) -> Mapping[str, str]:
        return self._look().storage_options

    def tidy(self) -> None:
        if self.keeps_versions:
            self._backend.tidy_versions(self._table)

    def newest(self, branch: str | None) -> VersionRecord | None:
        found = self.newest_first(branch, limit=1)
        return found[0] if found else None

    def newest_first(self, branch: str | None, limit: int | None = None) -> list[VersionRecord]:
        self._info = self._look()
        return self._backend.list_table_versions(
            self._table, branch=branch, limit=limit, known=self._info
        )

    def _look(self) -> TableInfo:
        """Look whether the name still means the table that was located."""
        info = self._backend.describe_table(self._table)
        if info.location != self._location:
            msg = (
                f"{quote(str(self._table))} names another table now, at '{info.location}': ask the"
                " catalog for it again"
            )
            raise ConcurrentModificationError(msg)
        return info

    def confirm(self) -> None:
        try:
            if self._backend.describe_table(self._table).location == self._location:
                return
        except TableNotFoundError:
            pass
        msg = (
            f"table {quote(str(self._table))} was dropped or renamed while it was changed: the"
            " change may be in it when it comes back"
        )
        raise TableNotFoundError(msg)

    def describe(self, version: int, branch: str | None) -> VersionRecord:
        return self._backend.describe_table_version(self._table, version, branch=branch)

    def create(self, version: int, staged_path: str, branch: str | None) -> VersionRecord:
        # The look at the start will do for before; after the put the catalog looks again.
        return self._backend.create_table_version(
            self._table, version, staged_path, branch=branch, known=self._info
        )


def insert_into(
    backend: Backend,
    table: ObjectId,
    rows: pa.RecordBatchReader,
    *,
    overwrite: bool = False,
    branch: str | None = None,
    known: TableInfo | None = None,
) -> Changed:
    """Insert rows; into a table that is only declared they are its first.

    Raises:
        TableNotFoundError: no live table has this identifier.
        TableSchemaValidationError: the rows do not fit the table.
        ConcurrentModificationError: a conflicting change came first.
    """
    handle = locate(backend, table, known)
    try:
        return insert(handle, rows, overwrite=overwrite, branch=branch)
    except TableNotFoundError:
        if branch or not _is_only_declared(handle):
            raise
    source = WatchedRows(rows)
    try:
        info = backend.create_table(table, source.reader)
    except TableAlreadyExistsError as exc:
        msg = f"somebody else wrote the first rows of {handle.what} at the same time: try again"
        raise ConcurrentModificationError(msg) from exc
    return Changed(info.version or 1, inserted=source.count)


def _is_only_declared(handle: TableHandle) -> bool:
    """Whether a table is there and has no rows; whatever else is the matter is told already."""
    try:
        return handle.ledger.newest(None) is None
    except MooringError:
        # Nothing that is found now may hide that rows were perhaps written.
        return False


def locate(backend: Backend, table: ObjectId, info: TableInfo | None = None) -> TableHandle:
    """Find a live table.

    Args:
        backend: The catalog.
        table: The identifier.
        info: What describing it answered, where that was done already.

    Raises:
        TableNotFoundError: no live table has this identifier.
    """
    found = _with_valid_options(backend, info) if info else backend.describe_table(table)
    return TableHandle(
        str(table),
        found.location,
        found.storage_options,
        _TableLedger(backend, replace(found, id=table)),
        stamp={BY: backend.author, AT_MS: str(SystemClock().now_ms())},
    )


def _with_valid_options(backend: Backend, info: TableInfo) -> TableInfo:
    """Return what is known of a table, with credentials that are not about to come to an end."""
    text = info.storage_options.get(EXPIRES_AT, "")
    if not text.isdigit() or int(text) - _RENEWED_BEFORE_MS > SystemClock().now_ms():
        return info
    with suppress(TableNotFoundError):
        fresh = backend.describe_table(info.id)
        if fresh.location == info.location:
            return replace(info, storage_options=fresh.storage_options)
    return info
