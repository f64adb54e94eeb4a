"""Requests about the versions of a table, which Lance itself makes where the catalog manages them.

Lance's own calls bring dictionaries instead of models, without what is not set.

Spec: objects-and-relationships, "Table Version" and "External Manifest Store".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import lance_namespace as spec
from lance_namespace_urllib3_client.models.commit_table_result import CommitTableResult
from lance_namespace_urllib3_client.models.table_version import TableVersion

from mooring.errors import (
    InvalidInputError,
    TableBranchNotFoundError,
    TableVersionNotFoundError,
)
from mooring.identifiers import quote
from mooring.namespace.api import TableInfo
from mooring.namespace.lance.catalog import CatalogRequests
from mooring.namespace.lance.requests import choose, field, table_id, worded
from mooring.namespace.paging import cut, take_page
from mooring.namespace.table_operations import (
    CreateVersion,
    Declare,
    DeleteVersionRecords,
    Deregister,
)
from mooring.tables.api import VersionRange, VersionRecord

if TYPE_CHECKING:
    from lance_namespace_urllib3_client.models.commit_table_operation import CommitTableOperation

    from mooring.identifiers import ObjectId
    from mooring.namespace.table_operations import Outcome, TableOperation

__all__ = ["VersionRequests"]

_LARGEST = 2**64 - 1


class VersionRequests(CatalogRequests):
    """Versions as records of the catalog."""

    @worded
    def list_table_versions(
        self, request: spec.ListTableVersionsRequest
    ) -> spec.ListTableVersionsResponse:
        """List the versions, the newest first unless told otherwise; the newest is one look."""
        table, branch = table_id(field(request, "id")), field(request, "branch")
        descending = field(request, "descending") is not False
        records: dict[str, VersionRecord] = {}

        def list_keys(after: str | None, limit: int | None) -> list[str]:
            cheap = limit if descending and after is None else None
            found = self._backend.list_table_versions(table, branch=branch, limit=cheap)
            records.update((_key(one.version, descending=descending), one) for one in found)
            return cut(sorted(records), after, limit)

        try:
            page, token = take_page(
                list_keys, field(request, "page_token"), field(request, "limit")
            )
        except TableBranchNotFoundError:
            # Lance itself asks before it makes a branch, and reads no error as "not there".
            if not isinstance(request, dict):
                raise
            page, token = [], None
        return spec.ListTableVersionsResponse(
            versions=[_model(records[key]) for key in page], page_token=token
        )

    @worded
    def describe_table_version(
        self, request: spec.DescribeTableVersionRequest
    ) -> spec.DescribeTableVersionResponse:
        """Describe one version, or the newest."""
        table, branch = table_id(field(request, "id")), field(request, "branch")
        version = field(request, "version")
        if version is not None:
            record = self._backend.describe_table_version(table, int(version), branch=branch)
            return spec.DescribeTableVersionResponse(version=_model(record))
        found = self._backend.list_table_versions(table, branch=branch, limit=1)
        if not found:
            msg = f"table {quote(str(table))} has no versions yet: it is only declared"
            raise TableVersionNotFoundError(msg)
        return spec.DescribeTableVersionResponse(version=_model(found[0]))

    @worded
    def create_table_version(
        self, request: spec.CreateTableVersionRequest
    ) -> spec.CreateTableVersionResponse:
        """Make a manifest that was written a version; it fails where the version exists."""
        record = self._create(table_id(field(request, "id")), request)
        return spec.CreateTableVersionResponse(version=_model(record))

    @worded
    def batch_create_table_versions(
        self, request: spec.BatchCreateTableVersionsRequest
    ) -> spec.BatchCreateTableVersionsResponse:
        """Make versions, of several tables too, all of them or none."""
        wanted = [self._version(table_id(entry.id), entry) for entry in request.entries]
        records = cast("list[VersionRecord]", self._backend.commit_tables(wanted))
        return spec.BatchCreateTableVersionsResponse(versions=[_model(one) for one in records])

    @worded
    def batch_delete_table_versions(
        self, request: spec.BatchDeleteTableVersionsRequest
    ) -> spec.BatchDeleteTableVersionsResponse:
        """Delete records of versions by ranges, and never data."""
        ranges = [VersionRange(one.start_version, one.end_version) for one in request.ranges]
        table = table_id(request.id)
        count = self._backend.delete_table_versions(table, ranges, branch=request.branch)
        if not count and request.branch:
            # Of a branch that is not there, nothing was deleted either.
            self._backend.list_table_versions(table, branch=request.branch, limit=1)
        return spec.BatchDeleteTableVersionsResponse(deleted_count=count)

    @worded
    def batch_commit_tables(
        self, request: spec.BatchCommitTablesRequest
    ) -> spec.BatchCommitTablesResponse:
        """Do operations on tables, all of them or none."""
        wanted = [self._operation(one) for one in request.operations]
        outcomes = self._backend.commit_tables(wanted)
        return spec.BatchCommitTablesResponse(
            results=[
                CommitTableResult.model_validate(self._result(*one))
                for one in zip(wanted, outcomes, strict=True)
            ]
        )

    def _operation(self, operation: CommitTableOperation) -> TableOperation:
        """Read the one thing that an operation of a batch is."""
        if declared := operation.declare_table:
            return Declare(table_id(declared.id), declared.location, declared.properties)
        if made := operation.create_table_version:
            return self._version(table_id(made.id), made)
        if deleted := operation.delete_table_versions:
            ranges = [VersionRange(one.start_version, one.end_version) for one in deleted.ranges]
            return DeleteVersionRecords(table_id(deleted.id), ranges, deleted.branch)
        if forgotten := operation.deregister_table:
            return Deregister(table_id(forgotten.id))
        msg = "an operation of the batch is empty"
        raise InvalidInputError(msg)

    def _result(self, operation: TableOperation, outcome: Outcome) -> dict[str, object]:
        match operation, outcome:
            case Declare(), TableInfo() as info:
                return {"declare_table": self._declared(info)}
            case CreateVersion(), VersionRecord() as record:
                response = spec.CreateTableVersionResponse(version=_model(record))
                return {"create_table_version": response}
            case DeleteVersionRecords(), int() as count:
                deleted = spec.BatchDeleteTableVersionsResponse(deleted_count=count)
                return {"delete_table_versions": deleted}
            case Deregister(), TableInfo() as info:
                gone = spec.DeregisterTableResponse(id=list(info.id.names), location=info.location)
                return {"deregister_table": gone}
        raise AssertionError(operation)

    def _create(self, table: ObjectId, entry: Any) -> VersionRecord:  # noqa: ANN401  # see field
        wanted = self._version(table, entry)
        return self._backend.create_table_version(
            wanted.table,
            wanted.version,
            wanted.manifest_path,
            branch=wanted.branch,
            metadata=wanted.metadata,
        )

    def _version(self, table: ObjectId, entry: Any) -> CreateVersion:  # noqa: ANN401  # see field
        if not isinstance(entry, dict):  # Lance itself describes what it just wrote
            self._check_staged(table, entry)
        return CreateVersion(
            table,
            int(field(entry, "version")),
            field(entry, "manifest_path"),
            field(entry, "branch"),
            field(entry, "metadata"),
        )

    def _check_staged(self, table: ObjectId, entry: Any) -> None:  # noqa: ANN401  # see field
        """Hold a request to what it tells about its manifest."""
        from mooring.tables.records import VersionRecords
        from mooring.tables.reference_names import branch_of

        if entry.manifest_size is None and entry.e_tag is None and entry.naming_scheme is None:
            return
        scheme = choose(entry.naming_scheme, ("v2", "v1"), "naming scheme")
        place = self._locate(table.names).place
        VersionRecords(place.store, place.directory, branch_of(entry.branch)).check_staged(
            entry.version,
            entry.manifest_path,
            size_bytes=entry.manifest_size,
            e_tag=entry.e_tag,
            counts_down=None if entry.naming_scheme is None else scheme == "v2",
        )


def _key(version: int, *, descending: bool) -> str:
    """Write a version so that keys sort as the versions are listed."""
    return f"{_LARGEST - version if descending else version:020d}"


def _model(record: VersionRecord) -> TableVersion:
    return TableVersion(
        version=record.version,
        manifest_path=record.manifest_path,
        manifest_size=record.size_bytes,
        e_tag=record.e_tag,
        timestamp_millis=record.at_ms,
        metadata=dict(record.metadata) or None,
    )
