"""Writing a table in parts: workers write data files, one commit makes them visible."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import lance

from mooring.errors import (
    ConcurrentModificationError,
    NotLanceTableError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnknownOutcomeError,
)
from mooring.identifiers import quote
from mooring.namespace.api import CreateMode
from mooring.table import Table
from mooring.tables.api import ElsewhereWritten
from mooring.tables.draft import Draft, draft_for
from mooring.tables.fragments import commit, data_files, unpack, whole_schema
from mooring.tables.pending import PendingRun, new_run_id
from mooring.tables.place import open_place
from mooring.tables.runs import Done, Runs, find_done

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from lance.fragment import FragmentMetadata

    from mooring.catalog import Catalog
    from mooring.identifiers import ObjectId
    from mooring.jobs.runner import Runner
    from mooring.namespace.api import TableInfo
    from mooring.tables.fragments import Landed
    from mooring.tables.handle import TableHandle
    from mooring.tables.runs import RunMark

__all__ = ["Check", "Landing", "PartWritten", "Work", "WriteMode", "Written", "write_parts"]

Part_contra = TypeVar("Part_contra", contravariant=True)
Part = TypeVar("Part")
Result = TypeVar("Result", bound="PartWritten")
Result_co = TypeVar("Result_co", bound="PartWritten", covariant=True)
Result_contra = TypeVar("Result_contra", bound="PartWritten", contravariant=True)


class WriteMode(StrEnum):
    """What becomes of the rows that are there."""

    APPEND = "append"
    OVERWRITE = "overwrite"


@dataclass(frozen=True)
class PartWritten:
    """What a worker wrote of one part.

    Attributes:
        fragments: The fragments, packed.
        rows: How many rows are in them.
    """

    fragments: tuple[str, ...] = ()
    rows: int = 0


class Work(Protocol[Part_contra, Result_co]):
    """What a worker does; it travels, so it must pickle."""

    def __call__(self, draft: Draft, part: Part_contra) -> Result_co:
        """Write one part with ``draft.write``."""
        ...


class Check(Protocol[Result_contra]):
    """Looks at what was written, before a commit."""

    def __call__(self, draft: Draft, parts: Sequence[Result_contra]) -> None:
        """Raise what should end the job."""
        ...


class Landing(Protocol):
    """Commits what was written for a table that is there."""

    def __call__(
        self,
        handle: TableHandle,
        draft: Draft,
        fragments: list[FragmentMetadata],
        *,
        rows: int,
        claim: Callable[[], None],
    ) -> Landed:
        """Commit; call ``claim`` before, which makes sure that the data files stay.

        It may write parts anew: the files of what is in the list in the end are kept.
        """
        ...


@dataclass(frozen=True)
class Written(Generic[Result]):
    """A table that was written.

    Attributes:
        table: The table.
        version: The version with the rows.
        rows: How many were written.
        is_new: Whether they were written now; not where the run was in the table already.
        parts: What each worker told; empty where nothing was written now.
    """

    table: Table
    version: int
    rows: int
    is_new: bool
    parts: tuple[Result, ...]


def write_parts(
    catalog: Catalog,
    name: ObjectId,
    schema: pa.Schema,
    parts: Sequence[Part],
    *,
    work: Work[Part, Result],
    runner: Runner,
    mode: WriteMode = WriteMode.APPEND,
    mark: RunMark | None = None,
    properties: Mapping[str, str] | None = None,
    on_done: Callable[[Result], None] | None = None,
    check: Check[Result] | None = None,
    land: Landing | None = None,
    notes: Mapping[str, str] | None = None,
    creates: bool = True,
) -> Written[Result]:
    """Write a table, new or not, in parts.

    Nothing is visible before all parts are written, and a failure leaves nothing behind.

    Args:
        catalog: The catalog.
        name: The table.
        schema: The rows' schema; to append it is that of the table.
        parts: What is divided among workers.
        work: Writes one part.
        runner: Does it for all of them.
        mode: What becomes of the rows that are there.
        mark: A name by which the run is known again: it counts once.
        properties: Those of a table that is made by this.
        on_done: Hears what each worker told.
        check: Looks at what all of them told before anything is committed; what it raises ends
            the job.
        land: Commits what was written for a table that is there; the mode does unless given.
        notes: What else is kept with the first commit of a table that is made by this.
        creates: Whether to make a table that is not there.

    Raises:
        TableNotFoundError: the table is not there, and is not to be made.
        ConcurrentModificationError: a conflicting change came first.
    """

    def write(draft: Draft) -> list[Result]:
        told = runner.run(partial(work, draft), parts, label=f"writing {name}", on_done=on_done)
        if check is not None:
            check(draft, told)
        return told

    job = _Job(catalog, name, schema=schema, write=write, mark=mark, land=land, notes=notes)
    catalog.backend.require_writable()
    for _ in range(2):
        table = _find(catalog, name)
        if table is not None:
            return job.write_into(table, mode)
        if not creates:
            raise TableNotFoundError(f"there is no table {quote(str(name))} any more")
        try:
            return job.create(properties)
        except TableAlreadyExistsError:
            continue  # somebody else was faster: it is there now
    msg = f"{quote(str(name))} comes and goes while it is written: try again"
    raise ConcurrentModificationError(msg)


def _find(catalog: Catalog, name: ObjectId) -> Table | None:
    """Return a table that has data; one that goes while it is written is not made anew."""
    try:
        table = catalog.table(name)
    except NotLanceTableError:
        raise  # the name is taken: it cannot be made
    except TableNotFoundError:
        return None
    return None if table.handle.ledger.newest(None) is None else table


class _Job(Generic[Result]):
    """One write."""

    def __init__(
        self,
        catalog: Catalog,
        name: ObjectId,
        *,
        schema: pa.Schema,
        write: Callable[[Draft], list[Result]],
        mark: RunMark | None,
        land: Landing | None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        self._catalog = catalog
        self._name = name
        self._schema = schema
        self._write = write
        self._mark = mark
        self._land = land
        self._notes = dict(notes or {})

    def write_into(self, table: Table, mode: WriteMode) -> Written[Result]:
        """Write into a table that is there.

        Raises:
            TableNotFoundError: it was dropped or renamed meanwhile.
        """
        handle = table.handle
        known = find_done(handle, self._mark) if self._mark else None
        if known is not None:
            return Written(table, known.version, known.rows or 0, is_new=False, parts=())
        with handle.reading() as dataset:
            is_append = mode is WriteMode.APPEND
            draft = draft_for(
                handle.location, handle.options, new_run_id(), dataset if is_append else None
            )
            read = int(dataset.version)
        run = PendingRun(handle.place, draft.run)
        try:
            parts = self._write(draft)
        except BaseException:
            run.settle()
            raise
        fragments = _fragments(parts)
        rows = sum(part.rows for part in parts)
        try:
            landed = self._commit(
                handle, draft, fragments, mode=mode, run=run, read=read, rows=rows
            )
        except UnknownOutcomeError:
            raise  # the files may be in a version
        except Exception:
            # Not where a person interrupts: the commit may be on its way, and a cleanup can tell.
            run.settle(lost=data_files(fragments))
            raise
        _settle(run, fragments if landed.is_new else [])
        return Written(
            table, landed.version, rows, landed.is_new, tuple(parts) if landed.is_new else ()
        )

    def _commit(
        self,
        handle: TableHandle,
        draft: Draft,
        fragments: list[FragmentMetadata],
        *,
        mode: WriteMode,
        run: PendingRun,
        read: int,
        rows: int,
    ) -> Landed:
        if self._land is not None:
            claim = partial(run.claim, read, data_files(fragments))
            return self._land(handle, draft, fragments, rows=rows, claim=claim)
        operation = self._operation(fragments, mode)
        return commit(handle, operation, read, mark=self._mark, rows=rows, claim=run.claim)

    def _operation(
        self, fragments: list[FragmentMetadata], mode: WriteMode
    ) -> lance.LanceOperation.BaseOperation:
        if mode is WriteMode.APPEND:
            return lance.LanceOperation.Append(fragments)
        return lance.LanceOperation.Overwrite(whole_schema(self._schema), fragments)

    def create(self, properties: Mapping[str, str] | None) -> Written[Result]:
        """Make the table.

        Raises:
            TableAlreadyExistsError: it is there.
        """
        rows = _NewRows(self._schema, self._write, self._mark, self._notes)
        info: TableInfo = self._catalog.backend.create_table(
            self._name, rows, CreateMode.CREATE, properties
        )
        version = info.version or 1
        count = sum(part.rows for part in rows.parts)
        if self._mark is not None:
            place = open_place(info.location, info.storage_options)
            Runs(place, self._mark).end(Done(version, count))
        table = Table(self._catalog.backend, info)
        return Written(table, version, count, is_new=True, parts=tuple(rows.parts))


class _NewRows(ElsewhereWritten, Generic[Result]):
    """The first rows of a table, which workers write where the catalog says."""

    def __init__(
        self,
        schema: pa.Schema,
        write: Callable[[Draft], list[Result]],
        mark: RunMark | None,
        notes: Mapping[str, str],
    ) -> None:
        self._schema = schema
        self._write = write
        self._mark = mark
        self._notes = notes
        self._run: PendingRun | None = None
        self._runs: Runs | None = None
        self.parts: list[Result] = []

    @property
    def schema(self) -> pa.Schema:
        """The rows' schema."""
        return self._schema

    @property
    def properties(self) -> Mapping[str, str]:
        """The run's name, and what else is to be kept."""
        return {**(self._mark.properties if self._mark else {}), **self._notes}

    def write(self, location: str, options: Mapping[str, str]) -> Sequence[object]:
        """Have the data files written."""
        draft = draft_for(location, options, new_run_id())
        place = open_place(location, options)
        self._run = PendingRun(place, draft.run)
        if self._mark is not None:
            self._runs = Runs(place, self._mark)
            self._runs.begin(0)
        self.parts = self._write(draft)
        fragments = _fragments(self.parts)
        self._run.claim(files=data_files(fragments))
        return fragments

    def settle(self, *, is_committed: bool) -> None:
        """Delete what is left over."""
        if self._run is None:
            return
        if is_committed:
            _settle(self._run, _fragments(self.parts))
            return
        self._run.settle()
        if self._runs is not None:
            self._runs.forget()


def _fragments(parts: Sequence[PartWritten]) -> list[FragmentMetadata]:
    return unpack(text for part in parts for text in part.fragments)


def _settle(run: PendingRun, kept: Sequence[FragmentMetadata]) -> None:
    """Tidy up after a commit, which stands whatever becomes of this."""
    try:
        run.settle(data_files(kept))
    except ServiceUnavailableError:
        return  # a cleanup finds it
