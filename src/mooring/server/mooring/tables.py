"""What can be done with tables beyond Lance's REST protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from msgspec import UNSET

from mooring.identifiers import ObjectId
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.server.mooring import shapes

if TYPE_CHECKING:
    from mooring.namespace.api import TableInfo
    from mooring.server.mooring.calls import Call

__all__ = [
    "describe_tables",
    "protect_table",
    "purge_table",
    "table_history",
    "table_status",
    "tidy_versions",
    "undrop_table",
    "update_table",
]


def describe_tables(call: Call) -> shapes.Tables:
    """Locate the live tables below a namespace that whoever asks may read."""
    who, catalog = call.identity, call.served.name
    found = call.whole.describe_tables(call.within)
    if not found:
        call.backend.describe_namespace(call.within)  # which tells where there is none
    return shapes.Tables([_shown(one) for one in found if who.role_in(catalog, one.id)])


def _shown(info: TableInfo) -> shapes.Table:
    keeps = UNSET if info.keeps_versions is None else info.keeps_versions
    return shapes.Table(list(info.id.names), info.location, dict(info.properties), keeps)


def table_status(call: Call) -> shapes.TableStatus:
    """Tell whether a table is live, dropped or not there."""
    status = call.backend.table_status(call.table)
    match status:
        case Exists():
            return shapes.TableStatus("exists")
        case SoftDeleted():
            return shapes.TableStatus("soft_deleted", status.deleted_at_ms, status.expires_at_ms)
        case NotFound():
            return shapes.TableStatus("not_found")
    assert_never(status)


def undrop_table(call: Call) -> shapes.Undropped:
    """Bring a dropped table back."""
    asked: shapes.Undrop = call.asked
    new = None if asked.new_id is None else ObjectId.of(asked.new_id)
    info = call.backend.undrop_table(call.table, new)
    return shapes.Undropped(list(info.id.names), info.location)


def purge_table(call: Call) -> shapes.Nothing:
    """Delete the bytes of a dropped table."""
    call.backend.purge_table(call.table)
    return shapes.Nothing()


def protect_table(call: Call) -> shapes.Nothing:
    """Make drops of a table refuse, or allow them again."""
    asked: shapes.Protection = call.asked
    call.backend.protect_table(call.table, protected=asked.protected)
    return shapes.Nothing()


def update_table(call: Call) -> shapes.Properties:
    """Change properties of a table."""
    asked: shapes.PropertyUpdates = call.asked
    return shapes.Properties(dict(call.backend.update_table(call.table, asked.updates)))


def table_history(call: Call) -> shapes.History:
    """Tell what happened to a table in the catalog."""
    return shapes.History(
        [
            shapes.Change(str(one.action), str(one.state), one.by, one.at_ms, one.version)
            for one in call.backend.table_history(call.table)
        ]
    )


def tidy_versions(call: Call) -> shapes.Counted:
    """Forget the records of versions that Lance cleaned up."""
    return shapes.Counted(call.backend.tidy_versions(call.table))
