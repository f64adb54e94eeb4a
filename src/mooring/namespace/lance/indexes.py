"""Requests about the indexes of a table.

Spec: lance-rest-openapi, CreateTableIndex, CreateTableScalarIndex, ListTableIndices,
DescribeTableIndexStats, DropTableIndex.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import lance_namespace as spec
from lance_namespace_urllib3_client.models.index_content import IndexContent

from mooring.errors import InvalidInputError
from mooring.namespace.lance.requests import Requests, worded
from mooring.namespace.paging import cut, take_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.tables.commits import Committed
    from mooring.tables.indexes import Index, Indexes

__all__ = ["IndexRequests"]

# An index is listed once it is built and committed, never before.
_STATUS = "SUCCEEDED"


class IndexRequests(Requests):
    """Indexes of every kind."""

    @worded
    def create_table_index(
        self, request: spec.CreateTableIndexRequest
    ) -> spec.CreateTableIndexResponse:
        """Build an index; it is there when this answers."""
        done = self._create_index(request)
        return spec.CreateTableIndexResponse(transaction_id=done.transaction_id)

    @worded
    def create_table_scalar_index(
        self, request: spec.CreateTableIndexRequest
    ) -> spec.CreateTableScalarIndexResponse:
        """Build an index of any type but those of vectors."""
        done = self._create_index(request, scalar=True)
        return spec.CreateTableScalarIndexResponse(transaction_id=done.transaction_id)

    @worded
    def list_table_indices(
        self, request: spec.ListTableIndicesRequest
    ) -> spec.ListTableIndicesResponse:
        """List the indexes by name, at a version or branch if given."""
        from mooring.tables.handle import At  # imports lance

        at = At(request.version, branch=request.branch)
        found = {index.name: index for index in self._indexes(request.id).list(at)}

        def list_names(after: str | None, limit: int | None) -> list[str]:
            return cut(sorted(found), after, limit)

        page, token = take_page(list_names, request.page_token, request.limit)
        return spec.ListTableIndicesResponse(
            indexes=[_content(found[name]) for name in page], page_token=token
        )

    @worded
    def describe_table_index_stats(
        self, request: spec.DescribeTableIndexStatsRequest
    ) -> spec.DescribeTableIndexStatsResponse:
        """Tell the type of an index, and how many rows it covers."""
        from mooring.tables.handle import At  # imports lance

        at = At(request.version, branch=request.branch)
        index = self._indexes(request.id).get(_name(request), at)
        return spec.DescribeTableIndexStatsResponse(
            distance_type=index.distance,
            index_type=index.kind,
            num_indexed_rows=index.rows_indexed,
            num_unindexed_rows=index.rows_unindexed,
            num_indices=index.segments,
        )

    @worded
    def drop_table_index(self, request: spec.DropTableIndexRequest) -> spec.DropTableIndexResponse:
        """Drop an index."""
        done = self._indexes(request.id).drop(_name(request), branch=request.branch)
        return spec.DropTableIndexResponse(transaction_id=done.transaction_id)

    def _create_index(
        self, request: spec.CreateTableIndexRequest, *, scalar: bool = False
    ) -> Committed:
        from mooring.tables.index_kinds import PARAMETERS, IndexKind  # imports pyarrow

        kind = IndexKind.parse(request.index_type)
        if scalar and kind.is_vector:
            msg = f"{kind.name} is no scalar index: create it by CreateTableIndex"
            raise InvalidInputError(msg)
        given: Any = {name: getattr(request, name) for name in PARAMETERS}
        done = self._indexes(request.id).create(
            request.column, kind, name=request.name, branch=request.branch, **given
        )
        return done.commit

    def _indexes(self, names: Sequence[str] | None) -> Indexes:
        from mooring.tables.indexes import Indexes  # imports lance

        return Indexes(self._locate(names))


def _name(request: spec.DescribeTableIndexStatsRequest | spec.DropTableIndexRequest) -> str:
    if not request.index_name:
        msg = "the request names no index: set index_name"
        raise InvalidInputError(msg)
    return str(request.index_name)


def _content(index: Index) -> IndexContent:
    return IndexContent(
        index_name=index.name,
        index_uuid=index.uuid,
        columns=list(index.columns),
        status=_STATUS,
        index_type=index.kind,
        type_url=index.type_url,
        num_indexed_rows=index.rows_indexed,
        num_unindexed_rows=index.rows_unindexed,
        size_bytes=index.size_bytes,
        num_segments=index.segments,
        created_at=index.created_at,
        index_version=index.format_version,
        index_details=json.dumps(index.details, separators=(",", ":")),
    )
