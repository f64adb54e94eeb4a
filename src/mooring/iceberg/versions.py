"""The versions of tables in an Iceberg catalog.

Of a table that its storage manages, a version is the file of its manifest, as in a directory. Of
one that the implementation manages, it is a snapshot in the catalog. Versions of branches are files
in either case: their numbers begin with the branch, and a snapshot's number can be had only once.

Spec: iceberg-namespace, "Requirement for Implementation Managed Table"; objects-and-relationships,
"Table Version".
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    ServiceUnavailableError,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.iceberg.shown_schema import show_schema
from mooring.iceberg.snapshots import MAIN, newest_snapshot, read_snapshots
from mooring.iceberg.version_commit import (
    KEPT_STAGED,
    VersionCommit,
    is_finished,
    land,
    on_current,
    stored_path,
    tell,
)
from mooring.identifiers import quote
from mooring.namespace.table_operations import CreateVersion, DeleteVersionRecords
from mooring.namespace.unsettled import never_told
from mooring.namespace.version_files import VersionFiles
from mooring.tables.reference_names import branch_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.iceberg.connection import Connection
    from mooring.iceberg.snapshots import Snapshot
    from mooring.iceberg.table import IcebergTable
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.namespace.table_operations import Outcome
    from mooring.tables.api import VersionRange, VersionRecord

__all__ = ["Versions"]

# Lance asks about a commit that failed within seconds; who asks later only wants to read.
_OPEN_FOR_MS = 120_000


class Versions:
    """Reads, makes and deletes versions of the tables of an Iceberg catalog."""

    def __init__(self, connection: Connection) -> None:
        """Work for a catalog."""
        self._connection = connection
        # Versions that this process asked for and never heard of, and until when they are kept from
        # being taken for others': name or location, branch, number.
        self._unsettled: dict[tuple[ObjectId | str, str | None, int], int] = {}

    # -- reading ---------------------------------------------------------------------------------

    def newest_first(
        self, table: ObjectId, branch: str | None, limit: int | None
    ) -> list[VersionRecord]:
        """Return the versions of a table, the newest first."""
        name = branch_of(branch)
        found = self._connection.find(table, refs_only=limit == 1)
        if name is not None or not found.keeps_versions:
            return _files(found, name).newest_first(limit)
        if limit == 1:
            newest = newest_snapshot(found.metadata)
            return [] if newest is None else [_tell_newest(found, newest)]
        return self._kept(found)[:limit]

    def _kept(self, table: IcebergTable) -> list[VersionRecord]:
        """Return the versions that are not cleaned up.

        The newest is what the server says. Before it, a version is there as long as its manifest
        is, under the name that only the catalog gives out: some servers keep no snapshot but the
        newest. What was given along is told where there is a snapshot.
        """
        newest = newest_snapshot(table.metadata)
        if newest is None:
            return []
        known = {one.version: one for one in read_snapshots(table.metadata)}
        older = [one for one in table.records().newest_first() if one.version < newest.version]
        return [
            _tell_newest(table, newest),
            *(_with_snapshot(one, known.get(one.version)) for one in older),
        ]

    def describe(self, table: ObjectId, version: int, branch: str | None) -> VersionRecord:
        """Return one version of a table.

        Raises:
            TableVersionNotFoundError: there is no such version.
            UnknownOutcomeError: this catalog tried to make the version and never heard whether it
                did. Lance asks for it then, and would take an answer for a lost race and write
                the same rows again.
        """
        name = branch_of(branch)
        found = self._connection.find(table)
        if self._is_unsettled(found, name, version):
            raise never_told(table, version)
        if name is not None or not found.keeps_versions:
            return _files(found, name).describe(version)
        known = next((one for one in self._kept(found) if one.version == version), None)
        if known is None:
            msg = f"{found.what} has no version {version}"
            raise TableVersionNotFoundError(msg)
        return known

    def _leave_open(self, table: IcebergTable, branch: str | None, version: int) -> None:
        until = self._connection.clock.now_ms() + _OPEN_FOR_MS
        self._unsettled |= dict.fromkeys(_whereabouts(table, branch, version), until)

    def _is_unsettled(self, table: IcebergTable, branch: str | None, version: int) -> bool:
        now_ms = self._connection.clock.now_ms()
        known = (self._unsettled.get(one, 0) for one in _whereabouts(table, branch, version))
        return any(until > now_ms for until in known)

    # -- making them -----------------------------------------------------------------------------

    def create(self, wanted: CreateVersion, known: TableInfo | None) -> VersionRecord:
        """Make a manifest that was written a version of a table."""
        found = self._connection.find(wanted.table, refs_only=True)
        if known is not None and found.location != known.location:
            msg = f"{quote(str(wanted.table))} names another table now: ask the catalog again"
            raise ConcurrentModificationError(msg)
        if branch_of(wanted.branch) is not None or not found.keeps_versions:
            return self._create_file(found, wanted)
        return self._create_snapshots([(found, wanted)])[0]

    def _create_file(self, table: IcebergTable, wanted: CreateVersion) -> VersionRecord:
        branch = branch_of(wanted.branch)
        try:
            return _files(table, branch).create(wanted, lambda: self._is_there(table))
        except UnknownOutcomeError:
            self._leave_open(table, branch, wanted.version)
            raise

    def _is_there(self, table: IcebergTable) -> bool:
        return self._connection.find(table.id, refs_only=True).location == table.location

    def _create_snapshots(
        self, wanted: Sequence[tuple[IcebergTable, CreateVersion]]
    ) -> list[VersionRecord]:
        """Have the server decide about versions, of several tables by one request."""
        connection = self._connection
        commits = [
            VersionCommit(*one, clock=connection.clock, ids=connection.ids) for one in wanted
        ]
        try:
            for commit in commits:
                commit.prepare()
            land(commits, lambda: self._send(commits), self._look)
        except UnknownOutcomeError:
            for commit in commits:
                self._leave_open(commit.table, None, commit.wanted.version)
            raise
        except MooringError as exc:
            for commit in commits:
                commit.abandon()
            if isinstance(exc, InvalidInputError):
                # A manifest that is not there may have gone with its table.
                for commit in commits:
                    self._look(commit)
            raise
        records = [commit.finish() for commit in commits]
        for commit in commits:
            self._follow_up(commit)
        return records

    def _send(self, commits: Sequence[VersionCommit]) -> None:
        client = self._connection.client
        if len(commits) == 1:
            requirements, updates = commits[0].change()
            table = commits[0].table.id
            client.update_table(table.parent.names, table.name, requirements, updates)
            return
        client.commit_transaction(
            [(one.table.id.parent.names, one.table.id.name, *one.change()) for one in commits]
        )

    def _look(self, commit: VersionCommit) -> Mapping[str, Any]:
        """Look at the table that a version was asked for, and at no other of its name."""
        found = self._connection.find(commit.table.id)
        if (found.uuid, found.location) != (commit.table.uuid, commit.table.location):
            msg = f"{quote(str(found.id))} names another table now"
            raise TableNotFoundError(msg)
        return found.metadata

    def _follow_up(self, commit: VersionCommit) -> None:
        """Let the catalog show what the version changed; nothing depends on it."""
        with suppress(MooringError):
            if commit.has_new_schema:
                show_schema(self._connection, commit.table.id)
            if commit.wanted.version % KEPT_STAGED == 0:
                self.tidy(commit.table.id)

    # -- deleting them ---------------------------------------------------------------------------

    def delete(self, table: ObjectId, ranges: Sequence[VersionRange], branch: str | None) -> int:
        """Delete the records of versions, and never data."""
        name = branch_of(branch)
        found = self._connection.find(table)
        if name is not None or not found.keeps_versions:
            return found.records(name).delete(ranges)
        existing = sorted(one.version for one in self._kept(found))
        doomed = found.records().choose(ranges, existing)
        if not doomed:
            return 0
        snapshots = [one for one in read_snapshots(found.metadata) if one.version in doomed]
        staged = [stored_path(found, one) for one in snapshots]
        if snapshots:
            self._remove(found, [one.version for one in snapshots])
        with suppress(ServiceUnavailableError):  # nobody looks at them any more
            found.records().remove(doomed)
            found.place.store.delete(staged)
        return len(doomed)

    def _remove(self, table: IcebergTable, versions: Sequence[int]) -> None:
        remove: list[dict[str, Any]] = [
            {"action": "remove-snapshots", "snapshot-ids": list(versions)}
        ]
        if table.version in versions:
            remove.insert(0, {"action": "remove-snapshot-ref", "ref-name": MAIN})
        self._connection.client.update_table(
            table.id.parent.names, table.id.name, on_current(table), remove
        )

    def tidy(self, table: ObjectId) -> int:
        """Forget the versions that Lance cleaned up; the answers of a server grow with each.

        Returns:
            How many there were.
        """
        found = self._connection.find(table)
        if not found.keeps_versions:
            return 0
        kept = {one.version for one in self._kept(found)}
        gone = sorted(
            one.version for one in read_snapshots(found.metadata) if one.version not in kept
        )
        if gone:
            self._remove(found, gone)
        return len(gone)

    # -- several at once -------------------------------------------------------------------------

    def commit(self, operations: Sequence[CreateVersion | DeleteVersionRecords]) -> list[Outcome]:
        """Make versions of several tables by one request: all of them or none.

        Raises:
            UnsupportedError: not all are new versions of tables that the server decides about, or
                it decides about one table at a time.
        """
        client = self._connection.client
        if not client.offers("POST", "/v1/{prefix}/transactions/commit"):
            msg = (
                "this Iceberg catalog decides about one table at a time: it does not offer"
                " transactions over several; commit them one by one"
            )
            raise UnsupportedError(msg)
        wanted: list[tuple[IcebergTable, CreateVersion]] = []
        for operation in operations:
            if not isinstance(operation, CreateVersion) or branch_of(operation.branch):
                msg = (
                    "an Iceberg catalog commits new versions of several tables together, on main,"
                    f" and nothing else: send what changes {quote(str(operation.table))} alone"
                )
                raise UnsupportedError(msg)
            found = self._connection.find(operation.table, refs_only=True)
            if not found.keeps_versions:
                msg = (
                    f"the versions of {found.what} are decided by its storage: only tables with"
                    " managed_by=impl commit together"
                )
                raise UnsupportedError(msg)
            if any(found.id == other.id for other, _ in wanted):
                msg = f"{found.what} occurs twice: one request makes one version of a table"
                raise InvalidInputError(msg)
            wanted.append((found, operation))
        return list(self._create_snapshots(wanted))


def _tell_newest(table: IcebergTable, snapshot: Snapshot) -> VersionRecord:
    """Return the newest version, by its final name where its writer came to that."""
    return tell(table, snapshot, is_final=is_finished(table, snapshot))


def _with_snapshot(record: VersionRecord, snapshot: Snapshot | None) -> VersionRecord:
    """Return a version with what its snapshot tells and its file does not."""
    if snapshot is None:
        return record
    return replace(record, at_ms=snapshot.at_ms, metadata=dict(snapshot.given))


def _whereabouts(
    table: IcebergTable, branch: str | None, version: int
) -> set[tuple[ObjectId | str, str | None, int]]:
    """Return all by which a version is asked for: a name may mean another table by then."""
    return {(table.id, branch, version), (table.location, branch, version)}


def _files(table: IcebergTable, branch: str | None) -> VersionFiles:
    return VersionFiles(table.id, table.records(branch), branch)
