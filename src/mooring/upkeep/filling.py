"""Columns that a Python function computes: fragments in workers, one commit."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    ServiceUnavailableError,
)
from mooring.identifiers import quote
from mooring.jobs.address import CatalogAddress, TableAddress
from mooring.tables.backfill import Backfilled
from mooring.tables.column_files import ColumnFiles, ColumnPlan, fill_fragment
from mooring.tables.commits import Committed
from mooring.tables.failures import translated
from mooring.tables.fields import check_name, find
from mooring.tables.filters import parsing, whole
from mooring.tables.handle import At
from mooring.tables.pending import PendingRun, new_run_id
from mooring.upkeep.functions import FunctionText, parse_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mooring.catalog import Catalog, Name
    from mooring.jobs.runner import Runner
    from mooring.table import Table
    from mooring.tables.column_files import FilledFragment
    from mooring.tables.fields import Found
    from mooring.tables.handle import TableHandle

    Function = Callable[[pa.RecordBatch], Any]

__all__ = ["fill_column"]

_ATTEMPTS = 20
_TASTE = 16


def fill_column(
    catalog: Catalog,
    name: Name,
    column: str,
    function: str | Function,
    *,
    runner: Runner,
    reads: Sequence[str] | None = None,
    data_type: pa.DataType | None = None,
    where: str | None = None,
    branch: str | None = None,
) -> Backfilled:
    """Compute a column with a function, divided among workers, and commit it once.

    A column that is not there is added, and every row gets a value. Of one that is there the rows
    without a value are computed, or those that a filter selects. Rows that come in meanwhile are
    computed, too, before the commit.

    Args:
        catalog: The catalog.
        name: The table.
        column: The column, a new one or one that is there.
        function: Takes a `pyarrow.RecordBatch` and returns a value for each row, as an array or
            what can become one. As text, `file.py:function` or `module:function`, it travels to
            workers with the text of its file.
        runner: Computes the fragments.
        reads: The columns that the function gets; all others unless given.
        data_type: The type of a new column; that of the function's first values unless given.
        where: In which rows of a column that is there; those without a value unless given.
        branch: Where; main unless given.

    Raises:
        TableColumnNotFoundError: a column is not there.
        InvalidInputError: the function failed, what it returned does not fit, or the column lies
            in another.
        ConcurrentModificationError: other changes came first every time.
    """
    called = parse_function(function) if isinstance(function, str) else function
    table = catalog.table(name)
    table.handle.ledger.prepare()
    plan = _plan(table, column, called, reads=reads, data_type=data_type, where=where, at=branch)
    if plan is None:
        return _add_empty(table, column, data_type, branch)
    address = TableAddress(CatalogAddress.of(catalog), table.info.id.names, branch=branch)
    return _Filling(table.handle, address, _Compute(plan, called), runner).run()


def _plan(
    table: Table,
    column: str,
    function: FunctionText | Function,
    *,
    reads: Sequence[str] | None,
    data_type: pa.DataType | None,
    where: str | None,
    at: str | None,
) -> ColumnPlan | None:
    """Say what is to be computed; None where a new column has no row to be computed for."""
    handle = table.handle
    with handle.reading(At(branch=at)) as dataset:
        names = dataset.schema.names
        known = tuple(_outer(find(dataset, one, handle.what)) for one in reads or ()) or None
        if column in names:
            field = dataset.schema.field(column)
            if data_type is not None and data_type != field.type:
                msg = f"column {quote(column)} of {handle.what} has the type {field.type}"
                raise InvalidInputError(msg)
            rows = None if where is None else whole(where)
            return ColumnPlan(field, is_new=False, reads=known, where=rows)
        _check_new(handle, column, where)
        if not dataset.get_fragments():
            return None
        if data_type is not None:
            return ColumnPlan(pa.field(column, data_type), is_new=True, reads=known)
        batch = dataset.scanner(columns=list(known) if known else names, limit=_TASTE)
        taste = batch.to_table().combine_chunks().to_batches()
        kind = _taste(function, taste[0], column) if taste else pa.null()
    if pa.types.is_null(kind):
        msg = f"nothing tells the type of column {quote(column)}: give it"
        raise InvalidInputError(msg)
    return ColumnPlan(pa.field(column, kind), is_new=True, reads=known)


def _outer(found: Found) -> str:
    if found.is_nested:
        msg = f"a function gets whole columns: {quote(found.path)} lies in one, name that"
        raise InvalidInputError(msg)
    return found.name


def _check_new(handle: TableHandle, column: str, where: str | None) -> None:
    check_name(column, handle.what)
    if where is not None:
        msg = f"{handle.what} has no column {quote(column)} yet: it is computed in every row"
        raise InvalidInputError(msg)


def _taste(function: FunctionText | Function, batch: pa.RecordBatch, column: str) -> pa.DataType:
    return _Values(function, pa.field(column, pa.null()), is_sample=True)(batch).type


def _add_empty(
    table: Table, column: str, data_type: pa.DataType | None, branch: str | None
) -> Backfilled:
    if data_type is None:
        msg = f"{table.handle.what} has no rows to tell the type of {quote(column)}: give it"
        raise InvalidInputError(msg)
    return Backfilled(table.columns.add({column: data_type}, branch=branch), 0)


class _Filling:
    """A column on its way into a table."""

    def __init__(
        self, handle: TableHandle, address: TableAddress, compute: _Compute, runner: Runner
    ) -> None:
        self._handle = handle
        self._address = address
        self._compute = compute
        self._runner = runner
        self._begin()

    def _begin(self) -> None:
        self._files = ColumnFiles(self._compute.plan)
        place = self._handle.place_of(self._address.branch)
        self._run = PendingRun(place, new_run_id())
        self._is_given_up = False

    def run(self) -> Backfilled:
        """Compute what is missing and commit, again and again until nobody came between."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._try()
            except ConcurrentModificationError:
                if attempt == _ATTEMPTS - 1:
                    self._run.settle()  # no version has the files
                    raise
                if self._is_given_up:
                    self._run.settle()
                    self._begin()
        raise AssertionError  # unreachable: the loop returns or raises

    def _try(self) -> Backfilled:
        version = self._write()
        if not self._files.files:
            self._run.settle()
            with self._handle.reading(At(version, branch=self._address.branch)) as dataset:
                return Backfilled(Committed.of(dataset), 0)
        landed = self._files.commit(
            self._handle, version, branch=self._address.branch, claim=self._claim
        )
        with suppress(ServiceUnavailableError):  # the version stands; a cleanup finds the rest
            self._run.settle(self._files.files)
        with self._handle.reading(At(landed.version, branch=self._address.branch)) as dataset:
            return Backfilled(Committed.of(dataset), self._files.rows)

    def _claim(self, read_version: int, files: Iterable[str]) -> None:
        del files  # those of whole fragments that are new, and here none is
        try:
            self._run.claim(read_version, self._files.files)
        except ConcurrentModificationError:
            self._is_given_up = True  # by a cleanup, which may have deleted the files
            raise

    def _write(self) -> int:
        """Compute the fragments that are missing; return the version they are of."""
        branch = self._address.branch
        try:
            with self._handle.reading(At(branch=branch)) as dataset:
                version = int(dataset.version)
                missing = self._files.missing(dataset)
            work = self._compute.at(self._address, version, self._run.run)
            with (
                translated(self._handle.what),
                parsing(self._compute.plan.where, self._handle.what),
            ):
                label = f"computing {self._compute.plan.field.name}"
                self._files.add(self._runner.run(work, missing, label=label))
        except BaseException:
            self._run.settle()  # nothing was committed yet, or it lost for sure
            raise
        return version


@dataclass(frozen=True)
class _Compute:
    """Computes the column of a fragment, wherever it is."""

    plan: ColumnPlan
    function: FunctionText | Function
    address: TableAddress | None = None
    version: int = 0
    run: str = ""

    def at(self, address: TableAddress, version: int, run: str) -> _Compute:
        """Return the same for a version of a table."""
        return _Compute(self.plan, self.function, address, version, run)

    def __call__(self, number: int) -> FilledFragment:
        if self.address is None:
            msg = "no table is given"
            raise InvalidInputError(msg)
        handle = self.address.table().handle
        # Opened for this fragment alone: Lance lends a table to one writer at a time.
        dataset = handle.open(At(self.version, branch=self.address.branch))
        filled = fill_fragment(dataset, number, self.plan, _Values(self.function, self.plan.field))
        place = handle.place_of(self.address.branch)
        if filled.new_files:
            PendingRun(place, self.run).note(filled.new_files)
        return filled


class _Values:
    """Calls a function of a user, and makes what it returns an array of the column's type."""

    def __init__(
        self, function: FunctionText | Function, field: pa.Field, *, is_sample: bool = False
    ) -> None:
        self._function = function
        self._field = field
        self._is_sample = is_sample

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        function = self._function
        call = function.load() if isinstance(function, FunctionText) else function
        try:
            returned = call(batch)
        except MooringError:
            raise
        except Exception as exc:
            msg = f"{self._what} failed: {type(exc).__name__}: {exc}"
            raise InvalidInputError(msg) from exc
        found = self._array(returned)
        if len(found) != batch.num_rows:
            msg = f"{self._what} returned {len(found):,} values for {batch.num_rows:,} rows"
            raise InvalidInputError(msg)
        return found

    @property
    def _what(self) -> str:
        function = self._function
        named = str(function) if isinstance(function, FunctionText) else _name_of(function)
        return f"the function {named} of column {quote(self._field.name)}"

    def _array(self, returned: Any) -> pa.Array:  # noqa: ANN401  # whatever a user returns
        kind = None if self._is_sample else self._field.type
        try:
            if isinstance(returned, pa.ChunkedArray):
                returned = returned.combine_chunks()
            if not isinstance(returned, pa.Array):
                returned = pa.array(returned, type=kind)
            return returned if kind is None or returned.type == kind else returned.cast(kind)
        except (pa.ArrowException, TypeError, ValueError) as exc:
            msg = f"{self._what} returned what is no {kind or 'array'}: {exc}"
            raise InvalidInputError(msg) from exc


def _name_of(function: Function) -> str:
    return quote(getattr(function, "__qualname__", type(function).__name__))
