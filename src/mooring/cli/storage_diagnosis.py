"""What ``mooring doctor`` finds of the storage behind a server: whether it is reached from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.cli.diagnosis import PROBLEM, SKIPPED, Finding, reason
from mooring.errors import MooringError, NotLanceTableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.identifiers import ObjectId
    from mooring.namespace.api import Backend, TableInfo

__all__ = ["diagnose_storage"]

_LOOKED_AT = 20


def diagnose_storage(
    backend: Backend,
    namespaces: Sequence[ObjectId],
    *,
    wanted: str,
    tell: Callable[[TableInfo, bool], Finding],
) -> Finding:
    """Look for the files of one table, where the server says that they lie.

    Args:
        backend: A catalog that a server keeps.
        namespaces: Where to look for a table.
        wanted: What is looked for, for messages.
        tell: Words whether something lies in the directory of a table.
    """
    info = _some_table(backend, namespaces)
    if info is None:
        note = f"no {wanted} was found in the first namespaces"
        return Finding("storage", "reachable", None, SKIPPED, note)
    from mooring.tables.place import open_place

    try:
        place = open_place(info.location, info.storage_options)
        is_there = place.store.list_dir(place.directory).exists
    except MooringError as exc:
        return Finding("storage", "reachable", "no", PROBLEM, reason(exc))
    return tell(info, is_there)


def _some_table(backend: Backend, namespaces: Sequence[ObjectId]) -> TableInfo | None:
    """Return a Lance table with data, where one of the first tables is one."""
    looked_at = 0
    for namespace in namespaces[:_LOOKED_AT]:
        for name in backend.list_tables(namespace, limit=_LOOKED_AT):
            looked_at += 1
            if looked_at > _LOOKED_AT:
                return None
            try:
                info = backend.describe_table(namespace.child(name), check_declared=True)
            except NotLanceTableError:
                continue
            if not info.is_only_declared:
                return info
    return None
