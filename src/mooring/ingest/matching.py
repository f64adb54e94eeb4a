"""Keys of new rows compared: with each other, and with those of a version of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mooring.jobs.runner import Threads
from mooring.tables.handle import At
from mooring.tables.upserts import (
    POSITION,
    FragmentEdit,
    delete_offsets,
    find_rows,
    undo_edits,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from mooring.jobs.address import TableAddress
    from mooring.tables.handle import TableHandle
    from mooring.tables.upserts import KeyFiles

    Positions = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["LocalMatcher", "Matcher", "TableVersion"]


@dataclass(frozen=True)
class TableVersion:
    """A version of a table, to compare with.

    Attributes:
        handle: The table.
        address: The same for workers on other machines.
        version: Its number.
        fragments: The numbers of its fragments.
    """

    handle: TableHandle
    address: TableAddress
    version: int
    fragments: tuple[int, ...]


class Matcher(Protocol):
    """Compares keys; rows are told by their positions among all that are new."""

    def nulls(self, keys: KeyFiles) -> Positions:
        """Find the rows that lack a value of their key."""
        ...

    def repeats(self, keys: KeyFiles) -> Positions:
        """Find the rows whose key an earlier one has."""
        ...

    def existing(self, keys: KeyFiles, table: TableVersion) -> Positions:
        """Find the rows whose key is in a table."""
        ...

    def delete(self, keys: KeyFiles, table: TableVersion) -> list[FragmentEdit]:
        """Delete the rows of a table that have one of the keys, for a version to come.

        What fails leaves nothing.
        """
        ...


class LocalMatcher:
    """Compares in this process: the new keys are in memory, a table's come by."""

    def __init__(self, threads: int | None = None) -> None:
        """Use so many threads."""
        self._runner = Threads(threads)

    def nulls(self, keys: KeyFiles) -> Positions:
        """Find the rows that lack a value of their key."""
        rows = keys.read_all()
        lacks = np.zeros(rows.num_rows, dtype=bool)
        for name in keys.columns:
            lacks |= rows[name].is_null().to_numpy()
        return np.asarray(rows[POSITION].to_numpy()[lacks])

    def repeats(self, keys: KeyFiles) -> Positions:
        """Find the rows whose key an earlier one has."""
        rows = keys.read_all()
        firsts = rows.group_by(list(keys.columns)).aggregate([(POSITION, "min")])
        known = firsts[f"{POSITION}_min"].to_numpy()
        return np.setdiff1d(rows[POSITION].to_numpy(), known)

    def existing(self, keys: KeyFiles, table: TableVersion) -> Positions:
        """Find the rows whose key is in a table."""
        new = keys.read_all()
        dataset = table.handle.open(At(table.version))

        def look(number: int) -> pa.Table:
            return find_rows(dataset, number, new)

        found = self._runner.run(look, table.fragments)
        positions = [rows[POSITION].to_numpy() for rows in found]
        return np.unique(np.concatenate(positions)) if positions else np.array([], np.int64)

    def delete(self, keys: KeyFiles, table: TableVersion) -> list[FragmentEdit]:
        """Delete the rows of a table that have one of the keys, for a version to come."""
        new = keys.read_all()
        dataset = table.handle.open(At(table.version))

        def edit(number: int) -> FragmentEdit | None:
            return delete_offsets(dataset, number, find_rows(dataset, number, new))

        # Each tells its failure as an answer, so that what the others wrote is known, too.
        results = self._runner.run(_caught(edit), table.fragments)
        edits = [result for result in results if isinstance(result, FragmentEdit)]
        failures = [result for result in results if isinstance(result, Exception)]
        if failures:
            undo_edits(table.handle.place, edits)
            raise failures[0]
        return edits


def _caught(
    work: Callable[[int], FragmentEdit | None],
) -> Callable[[int], FragmentEdit | Exception | None]:
    def caught(number: int) -> FragmentEdit | Exception | None:
        try:
            return work(number)
        except Exception as exc:  # noqa: BLE001  # it is raised where all are known
            return exc

    return caught
