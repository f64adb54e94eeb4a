"""What was written for a table and is given up, by a process that knows nothing of its commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.changes.plan import find_moment
from mooring.errors import MooringError
from mooring.metastore.layout import data_dir

if TYPE_CHECKING:
    from collections.abc import Collection

    from mooring.catalog import Catalog
    from mooring.identifiers import ObjectId
    from mooring.metastore import DataFile

__all__ = ["give_up"]


def give_up(catalog: Catalog, table: ObjectId, tokens: Collection[str]) -> bool:
    """Delete files that were written under ids, unless they are in the table.

    A commit that failed may have happened all the same. So the ids are given up first: what is not
    in the table then never comes to be.

    Returns:
        Whether all of them are known not to be in the table.
    """
    try:
        catalog.metastore.give_up(tokens)
        used = _find_used(catalog, table, tokens)
        for token in set(tokens) - used:
            catalog.metastore.store.delete_prefix(data_dir(token))
    except MooringError:
        return False  # a vacuum finds it; what went wrong before matters more
    return not used


def _find_used(catalog: Catalog, table: ObjectId, tokens: Collection[str]) -> set[str]:
    """Name the ids under which files of the table were written."""
    files: list[DataFile] = []
    for log in find_moment(catalog, table).partitions.values():
        for files_of in (*(one.files for one in log.deltas), *(one.files for one in log.bases)):
            files += files_of
    return {
        token
        for token in tokens
        if any(file.path.startswith(f"{data_dir(token)}/") for file in files)
    }
