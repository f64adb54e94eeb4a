"""Requests about the versions of a table, which Lance itself makes where the catalog manages them.

Lance's own calls bring dictionaries instead of models, without what is not set.

Spec: objects-and-relationships, "Table Version" and "External Manifest Store".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import lance_namespace as spec
from lance_namespace_urllib3_client.models.commit_table_result import CommitTableResult
from lance_namespace_urllib3_client.models.table_version import TableVersion

from mooring.errors import (
    InvalidInputError,
    TableBranchNotFoundError,
    TableVersionNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import quote
from mooring.namespace.lance.catalog import CatalogRequests
from mooring.namespace.lance.requests import choose, field, table_id, worded
from mooring.namespace.paging import cut, take_page
from mooring.tables.api import VersionRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.identifiers import ObjectId
    from mooring.tables.api import VersionRecord

__all__ = ["VersionRequests"]

Entry = TypeVar("Entry")
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
        """Make one version; of several, no single object could decide."""
        entry = _only(request.entries, "version")
        record = self._create(table_id(entry.id), entry)
        return spec.BatchCreateTableVersionsResponse(versions=[_model(record)])

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
        """Do one operation; of several, no single object could decide."""
        operation = _only(request.operations, "operation")
        for name, act in (
            ("declare_table", self.declare_table),
            ("create_table_version", self.create_table_version),
            ("delete_table_versions", self.batch_delete_table_versions),
            ("deregister_table", self.deregister_table),
        ):
            wanted = getattr(operation, name)
            if wanted is not None:
                result = CommitTableResult.model_validate({name: act(wanted)})
                return spec.BatchCommitTablesResponse(results=[result])
        msg = "the operation of the batch is empty"
        raise InvalidInputError(msg)

    def _create(self, table: ObjectId, entry: Any) -> VersionRecord:  # noqa: ANN401  # see field
        if not isinstance(entry, dict):  # Lance itself describes what it just wrote
            self._check_staged(table, entry)
        return self._backend.create_table_version(
            table,
            int(field(entry, "version")),
            field(entry, "manifest_path"),
            branch=field(entry, "branch"),
            metadata=field(entry, "metadata"),
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


def _only(entries: Sequence[Entry], what: str) -> Entry:
    """Return the only entry of a batch.

    Raises:
        InvalidInputError: there is none.
        UnsupportedError: there are several.
    """
    if not entries:
        msg = f"the batch is empty: it needs one {what}"
        raise InvalidInputError(msg)
    if len(entries) > 1:
        msg = (
            f"a directory catalog commits one {what} at a time, not {len(entries)} together:"
            " each is decided by the put of an object of its own, and nothing could undo the"
            " first where the second is refused; send them one by one"
        )
        raise UnsupportedError(msg)
    return entries[0]


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
