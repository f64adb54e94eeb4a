"""The operations: where each is, who may call it, what it takes and gives.

The endpoint finds operations here, and the published document is made of the same table. Names in
braces stand for one segment of a path; ``{id}`` is an identifier as in Lance's REST protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.identifiers import ROOT, ObjectId
from mooring.server.matching import match_route
from mooring.server.mooring import (
    catalogs,
    namespaces,
    runs,
    shapes,
    tables,
    transactions,
    trash,
)
from mooring.server.mooring.calls import MOST
from mooring.server.roles import Role
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from msgspec import Struct

    from mooring.server.matching import Matched
    from mooring.server.mooring.calls import Call

__all__ = ["ROUTES", "Param", "Route", "find_route"]

_READ, _WRITE, _ADMIN = Role.READER, Role.WRITER, Role.ADMIN


@dataclass(frozen=True, slots=True)
class Param:
    """What may stand in the query.

    Attributes:
        about: What it is, in a line.
        kind: As JSON's schemas call it.
        least: The smallest number.
        most: The largest number.
    """

    about: str
    kind: str = "string"
    least: int | None = None
    most: int | None = None


def _it(call: Call) -> Sequence[ObjectId]:
    return [call.about]


def _table(call: Call) -> Sequence[ObjectId]:
    return [call.table]


def _everything(_: Call) -> Sequence[ObjectId]:
    """Ask for the role in the whole catalog: what is told could be about any part of it."""
    return [ROOT]


def _seen(_: Call) -> Sequence[ObjectId]:
    """Ask for nothing more: what may not be seen is left out of the answer."""
    return []


def _within(call: Call) -> Sequence[ObjectId]:
    return [] if call.identity.sees(call.served.name, call.within) else [call.within]


def _undropped(call: Call) -> Sequence[ObjectId]:
    asked: shapes.Undrop = call.asked
    new = [] if asked.new_id is None else [ObjectId.of(asked.new_id)]
    return [call.table, *new]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation.

    Attributes:
        name: By which documents and logs have it.
        method: Of HTTP.
        path: Below where this is mounted, with names in braces for what varies.
        run: What it does, in a thread.
        gives: The shape of the answer.
        takes: The shape of the body; None where there is none.
        role: Who may call it.
        touches: What that role is needed for.
        lane: Which threads work on it.
        params: What may stand in the query, beside the delimiter.
        is_of_catalog: Whether it is about one catalog, in which whoever asks needs a role.
        is_foreign: Whether other implementations of Lance's namespaces have it, too.
    """

    name: str
    method: str = "POST"
    path: str
    run: Callable[[Call], Struct]
    gives: type[Struct]
    takes: type[Struct] | None = None
    role: Role = _WRITE
    touches: Callable[[Call], Sequence[ObjectId]] = _table
    lane: Lane = Lane.CATALOG
    params: Mapping[str, Param] = field(default_factory=dict)
    is_of_catalog: bool = True
    is_foreign: bool = False

    @property
    def changes(self) -> bool:
        """Whether it changes something."""
        return self.role is not _READ

    @property
    def segments(self) -> tuple[str, ...]:
        """The path in parts."""
        return tuple(self.path.strip("/").split("/"))


def _limit(of: str) -> Mapping[str, Param]:
    return {"limit": Param(f"At most so many {of}; 100 unless given.", "integer", 1, MOST)}


ROUTES: Sequence[Route] = (
    # -- the catalogs ----------------------------------------------------------------------------
    Route(
        name="ListCatalogs",
        method="GET",
        path="/v1/catalogs",
        run=catalogs.list_catalogs,
        gives=shapes.Catalogs,
        role=_READ,
        touches=_seen,
        is_of_catalog=False,
        is_foreign=True,
    ),
    Route(
        name="DescribeCatalog",
        method="GET",
        path="/v1/catalog",
        run=catalogs.describe_catalog,
        gives=shapes.Catalog,
        role=_READ,
        touches=_seen,
        is_foreign=True,
    ),
    # -- namespaces ------------------------------------------------------------------------------
    Route(
        name="DescribeNamespaces",
        method="GET",
        path="/v1/namespaces",
        run=namespaces.describe_namespaces,
        gives=shapes.Namespaces,
        role=_READ,
        touches=_seen,
    ),
    Route(
        name="UndropNamespace",
        path="/v1/namespace/{id}/undrop",
        run=namespaces.undrop_namespace,
        gives=shapes.Counted,
        touches=_it,
    ),
    Route(
        name="UpdateNamespace",
        path="/v1/namespace/{id}/properties",
        run=namespaces.update_namespace,
        takes=shapes.PropertyUpdates,
        gives=shapes.Properties,
        touches=_it,
    ),
    # -- tables ----------------------------------------------------------------------------------
    Route(
        name="DescribeTables",
        method="GET",
        path="/v1/tables",
        run=tables.describe_tables,
        gives=shapes.Tables,
        role=_READ,
        touches=_within,
        params={"within": Param("The identifier of a namespace; the root unless given.")},
    ),
    Route(
        name="GetTableStatus",
        method="GET",
        path="/v1/table/{id}/status",
        run=tables.table_status,
        gives=shapes.TableStatus,
        role=_READ,
    ),
    Route(
        name="UndropTable",
        path="/v1/table/{id}/undrop",
        run=tables.undrop_table,
        takes=shapes.Undrop,
        gives=shapes.Undropped,
        touches=_undropped,
    ),
    Route(
        name="PurgeTable",
        path="/v1/table/{id}/purge",
        run=tables.purge_table,
        gives=shapes.Nothing,
        role=_ADMIN,
        lane=Lane.DATA,
    ),
    Route(
        name="ProtectTable",
        path="/v1/table/{id}/protect",
        run=tables.protect_table,
        takes=shapes.Protection,
        gives=shapes.Nothing,
    ),
    Route(
        name="UpdateTable",
        path="/v1/table/{id}/properties",
        run=tables.update_table,
        takes=shapes.PropertyUpdates,
        gives=shapes.Properties,
    ),
    Route(
        name="GetTableHistory",
        method="GET",
        path="/v1/table/{id}/history",
        run=tables.table_history,
        gives=shapes.History,
        role=_READ,
    ),
    Route(
        name="TidyTableVersions",
        path="/v1/table/{id}/version/tidy",
        run=tables.tidy_versions,
        gives=shapes.Counted,
        lane=Lane.DATA,
    ),
    # -- the trash -------------------------------------------------------------------------------
    Route(
        name="ListTrash",
        method="GET",
        path="/v1/trash",
        run=trash.list_trash,
        gives=shapes.Trash,
        role=_READ,
        touches=_seen,
        params={
            "deleted_before_ms": Param(
                "Only what was dropped before, in milliseconds since 1970.", "integer"
            )
        },
    ),
    Route(
        name="PurgeTrash",
        path="/v1/trash/purge",
        run=trash.purge_trash,
        takes=shapes.Purge,
        gives=shapes.PurgeResult,
        role=_ADMIN,
        touches=trash.doomed,
        lane=Lane.DATA,
    ),
    # -- metastores ------------------------------------------------------------------------------
    Route(
        name="ListTransactions",
        method="GET",
        path="/v1/transactions",
        run=transactions.list_transactions,
        gives=shapes.Transactions,
        role=_READ,
        touches=_everything,
        params=_limit("transactions"),
    ),
    Route(
        name="DescribeTransaction",
        method="GET",
        path="/v1/transactions/{txn}",
        run=transactions.describe_transaction,
        gives=shapes.TransactionWithChanges,
        role=_READ,
        touches=_everything,
    ),
    Route(
        name="ListRuns",
        method="GET",
        path="/v1/runs",
        run=runs.list_runs,
        gives=shapes.Runs,
        role=_READ,
        touches=_everything,
        params={
            "pipeline": Param("Only runs of this pipeline."),
            "table": Param("Only runs that read or wrote this table."),
            **_limit("runs"),
        },
    ),
    Route(
        name="DescribeRun",
        method="GET",
        path="/v1/runs/{run}",
        run=runs.describe_run,
        gives=shapes.RunWithLineage,
        role=_READ,
        touches=_everything,
    ),
)


def find_route(method: str, segments: Sequence[bytes]) -> Matched[Route]:
    """Find what a path leads to.

    Args:
        method: Of HTTP.
        segments: The path from ``v1`` on, in parts, as they were sent.
    """
    return match_route(method, ((route, route.segments) for route in ROUTES), segments)
