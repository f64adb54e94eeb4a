"""How the first table of an empty catalog or namespace is made: lines to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.roles import Role
from mooring.server.ui.command_lines import whole_uri

if TYPE_CHECKING:
    from mooring.identifiers import ObjectId
    from mooring.server.ui.visit import Visit

__all__ = ["begin"]

_NAMESPACE, _TABLE, _FILE = "sales", "orders", "orders.parquet"
_TABLES_NEED_NAMESPACES = ("metastore", "iceberg")


def begin(visit: Visit, at: ObjectId) -> dict[str, str]:
    """Return lines that make a table, by what they are written in; none for those who may not.

    Args:
        visit: Who looks.
        at: Where the table is to lie.
    """
    if not visit.may(Role.WRITER, at):
        return {}
    is_new = at.is_root and visit.kind in _TABLES_NEED_NAMESPACES
    around = (_NAMESPACE,) if is_new else at.names
    return {
        "Python": _python(visit, around, is_new=is_new),
        "CLI": _commands(visit, around, is_new=is_new),
    }


def _python(visit: Visit, around: tuple[str, ...], *, is_new: bool) -> str:
    direct = visit.direct_uri
    uri = visit.remote_uri if direct is None else whole_uri(direct)
    lines = ["import mooring", "", f"catalog = mooring.connect({uri!r})"]
    if is_new:
        lines.append(f"catalog.create_namespace({list(around)!r})")
    rows = [{"id": 1, "total": 9.5}, {"id": 2, "total": 20.0}]
    lines.append(f"catalog.create_table({[*around, _TABLE]!r}, {rows!r})")
    return "\n".join(lines)


def _commands(visit: Visit, around: tuple[str, ...], *, is_new: bool) -> str:
    table = visit.cli("table", "create", f"--from={_FILE}", names=["$".join((*around, _TABLE))])
    if not is_new:
        return table
    return f"{visit.cli('namespace', 'create', names=['$'.join(around)])}\n{table}"
