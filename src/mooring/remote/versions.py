"""The versions of a remote catalog's tables.

Where the server decides about them it is asked, as every server of Mooring's is: then nobody goes
round what it refuses. Elsewhere a version is a file of the table, and the put of that file decides.

Spec: objects-and-relationships, "Table Version".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mooring.errors import (
    TableVersionNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.identifiers import quote
from mooring.namespace.unsettled import never_told
from mooring.namespace.version_files import VersionFiles
from mooring.tables.api import VersionRecord
from mooring.tables.reference_names import branch_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.namespace.table_operations import CreateVersion
    from mooring.remote.connection import Connection
    from mooring.remote.tables import Tables
    from mooring.tables.api import VersionRange
    from mooring.tables.records import VersionRecords

__all__ = ["Versions", "ranges_body", "read_record", "version_body"]

# Lance asks about a commit that failed within seconds; who asks later only wants to read.
_OPEN_FOR_MS = 120_000


class Versions:
    """Reads, makes and deletes versions of the tables of a remote catalog."""

    def __init__(self, connection: Connection, tables: Tables) -> None:
        """Work for a catalog.

        Args:
            connection: The server.
            tables: The catalog's tables.
        """
        self._connection = connection
        self._tables = tables
        # Versions that this process asked for and never heard of, and until when they are kept from
        # being taken for others'.
        self._unsettled: dict[tuple[ObjectId, str | None, int], int] = {}

    # -- reading ---------------------------------------------------------------------------------

    def newest_first(
        self, table: ObjectId, branch: str | None, limit: int | None, known: TableInfo | None
    ) -> list[VersionRecord]:
        """Return the versions of a table, the newest first."""
        name = branch_of(branch)
        info = self._in_storage(table, known)
        if info is None:
            return self._ask_for(table, name, limit)
        found = _files(info, name).newest_first(limit)
        if not found:
            self._require_reachable(info)
        return found

    def _in_storage(self, table: ObjectId, known: TableInfo | None) -> TableInfo | None:
        """Locate a table whose versions the server leaves to its storage; None for others."""
        if self._connection.beside.offered() is not None:
            return None
        info = known or self._tables.describe(table)
        return None if info.keeps_versions else info

    def _require_reachable(self, info: TableInfo) -> None:
        """Refuse to take what cannot be seen from here for a table without data.

        Raises:
            UnsupportedError: the server says that there is data.
        """
        if self._tables.describe(info.id, check_declared=True).is_only_declared is False:
            msg = (
                f"nothing of table {quote(str(info.id))} is to be seen at '{info.location}', where"
                " its server says that it lies: that place cannot be reached from here; give"
                " storage options that reach it, or have the server hand them out"
            )
            raise UnsupportedError(msg)

    def _ask_for(
        self, table: ObjectId, branch: str | None, limit: int | None
    ) -> list[VersionRecord]:
        lance = self._connection.lance
        about = {"descending": "true", "branch": branch}
        if limit is not None:
            answer = lance.of_table(
                table, "version/list", query={**about, "limit": str(limit), "page_token": None}
            )
            return _read_records(answer)[:limit]

        def ask(page: Mapping[str, str | None]) -> dict[str, Any]:
            return lance.of_table(table, "version/list", query={**about, **page})

        found = [one for page in self._connection.pages(ask) for one in _read_records(page)]
        return sorted(found, key=lambda one: one.version, reverse=True)

    def describe(self, table: ObjectId, version: int, branch: str | None) -> VersionRecord:
        """Return one version of a table.

        Raises:
            TableVersionNotFoundError: there is no such version.
            UnknownOutcomeError: this catalog tried to make the version and never heard whether it
                did. Lance asks for it then, and would take an answer for a lost race and write
                the same rows again.
        """
        name = branch_of(branch)
        if self._unsettled.get((table, name, version), 0) > self._connection.clock.now_ms():
            raise never_told(table, version)
        info = self._in_storage(table, None)
        if info is not None:
            return _files(info, name).describe(version)
        body = {"version": version, **({"branch": name} if name else {})}
        answer = self._connection.lance.of_table(table, "version/describe", body=body)
        found = answer.get("version")
        if not isinstance(found, dict):
            msg = f"table {quote(str(table))} has no version {version}"
            raise TableVersionNotFoundError(msg)
        return read_record(found)

    # -- making them -----------------------------------------------------------------------------

    def create(self, wanted: CreateVersion, known: TableInfo | None) -> VersionRecord:
        """Make a manifest that was written a version of a table."""
        name = branch_of(wanted.branch)
        try:
            info = self._in_storage(wanted.table, known)
            if info is not None:
                return _files(info, name).create(wanted, partial(self._is_there, info))
            answer = self._connection.lance.of_table(
                wanted.table, "version/create", body=version_body(wanted), changes=True
            )
        except UnknownOutcomeError:
            until = self._connection.clock.now_ms() + _OPEN_FOR_MS
            self._unsettled[wanted.table, name, wanted.version] = until
            raise
        found = answer.get("version")
        if isinstance(found, dict):
            return read_record(found)
        return VersionRecord(wanted.version, wanted.manifest_path)

    def _is_there(self, info: TableInfo) -> bool:
        return self._tables.describe(info.id).location == info.location

    # -- deleting them ---------------------------------------------------------------------------

    def delete(self, table: ObjectId, ranges: Sequence[VersionRange], branch: str | None) -> int:
        """Delete the records of versions, and never data."""
        name = branch_of(branch)
        info = self._in_storage(table, None)
        if info is not None:
            return _records(info, name).delete(ranges)
        answer = self._connection.lance.of_table(
            table, "version/delete", body=ranges_body(ranges, name), changes=True
        )
        return int(answer.get("deleted_count") or 0)

    def tidy(self, table: ObjectId) -> int:
        """Forget the records of versions that Lance cleaned up; only Mooring's servers can."""
        beside = self._connection.beside.offered()
        if beside is None:
            return 0
        return int(beside.of_table(table, "version/tidy", changes=True).get("count") or 0)


def version_body(wanted: CreateVersion) -> dict[str, Any]:
    """Write a version that is wanted, without its table."""
    found = {
        "version": wanted.version,
        "manifest_path": wanted.manifest_path,
        "branch": branch_of(wanted.branch),
        "metadata": dict(wanted.metadata) if wanted.metadata else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def ranges_body(ranges: Sequence[VersionRange], branch: str | None) -> dict[str, Any]:
    """Write which versions are to go, without their table."""
    told = [{"start_version": one.start, "end_version": one.end} for one in ranges]
    return {"ranges": told, **({"branch": branch} if branch else {})}


def read_record(found: Mapping[str, Any]) -> VersionRecord:
    """Read a version as a server tells it."""
    return VersionRecord(
        int(found["version"]),
        str(found.get("manifest_path") or ""),
        found.get("manifest_size"),
        found.get("e_tag"),
        found.get("timestamp_millis"),
        found.get("metadata") or {},
    )


def _read_records(answer: Mapping[str, Any]) -> list[VersionRecord]:
    return [read_record(one) for one in answer.get("versions") or ()]


def _records(info: TableInfo, branch: str | None) -> VersionRecords:
    from mooring.tables.place import open_place
    from mooring.tables.records import VersionRecords

    place = open_place(info.location, info.storage_options)
    return VersionRecords(place.store, place.directory, branch)


def _files(info: TableInfo, branch: str | None) -> VersionFiles:
    return VersionFiles(info.id, _records(info, branch), branch)
