"""Writing changes: rows become files of deltas, and one transaction makes all of them visible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from mooring.changes.commits import WrittenChange, commit_changes, find_done
from mooring.changes.objects import require_objects
from mooring.changes.parts import Draft, check_columns, require_distinct
from mooring.clock import RandomIds
from mooring.errors import InvalidInputError, MooringError, UnknownOutcomeError
from mooring.identifiers import quote
from mooring.jobs.address import CatalogAddress
from mooring.metastore import DeltaType
from mooring.metastore.layout import data_dir
from mooring.tables.rows import to_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mooring.catalog import Catalog, Name
    from mooring.changes.commits import Landed
    from mooring.changes.parts import PartWritten
    from mooring.identifiers import ObjectId
    from mooring.metastore.transaction import Transaction
    from mooring.store import Store

__all__ = ["Batch", "ChangeRun", "parse_type", "store_of", "write_changes"]


@dataclass(frozen=True)
class Batch:
    """Rows that change a table.

    Attributes:
        table: The table.
        rows: An Arrow table, batch or reader, a data frame, or an iterable of batches or
            dictionaries. Columns that an upsert does not have keep their values.
        type: ``upsert``, ``delete``, ``append`` or ``add``.
    """

    table: Name
    rows: Any
    type: DeltaType | str = DeltaType.APPEND


class ChangeRun:
    """One run that changes tables: files are written, then committed together or deleted.

    Workers write by the drafts that it gives. It is used as a context: what was not committed at
    its end is deleted.
    """

    def __init__(
        self, catalog: Catalog, *, run: str | None = None, token: str | None = None
    ) -> None:
        """Begin a run, or go on with one in another process.

        Args:
            catalog: A metastore.
            run: A name; a run that is repeated changes nothing.
            token: The id that files of a run which goes on were written under.

        Raises:
            UnsupportedError: the catalog is no metastore.
        """
        self._catalog = catalog
        self._metastore = catalog.metastore
        self.run = run
        self.token = token or RandomIds().new_id()
        self._address = CatalogAddress.of(catalog)
        self._changes: list[WrittenChange] = []
        self._is_over = False

    def find_done(self, tables: Iterable[Name]) -> list[Landed] | None:
        """Return what a run of this name did before; None where it has to be done.

        Raises:
            ConflictError: a run of this name has changed some of the tables, and not the others.
            TableNotFoundError: there is no such table.
        """
        if self.run is None:
            return None
        view = self._metastore.begin()
        return find_done(view, [self._catalog.identifier(name) for name in tables], self.run)

    def draft(self, table: Name, type_: DeltaType | str) -> Draft:
        """Return what workers must know to write a change of a table.

        Raises:
            TableNotFoundError: there is no such table.
            InvalidTableStateError: it takes no changes.
        """
        found = require_objects(self._metastore.begin(), self._catalog.identifier(table))
        return Draft(self._address, self.token, found.what, found.definition, parse_type(type_))

    def add(self, table: Name, draft: Draft, parts: Sequence[PartWritten]) -> None:
        """Take in what workers wrote of a change.

        Raises:
            ConflictError: a key comes twice, and no merge order tells which counts.
        """
        require_distinct(parts, draft.what, draft.table.keys)
        files = tuple(file for part in parts for file in part.files)
        identifier: ObjectId = self._catalog.identifier(table)
        self._changes.append(WrittenChange(identifier, draft.table, draft.type, files))

    def commit(
        self,
        *,
        message: str | None = None,
        also: Callable[[Transaction, list[Landed]], None] | None = None,
    ) -> list[Landed]:
        """Commit all that was taken in, at once; a change without rows takes no position.

        Raises:
            ConcurrentModificationError: a table has other columns now.
            UnknownOutcomeError: the store never said whether it happened.
        """
        changes = [one for one in self._changes if one.files or self.run]

        def change_more(txn: Transaction, landed: list[Landed]) -> None:
            try:
                if also is not None:
                    also(txn, landed)
            except BaseException:
                self._is_over = False  # it comes before the commit
                raise

        # Until the commit has said that it did not happen the files may be named: an interrupt
        # says nothing.
        self._is_over = True
        try:
            landed = (
                commit_changes(
                    self._catalog,
                    self.token,
                    changes,
                    run=self.run,
                    message=message,
                    also=change_more,
                )
                if changes or also
                else []
            )
        except UnknownOutcomeError:
            raise
        except MooringError:
            self._is_over = False
            raise
        self._is_over = bool(landed) and landed[0].is_new
        return landed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_over:
            return
        try:
            store_of(self._catalog).delete_prefix(data_dir(self.token))
        except MooringError:
            return  # a vacuum finds it; what went wrong before matters more


def write_changes(
    catalog: Catalog,
    batches: Sequence[Batch],
    *,
    run: str | None = None,
    message: str | None = None,
) -> list[Landed]:
    """Write changes of tables, all of them or none, from this process.

    Args:
        catalog: A metastore.
        batches: The changes; of one table they come in this order.
        run: A name; a run that is repeated changes nothing.
        message: What it is for.

    Raises:
        InvalidInputError: a row has no key, or a table has none to change rows by.
        ConflictError: a key comes twice, and no merge order tells which counts.
        TableNotFoundError: there is no such table.
        TableSchemaValidationError: rows do not fit.
    """
    with ChangeRun(catalog, run=run) as work:
        done = work.find_done([batch.table for batch in batches])
        if done is not None:
            return done
        for number, batch in enumerate(batches):
            draft = work.draft(batch.table, batch.type)
            rows = _read(batch.rows, draft)
            work.add(batch.table, draft, [draft.write(rows, f"{number}")])
        return work.commit(message=message)


def _read(rows: object, draft: Draft) -> pa.RecordBatchReader:
    """Read rows; dictionaries have the table's types, and bring the columns that they name.

    Raises:
        TableSchemaValidationError: they name one that the table does not have.
    """
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return to_reader(rows)
    columns = draft.table.schema
    named = {name for row in rows for name in row} if rows else set(columns.names)
    known = [one for one in columns if one.name in named]
    others = [pa.field(name, pa.null()) for name in sorted(named - set(columns.names))]
    check_columns(pa.schema([*known, *others]), draft.table, draft.type, draft.what)
    return to_reader(rows, pa.schema(known))


def parse_type(type_: DeltaType | str) -> DeltaType:
    """Read what rows do.

    Raises:
        InvalidInputError: it is unknown.
    """
    try:
        return DeltaType(type_)
    except ValueError as exc:
        known = ", ".join(one.value for one in DeltaType)
        raise InvalidInputError(f"rows {known} a table, not {quote(str(type_))}") from exc


def store_of(catalog: Catalog) -> Store:
    """Return the store that a catalog lies in."""
    return catalog.metastore.store
