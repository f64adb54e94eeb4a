"""A change table as people use it from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from msgspec.structs import replace

from mooring.changes.commits import Landed
from mooring.changes.compaction_policy import CompactionPolicy
from mooring.changes.definition import VERSION, Definition
from mooring.changes.objects import create_objects, find_objects, require_objects
from mooring.changes.plan import divide, find_moment, plan_read
from mooring.changes.reading import ReadTask
from mooring.changes.writing import Batch, write_changes
from mooring.errors import ConflictError, TableColumnNotFoundError
from mooring.identifiers import quote
from mooring.jobs.address import CatalogAddress
from mooring.jobs.runner import Threads
from mooring.metastore import DeltaType
from mooring.metastore.ground import live_namespaces
from mooring.metastore.lance_table import check_new_table
from mooring.metastore.trash import require_namespace
from mooring.namespace.presence import already_there

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mooring.catalog import Catalog, Name
    from mooring.changes.compaction import CompactionReport
    from mooring.changes.plan import Moment, ReadPlan
    from mooring.changes.predicates import Predicate
    from mooring.changes.rounds import Round
    from mooring.changes.transforms import Values
    from mooring.identifiers import ObjectId
    from mooring.jobs.runner import Runner
    from mooring.metastore import PartitionField, SortField, Table
    from mooring.metastore.transaction import Transaction

__all__ = ["ChangeTable", "create_change_table", "list_change_tables"]


def create_change_table(
    catalog: Catalog,
    name: Name,
    schema: pa.Schema,
    *,
    keys: Sequence[str] = (),
    order: str | None = None,
    partition_by: Iterable[str | PartitionField] = (),
    sort_by: Iterable[str | SortField] = (),
    buckets: int | None = None,
    properties: Mapping[str, str] | None = None,
) -> ChangeTable:
    """Make a change table in a metastore.

    Args:
        catalog: The metastore.
        name: The table's name; its namespace must be there.
        schema: Its columns.
        keys: Those by which rows are merged; without any, rows are only added.
        order: The column whose greater value wins; without one the later change does.
        partition_by: Columns or transforms of them: ``month(at)``, ``bucket(16, id)``.
        sort_by: Columns by which rows of a file are sorted; ``-at`` sorts downwards.
        buckets: Into how many parts a partition is divided by the hash of the key; 8 unless given.
        properties: A description, an owner.

    Raises:
        InvalidInputError: something does not fit the schema.
        TableAlreadyExistsError: the name is taken.
        NamespaceNotFoundError: the namespace is not there.
        UnsupportedError: the catalog is no metastore.
    """
    metastore, table = catalog.metastore, catalog.identifier(name)
    check_new_table(table)
    definition = Definition.make(
        schema, keys=keys, order=order, partition_by=partition_by, sort_by=sort_by, buckets=buckets
    )

    CompactionPolicy.of(properties or {})  # a limit that is no number is told now

    def work(txn: Transaction) -> None:
        require_namespace(txn, table.parent)
        try:
            create_objects(txn, table, definition, properties or {})
        except ConflictError as exc:
            raise already_there(table) from exc

    metastore.run(work, message=f"create change table {table}")
    return ChangeTable(catalog, table)


class ChangeTable:
    """A table that is changed by deltas, and read as they come to."""

    def __init__(self, catalog: Catalog, name: Name) -> None:
        """Use a table.

        Raises:
            TableNotFoundError: there is no such table.
            InvalidTableStateError: it takes no changes.
        """
        self.catalog = catalog
        self.id: ObjectId = catalog.identifier(name)
        require_objects(catalog.metastore.begin(), self.id)

    def __repr__(self) -> str:
        """Show its name."""
        return f"ChangeTable('{self.id}')"

    # -- what it is ------------------------------------------------------------------------------

    @property
    def definition(self) -> Definition:
        """What it is now."""
        return require_objects(self.catalog.metastore.begin(), self.id).definition

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return self.definition.schema.remove_metadata()

    @property
    def position(self) -> int:
        """The newest position; 0 before the first change."""
        return require_objects(self.catalog.metastore.begin(), self.id).position

    # -- changing --------------------------------------------------------------------------------

    def append(self, rows: object, *, run: str | None = None, message: str | None = None) -> Landed:
        """Add rows, whatever keys they have.

        Args:
            rows: The rows.
            run: A name; a run that is repeated changes nothing.
            message: What it is for.
        """
        return self._write(rows, DeltaType.APPEND, run, message)

    def upsert(self, rows: object, *, run: str | None = None, message: str | None = None) -> Landed:
        """Insert rows, or change those of their keys; columns that are missing keep their values.

        Raises:
            ConflictError: a key comes twice, and no merge order tells which counts.
        """
        return self._write(rows, DeltaType.UPSERT, run, message)

    def delete(self, keys: object, *, run: str | None = None, message: str | None = None) -> Landed:
        """Delete the rows of some keys."""
        return self._write(keys, DeltaType.DELETE, run, message)

    def truncate(
        self,
        partitions: Iterable[Values] | None = None,
        *,
        run: str | None = None,
        message: str | None = None,
    ) -> Landed:
        """Remove all rows, or those of some partitions; older positions keep them.

        Raises:
            InvalidInputError: there is no such partition.
        """
        from mooring.changes.replacement import truncate

        return truncate(self, partitions, run=run, message=message)

    def replace(
        self,
        rows: object,
        *,
        partitions: Iterable[Values] | None = None,
        only_touched: bool = False,
        run: str | None = None,
        message: str | None = None,
    ) -> Landed:
        """Put rows in the place of all, of some partitions, or of those that they fall into.

        Raises:
            InvalidInputError: rows fall into a partition that is not to be replaced.
            ConflictError: a key comes twice, and no merge order tells which counts.
        """
        from mooring.changes.replacement import replace as replace_rows

        return replace_rows(
            self,
            rows,
            partitions=partitions,
            only_touched=only_touched,
            run=run,
            message=message,
        )

    def delete_where(
        self,
        where: str | Predicate,
        *,
        runner: Runner | None = None,
        run: str | None = None,
        message: str | None = None,
    ) -> Landed:
        """Delete the rows that a condition is true for.

        Raises:
            InvalidInputError: the condition cannot be read.
            ConcurrentModificationError: the rows that it is about change all the time.
        """
        from mooring.changes.removal import delete_where

        return delete_where(self, where, runner=runner, run=run, message=message)

    def _write(
        self, rows: object, type_: DeltaType, run: str | None, message: str | None
    ) -> Landed:
        batch = Batch(self.id, rows, type_)
        landed = write_changes(self.catalog, [batch], run=run, message=message)
        return landed[0] if landed else Landed(self.id, self.position, 0, is_new=False)

    def add_columns(
        self, fields: Iterable[pa.Field], defaults: Mapping[str, Any] | None = None
    ) -> None:
        """Add columns; rows that are there have their defaults, or null."""
        self._redefine(lambda known: known.add_columns(list(fields), defaults or {}))

    def drop_columns(self, names: Sequence[str]) -> None:
        """Drop columns; files keep them, readers do not see them."""
        self._redefine(lambda known: known.drop_columns(names))

    def rename_column(self, name: str, new: str) -> None:
        """Give a column another name."""
        self._redefine(lambda known: known.rename_column(name, new))

    def widen_column(self, name: str, kind: pa.DataType) -> None:
        """Give a column a wider type."""
        self._redefine(lambda known: known.widen_column(name, kind))

    def alter(
        self,
        *,
        rename: Mapping[str, str] | None = None,
        widen: Mapping[str, pa.DataType] | None = None,
        add: Iterable[pa.Field] = (),
        defaults: Mapping[str, Any] | None = None,
        drop: Sequence[str] = (),
    ) -> None:
        """Change several columns at once: all of it, or nothing.

        Args:
            rename: New names by old ones; what follows calls columns by their new names.
            widen: Wider types.
            add: New columns.
            defaults: What rows that are there have in these.
            drop: Columns that go.

        Raises:
            InvalidInputError: some of it does not fit.
        """
        fields = list(add)

        def change(known: Definition) -> Definition:
            for old, new in (rename or {}).items():
                known = known.rename_column(old, new)
            for column, kind in (widen or {}).items():
                known = known.widen_column(column, kind)
            if fields:
                known = known.add_columns(fields, defaults or {})
            return known.drop_columns(drop) if drop else known

        self._redefine(change)

    def _redefine(self, change: Any) -> None:  # noqa: ANN401  # from a definition to the next
        def work(txn: Transaction) -> None:
            found = require_objects(txn, self.id)
            locator = found.locator.child(VERSION)
            known = txn.get(locator).value
            version = change(found.definition).to_version()
            txn.update(locator, replace(version, kept=known.kept))

        self.catalog.metastore.run(work, message=f"change columns of {self.id}")

    # -- compaction ------------------------------------------------------------------------------

    def compact(
        self,
        policy: CompactionPolicy | None = None,
        *,
        runner: Runner | None = None,
        on_done: Callable[[Round], None] | None = None,
    ) -> CompactionReport:
        """Write down what changes come to, for the partitions for which it is due.

        Args:
            policy: When and how; that of the table unless given.
            runner: Rewrites buckets; threads of this process unless given.
            on_done: Hears each round once it is committed.
        """
        from mooring.changes.compaction import compact

        return compact(self, policy, runner=runner, on_done=on_done)

    def rounds(self) -> list[Round]:
        """Return the rounds of compaction that are still known, the newest first."""
        from mooring.changes.rounds import rounds

        return rounds(self)

    # -- reading ---------------------------------------------------------------------------------

    def at(
        self,
        position: int | None = None,
        *,
        txn_id: str | None = None,
        time_ms: int | None = None,
    ) -> Moment:
        """Find the table at a position, after a transaction or at a time; now unless given."""
        return find_moment(self.catalog, self.id, position=position, txn_id=txn_id, time_ms=time_ms)

    def plan(self, moment: Moment | None = None, where: str | Predicate | None = None) -> ReadPlan:
        """Plan to read it."""
        found = moment or self.at()
        return plan_read(found, _parse(where, found.table.definition))

    def tasks(
        self,
        parts: int,
        *,
        moment: Moment | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
    ) -> list[ReadTask]:
        """Divide a read into tasks for workers.

        Raises:
            TableColumnNotFoundError: there is no such column.
        """
        plan = self.plan(moment, where)
        definition = plan.definition
        wanted = tuple(columns if columns is not None else definition.schema.names)
        for name in wanted:
            if name not in definition.schema.names:
                known = ", ".join(definition.schema.names)
                msg = f"{plan.moment.table.what} has no column {quote(name)}: it has {known}"
                raise TableColumnNotFoundError(msg)
        address = CatalogAddress.of(self.catalog)
        condition = _parse(where, definition)
        return [
            ReadTask(address, definition, tuple(part), wanted, condition)
            for part in divide(plan.buckets, parts)
        ]

    def to_batches(
        self,
        *,
        moment: Moment | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        runner: Runner | None = None,
    ) -> Iterator[pa.Table]:
        """Give the rows, some at a time."""
        chosen = runner or Threads()
        tasks = self.tasks(4 * chosen.workers, moment=moment, columns=columns, where=where)
        yield from (rows for part in chosen.run(_read, tasks, label="reading") for rows in part)

    def to_arrow(
        self,
        *,
        position: int | None = None,
        txn_id: str | None = None,
        time_ms: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        runner: Runner | None = None,
    ) -> pa.Table:
        """Read the table as it is at a position, after a transaction or at a time.

        Args:
            position: The position; the newest unless something else is given.
            txn_id: The transaction.
            time_ms: The time, in milliseconds since 1970.
            columns: The columns; all unless given.
            where: Which rows; all unless given.
            runner: Who reads; threads of this process unless given.
        """
        moment = self.at(position, txn_id=txn_id, time_ms=time_ms)
        found = list(self.to_batches(moment=moment, columns=columns, where=where, runner=runner))
        # An upsert that lacks a column can make a row without it, whatever the column demands.
        schema = pa.schema([one.with_nullable(True) for one in moment.table.definition.schema])  # noqa: FBT003
        schema = schema.remove_metadata()
        wanted = schema if columns is None else pa.schema([schema.field(one) for one in columns])
        return pa.concat_tables([wanted.empty_table(), *(one.cast(wanted) for one in found)])

    def count(self, where: str | Predicate | None = None) -> int:
        """Count the rows."""
        definition = self.definition
        names = list(definition.keys) or definition.schema.names[:1]
        return sum(one.num_rows for one in self.to_batches(columns=names, where=where))


def _read(task: ReadTask) -> list[pa.Table]:
    return list(task.read())


def _parse(where: str | Predicate | None, definition: Definition) -> Predicate | None:
    if where is None or not isinstance(where, str):
        return where
    from mooring.changes.predicates import parse_predicate

    return parse_predicate(where, definition)


def list_change_tables(catalog: Catalog, namespace: Name | None = None) -> list[ObjectId]:
    """Return the change tables of a namespace, or of all, sorted."""
    view = catalog.metastore.begin()
    around = (
        [catalog.identifier(namespace)]
        if namespace is not None
        else [catalog.identifier([one.locator.parts[0]]) for one in live_namespaces(view)]
    )
    children = [
        above.child(child.locator.parts[0])
        for above in around
        for child in view.children(require_namespace(view, above).locator)
        if cast("Table", child.value).dropped is None
    ]
    return sorted(one for one in children if find_objects(view, one) is not None)
