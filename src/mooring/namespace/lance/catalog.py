"""Requests about namespaces and about the lives of tables.

Spec: lance-rest-openapi, the models; objects-and-relationships, identifiers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance_namespace as spec
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema
from lance_namespace_urllib3_client.models.table_basic_stats import TableBasicStats

from mooring.clock import parse_ttl
from mooring.config import is_secret
from mooring.errors import NamespaceNotFoundError, UnsupportedError
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.lance.requests import Requests, choose, field, read_ipc, table_id, worded
from mooring.namespace.paging import cut, take_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.namespace.api import PurgeReport, TableInfo
    from mooring.namespace.states import DroppedTable, TableStatus

__all__ = ["CatalogRequests"]


class CatalogRequests(Requests):
    """Namespaces, and the lives of tables."""

    # -- namespaces --------------------------------------------------------------------------

    @worded
    def list_namespaces(self, request: spec.ListNamespacesRequest) -> spec.ListNamespacesResponse:
        """Name the direct child namespaces."""
        parent = ObjectId.of(request.id)

        def list_names(after: str | None, limit: int | None) -> list[str]:
            return self._backend.list_namespaces(parent, after=after, limit=limit)

        page, token = take_page(list_names, request.page_token, request.limit)
        return spec.ListNamespacesResponse(namespaces=page, page_token=token)

    @worded
    def describe_namespace(
        self, request: spec.DescribeNamespaceRequest
    ) -> spec.DescribeNamespaceResponse:
        """Return a namespace's properties."""
        properties = self._backend.describe_namespace(ObjectId.of(request.id))
        return spec.DescribeNamespaceResponse(properties=dict(properties))

    @worded
    def create_namespace(
        self, request: spec.CreateNamespaceRequest
    ) -> spec.CreateNamespaceResponse:
        """Make a namespace."""
        properties = self._backend.create_namespace(
            ObjectId.of(request.id), request.properties or {}, CreateMode.parse(request.mode)
        )
        return spec.CreateNamespaceResponse(properties=dict(properties))

    @worded
    def drop_namespace(self, request: spec.DropNamespaceRequest) -> spec.DropNamespaceResponse:
        """Drop softly; ``skip`` makes an absent one fine, ``cascade`` takes all in it along."""
        skip = choose(request.mode, ("fail", "skip"), "mode") == "skip"
        cascade = choose(request.behavior, ("restrict", "cascade"), "behavior") == "cascade"
        ttl = (request.context or {}).get("ttl")
        try:
            properties = self._backend.drop_namespace(
                ObjectId.of(request.id),
                cascade=cascade,
                ttl=None if ttl is None else Ttl(parse_ttl(ttl)),
            )
        except NamespaceNotFoundError:
            if not skip:
                raise
            properties = {}
        return spec.DropNamespaceResponse(properties=dict(properties))

    @worded
    def namespace_exists(
        self, request: spec.NamespaceExistsRequest
    ) -> spec.NamespaceExistsResponse:
        """Answer where the namespace exists; raise where it does not."""
        self._backend.describe_namespace(ObjectId.of(request.id))
        return spec.NamespaceExistsResponse()

    # -- tables ------------------------------------------------------------------------------

    @worded
    def list_tables(self, request: spec.ListTablesRequest) -> spec.ListTablesResponse:
        """Name the direct child tables; without a limit all of them."""
        namespace = ObjectId.of(request.id)
        declared = request.include_declared is not False

        def list_names(after: str | None, limit: int | None) -> list[str]:
            return self._backend.list_tables(
                namespace, include_declared=declared, after=after, limit=limit
            )

        page, token = take_page(list_names, request.page_token, request.limit)
        return spec.ListTablesResponse(tables=page, page_token=token)

    @worded
    def describe_table(self, request: spec.DescribeTableRequest) -> spec.DescribeTableResponse:
        """Locate a table and, where asked, open it; Lance asks for fresh credentials by this."""
        table = table_id(field(request, "id"))
        detailed = bool(field(request, "load_detailed_metadata"))
        info = self._backend.describe_table(
            table, check_declared=bool(field(request, "check_declared")) or detailed
        )
        response = spec.DescribeTableResponse(
            location=info.location,
            table_uri=_uri(info.location) if field(request, "with_table_uri") else None,
            storage_options=_options(info, vend=field(request, "vend_credentials")),
            properties=dict(info.properties),
            is_only_declared=info.is_only_declared,
            managed_versioning=info.is_managed(self._backend) or None,
        )
        at = field(request, "version"), field(request, "tag") or None, field(request, "branch")
        if at[0] is not None or any(at[1:]) or (detailed and not info.is_only_declared):
            self._add_details(response, table, info, at)
        return response

    @worded
    def table_exists(self, request: spec.TableExistsRequest) -> spec.TableExistsResponse:
        """Answer where the table exists; raise where it does not."""
        table = table_id(request.id)
        self._backend.describe_table(table)
        if request.version is not None:
            self._backend.describe_table_version(table, request.version)
        return spec.TableExistsResponse()

    @worded
    def declare_table(self, request: spec.DeclareTableRequest) -> spec.DeclareTableResponse:
        """Reserve a name and a location."""
        table = table_id(request.id)
        info = self._backend.declare_table(table, request.location, request.properties)
        return self._declared(info, vend=request.vend_credentials)

    def _declared(self, info: TableInfo, *, vend: bool | None = None) -> spec.DeclareTableResponse:
        return spec.DeclareTableResponse(
            location=info.location,
            storage_options=_options(info, vend=vend),
            properties=dict(info.properties) or None,
            managed_versioning=info.is_managed(self._backend) or None,
        )

    @worded
    def create_table(
        self, request: spec.CreateTableRequest, request_data: bytes
    ) -> spec.CreateTableResponse:
        """Create a table from an Arrow IPC stream."""
        table = table_id(request.id)
        mode = CreateMode.parse(request.mode)
        if request.storage_options:
            msg = (
                "a table is written with the storage options of the catalog, which its commit"
                f" needs, too; open the catalog with {', '.join(sorted(request.storage_options))}"
            )
            raise UnsupportedError(msg)
        rows = read_ipc(request_data)
        info = self._backend.create_table(table, rows, mode, request.properties)
        return spec.CreateTableResponse(
            location=info.location,
            version=info.version,
            storage_options=_options(info),
            properties=dict(info.properties),
        )

    @worded
    def register_table(self, request: spec.RegisterTableRequest) -> spec.RegisterTableResponse:
        """Give a name to a table in the catalog's storage."""
        mode = CreateMode.parse(request.mode, (CreateMode.CREATE, CreateMode.OVERWRITE))
        info = self._backend.register_table(
            table_id(request.id), request.location, mode, request.properties
        )
        return spec.RegisterTableResponse(
            location=info.location, properties=dict(info.properties) or None
        )

    @worded
    def deregister_table(
        self, request: spec.DeregisterTableRequest
    ) -> spec.DeregisterTableResponse:
        """Forget a name and keep the bytes."""
        info = self._backend.deregister_table(table_id(request.id))
        return spec.DeregisterTableResponse(id=list(info.id.names), location=info.location)

    @worded
    def rename_table(self, request: spec.RenameTableRequest) -> spec.RenameTableResponse:
        """Give a table another name."""
        table = table_id(request.id)
        parent = request.new_namespace_id
        namespace = table.parent if parent is None else ObjectId.of(parent)
        self._backend.rename_table(table, namespace.child(request.new_table_name))
        return spec.RenameTableResponse()

    @worded
    def drop_table(self, request: spec.DropTableRequest) -> spec.DropTableResponse:
        """Drop softly; ``context["ttl"]`` says for how long the table can come back."""
        ttl = (request.context or {}).get("ttl")
        info = self._backend.drop_table(
            table_id(request.id), None if ttl is None else Ttl(parse_ttl(ttl))
        )
        return spec.DropTableResponse(id=list(info.id.names), location=info.location)

    @worded
    def list_all_tables(self, request: spec.ListTablesRequest) -> spec.ListTablesResponse:
        """Return the identifiers of all tables, in string style."""
        if request.include_declared is False:
            keys = sorted(str(table) for table in self._written_tables(ROOT))
        else:
            keys = [str(table) for table in self._backend.list_all_tables()]
        page, token = take_page(
            lambda after, limit: cut(keys, after, limit), request.page_token, request.limit
        )
        return spec.ListTablesResponse(tables=page, page_token=token)

    def _written_tables(self, namespace: ObjectId) -> Iterator[ObjectId]:
        """Go through the tables that are more than declared, namespace by namespace."""
        for name in self._backend.list_tables(namespace, include_declared=False):
            yield namespace.child(name)
        for name in self._backend.list_namespaces(namespace):
            yield from self._written_tables(namespace.child(name))

    # -- what the specification has no words for -------------------------------------------------

    @worded
    def undrop_namespace(self, id: Sequence[str]) -> int:  # noqa: A002  # the API's word
        """Bring a dropped namespace back with all that was dropped with it; tell how many."""
        return self._backend.undrop_namespace(ObjectId.of(id))

    @worded
    def update_namespace(
        self,
        id: Sequence[str],  # noqa: A002  # the API's word
        updates: dict[str, str | None],
    ) -> dict[str, str]:
        """Change properties of a namespace; None removes one."""
        return dict(self._backend.update_namespace(ObjectId.of(id), updates))

    @worded
    def table_status(self, id: Sequence[str]) -> TableStatus:  # noqa: A002  # the API's word
        """Tell whether a table is live, dropped or not there."""
        return self._backend.table_status(table_id(id))

    @worded
    def undrop_table(
        self,
        id: Sequence[str],  # noqa: A002  # the API's word
        new_id: Sequence[str] | None = None,
    ) -> None:
        """Make a dropped table live again."""
        new = None if new_id is None else table_id(new_id)
        self._backend.undrop_table(table_id(id), new)

    @worded
    def list_purgable_tables(self, deleted_before: int | None = None) -> list[DroppedTable]:
        """List the trash; ``deleted_before`` is in milliseconds since 1970."""
        return self._backend.list_purgable_tables(deleted_before)

    @worded
    def purge_table(self, id: Sequence[str]) -> None:  # noqa: A002  # the API's word
        """Delete the bytes of a dropped table."""
        self._backend.purge_table(table_id(id))

    @worded
    def purge_tables(self, ids: Sequence[Sequence[str]] | None = None) -> PurgeReport:
        """Purge exactly these tables, or all that are expired."""
        tables = None if ids is None else [table_id(names) for names in ids]
        return self._backend.purge_tables(tables)

    @worded
    def protect_table(
        self,
        id: Sequence[str],  # noqa: A002  # the API's word
        *,
        protected: bool = True,
    ) -> None:
        """Make drops of a table refuse, or allow them again."""
        self._backend.protect_table(table_id(id), protected=protected)

    # -- small things ----------------------------------------------------------------------------

    def _add_details(
        self,
        response: spec.DescribeTableResponse,
        table: ObjectId,
        info: TableInfo,
        state: tuple[int | None, str | None, str | None],
    ) -> None:
        from mooring.namespace.located import locate  # imports lance
        from mooring.tables.handle import At
        from mooring.tables.schema import schema_to_json

        dataset = locate(self._backend, table, info).open(At(*state))
        stats = dataset.stats.dataset_stats()
        response.table = table.name
        response.namespace = list(table.parent.names)
        response.version = dataset.version
        response.var_schema = JsonArrowSchema.from_dict(schema_to_json(dataset.schema))
        response.stats = TableBasicStats(
            num_deleted_rows=stats["num_deleted_rows"], num_fragments=stats["num_fragments"]
        )
        response.metadata = dict(dataset.metadata)


def _options(info: TableInfo, *, vend: bool | None = None) -> dict[str, str] | None:
    """Tell how storage is reached; without secrets where they are not wanted."""
    options = dict(info.storage_options)
    if vend is False:
        options = {key: value for key, value in options.items() if not is_secret(key)}
    return options or None


def _uri(location: str) -> str:
    if "://" in location:
        return location
    from pathlib import Path

    return Path(location).as_uri()
