"""A write that several processes make together: one begins it, many write, another ends it.

`mooring.jobs.writing` is for a driver that stays; here nothing is kept but what travels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import lance
import pyarrow as pa

from mooring.errors import (
    ConcurrentModificationError,
    NotLanceTableError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnknownOutcomeError,
)
from mooring.identifiers import ObjectId, quote
from mooring.jobs.address import CatalogAddress
from mooring.jobs.incoming import Incoming, IncomingRows
from mooring.jobs.writing import PartWritten, WriteMode
from mooring.namespace.api import CreateMode
from mooring.tables.draft import draft_for
from mooring.tables.fragments import Landed, commit, data_files, pack, unpack, whole_schema
from mooring.tables.pending import PendingRun, new_run_id
from mooring.tables.place import open_place
from mooring.tables.runs import Done, Runs, find_done

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from lance.fragment import FragmentMetadata

    from mooring.catalog import Catalog
    from mooring.tables.draft import Draft
    from mooring.tables.handle import TableHandle
    from mooring.tables.runs import RunMark

__all__ = ["OpenWrite", "begin_write"]


@dataclass(frozen=True)
class OpenWrite:
    """A write that was begun; it travels.

    Attributes:
        catalog: The catalog.
        names: The table's identifier, level by level.
        schema: What the rows are written as.
        draft: How to write data files.
        mode: What becomes of the rows that are there.
        read_version: The version that was there; None for a new table.
        mark: A name by which the run is known again: it counts once.
        is_done: Whether the run is in the table already: nothing is written.
    """

    catalog: CatalogAddress
    names: tuple[str, ...]
    schema: pa.Schema
    draft: Draft
    mode: WriteMode
    read_version: int | None
    mark: RunMark | None = None
    is_done: bool = False

    @property
    def what(self) -> str:
        """The table, in messages."""
        return f"table {quote('$'.join(self.names))}"

    @cached_property
    def _incoming(self) -> Incoming | None:
        """Where the files wait, of a table that is new."""
        if self.read_version is not None:
            return None
        return Incoming(self.draft.location, self.draft.options, self.draft.run)

    @property
    def _pending(self) -> PendingRun:
        return PendingRun(open_place(self.draft.location, self.draft.options), self.draft.run)

    def write(
        self, batches: Iterable[pa.RecordBatch], *, rows_a_file: int | None = None
    ) -> PartWritten:
        """Write one part; a failure leaves nothing.

        Args:
            batches: The rows, with the schema of the write.
            rows_a_file: At most so many rows a file.
        """
        if self.is_done:
            return PartWritten()
        counted = _Counted(batches)
        first = next(counted, None)
        if first is None:
            return PartWritten()
        reader = pa.RecordBatchReader.from_batches(self.schema, _chain(first, counted))
        fragments = self.draft.write(reader, rows_a_file=rows_a_file)
        return PartWritten(pack(fragments), counted.rows)

    def finish(self, parts: Sequence[PartWritten]) -> Landed | None:
        """Commit what was written; None where the run was in the table already.

        Raises:
            ConcurrentModificationError: a conflicting change came first.
        """
        if self.is_done:
            return None
        fragments = unpack(text for part in parts for text in part.fragments)
        rows = sum(part.rows for part in parts)
        try:
            if self._incoming is None:
                return self._commit(fragments, rows)
            return self._create(self._incoming, fragments, rows)
        except UnknownOutcomeError:
            raise  # the files may be in a version
        except Exception:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Delete what was written."""
        if self.is_done:
            return
        if self._incoming is not None:
            self._incoming.delete()
            return
        self._pending.settle()

    def is_left(self) -> bool:
        """Whether somebody wrote for the run since it was given up."""
        if self._incoming is not None:
            return bool(self._incoming.newest_ms)
        return bool(self._pending.begun_ms)

    def _commit(self, fragments: list[FragmentMetadata], rows: int) -> Landed:
        handle = self.catalog.open().table(list(self.names)).handle
        if handle.location != self.draft.location:
            msg = f"{self.what} was replaced by another while it was written: run it again"
            raise ConcurrentModificationError(msg)
        operation: lance.LanceOperation.BaseOperation
        if self.mode is WriteMode.APPEND:
            operation = lance.LanceOperation.Append(fragments)
        else:
            operation = lance.LanceOperation.Overwrite(whole_schema(self.schema), fragments)
        landed = commit(
            handle,
            operation,
            self.read_version or 1,
            mark=self.mark,
            rows=rows,
            claim=self._pending.claim,
        )
        self._settle(fragments if landed.is_new else [])
        return landed

    def _create(
        self, incoming: Incoming, fragments: list[FragmentMetadata], rows: int
    ) -> Landed | None:
        catalog = self.catalog.open()
        name = ObjectId.of(self.names)
        first = IncomingRows(incoming, self.schema, fragments, mark=self.mark)
        try:
            info = catalog.backend.create_table(name, first, CreateMode.CREATE)
        except TableAlreadyExistsError as exc:
            known = find_done(catalog.table(name).handle, self.mark) if self.mark else None
            if known is None:
                msg = f"{self.what} was made by somebody else meanwhile: run it again"
                raise ConcurrentModificationError(msg) from exc
            incoming.delete()
            return None
        version = info.version or 1
        if self.mark is not None:
            Runs(open_place(info.location, info.storage_options), self.mark).end(
                Done(version, rows)
            )
        self._settle([])
        return Landed(version)

    def _settle(self, kept: Sequence[FragmentMetadata]) -> None:
        """Tidy up after a commit, which stands whatever becomes of this."""
        try:
            if self._incoming is not None:
                self._incoming.delete()
            else:
                self._pending.settle(data_files(kept))
        except ServiceUnavailableError:
            return  # a cleanup finds it


def begin_write(
    catalog: Catalog,
    name: ObjectId,
    fit: Callable[[pa.Schema | None], pa.Schema],
    *,
    mode: WriteMode,
    mark: RunMark | None = None,
    create_only: bool = False,
) -> OpenWrite:
    """Begin to write a table, new or not.

    Args:
        catalog: The catalog.
        name: The table.
        fit: Returns what rows are written as, from the schema of the table that they are
            appended to; from None where they make or replace it. Raises where they do not fit.
        mode: What becomes of the rows that are there.
        mark: A name by which the run is known again: it counts once.
        create_only: Whether the table must not be there.

    Raises:
        ReadOnlyError: the catalog was opened read-only.
        TableAlreadyExistsError: the table is there, and must not be.
    """
    catalog.backend.require_writable()
    address, run = CatalogAddress.of(catalog), new_run_id()

    def new() -> OpenWrite:
        draft = Incoming.of(catalog, run, name).draft
        return OpenWrite(address, name.names, fit(None), draft, mode, None, mark)

    handle = _find(catalog, name)
    if handle is None:
        return new()
    known = find_done(handle, mark) if mark else None
    if create_only and known is None:
        msg = f"{quote(str(name))} is there already: append to it or overwrite it"
        raise TableAlreadyExistsError(msg)
    with handle.reading() as dataset:
        is_append = mode is WriteMode.APPEND
        draft = draft_for(handle.location, handle.options, run, dataset if is_append else None)
        return OpenWrite(
            address,
            name.names,
            fit(dataset.schema if is_append else None),
            draft,
            mode,
            int(dataset.version),
            mark,
            known is not None,
        )


def _find(catalog: Catalog, name: ObjectId) -> TableHandle | None:
    """Return a table that has data."""
    try:
        handle = catalog.table(name).handle
    except NotLanceTableError:
        raise  # the name is taken: it cannot be made
    except TableNotFoundError:
        return None
    return None if handle.ledger.newest(None) is None else handle


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


class _Counted:
    """Batches that are not empty, and how many rows they had."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = next(self._batches)
        while not batch.num_rows:
            batch = next(self._batches)
        self.rows += batch.num_rows
        return batch
