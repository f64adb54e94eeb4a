"""Publishing: a change table becomes, and stays, a Lance table.

Each publication makes one version of the Lance table with all changes up to a position, and the
version says so. Of the next one only buckets that changed since are looked at: the rows of the
changed keys go, and those that they have now come, in the same commit. Whoever is killed and
repeats it finds it done, or not begun.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.changes.changed_rows import ChangedKeys
from mooring.changes.objects import find_objects
from mooring.changes.plan import find_moment
from mooring.changes.publication import choose_publication, save_publication
from mooring.changes.publication_status import find_published
from mooring.changes.publish_indexes import keep_indexes
from mooring.changes.publish_landing import PublishLanding
from mooring.changes.publish_parts import WriteBuckets, divide_buckets
from mooring.changes.publish_plan import Action, Demand, plan_publish, source_of
from mooring.changes.publish_report import PublishReport
from mooring.changes.published_shape import Shape
from mooring.changes.reading import merge_bucket
from mooring.clock import RandomIds
from mooring.errors import (
    ConcurrentModificationError,
    ConflictError,
    InvalidInputError,
    InvalidTableStateError,
    UnsupportedError,
)
from mooring.identifiers import quote
from mooring.jobs.address import CatalogAddress, TableAddress
from mooring.jobs.runner import Threads
from mooring.jobs.writing import PartWritten, WriteMode, write_parts
from mooring.tables.handle import At
from mooring.tables.publications import Overtaken, PublishMark, find_standing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.catalog import Catalog, Name
    from mooring.changes.definition import Definition
    from mooring.changes.publication import Publication, PublishedIndex
    from mooring.changes.publish_plan import PublishPlan
    from mooring.changes.table import ChangeTable
    from mooring.changes.vectors import Vector
    from mooring.jobs.runner import Runner
    from mooring.tables.publications import Standing

__all__ = ["plan_publication", "publish"]

_ATTEMPTS = 10
_TASTE = 16


def publish(
    table: ChangeTable,
    into: Name | None = None,
    *,
    catalog: Catalog | None = None,
    columns: Sequence[str] | None = None,
    vector: Vector | str | None = None,
    indexes: Sequence[PublishedIndex | str] | None = None,
    position: int | None = None,
    full: bool = False,
    force: bool = False,
    runner: Runner | None = None,
    on_done: Callable[[PartWritten], None] | None = None,
) -> PublishReport:
    """Let a Lance table hold what a change table is at a position.

    What is given is kept in the catalog: the next time it need not be said again.

    Args:
        table: The change table.
        into: The Lance table; the one that it was published into before unless given.
        catalog: The Lance table's catalog; the change table's own unless given.
        columns: Columns, each ``a`` or ``a as b``; all unless given.
        vector: A column of vectors: a ``Vector``, or ``v=file.py:function``, ``v=column`` or
            ``v=c1,c2``.
        indexes: Indexes, as ``id:BTREE`` or ``v:IVF_PQ:distance_type=cosine``.
        position: The position; the newest unless given.
        full: Write all rows anew, whatever the Lance table holds.
        force: Go on although somebody else changed the Lance table.
        runner: Who merges and writes; threads of this process unless given.
        on_done: Hears what each worker wrote.

    Raises:
        InvalidInputError: something makes no sense, a function failed, or vectors differ.
        ConflictError: the Lance table is there, and is no publication of this table.
        InvalidTableStateError: somebody else changed the Lance table.
        ConcurrentModificationError: others were faster all the time.
    """
    publication = choose_publication(
        table, into, catalog=catalog, columns=columns, vector=vector, indexes=indexes
    )
    work = _Publishing(table, publication, catalog, position, full=full, force=force)
    return work.run(runner or Threads(), on_done)


def plan_publication(
    table: ChangeTable,
    into: Name | None = None,
    *,
    catalog: Catalog | None = None,
    columns: Sequence[str] | None = None,
    vector: Vector | str | None = None,
    indexes: Sequence[PublishedIndex | str] | None = None,
    position: int | None = None,
    full: bool = False,
    force: bool = False,
) -> PublishPlan:
    """Say what ``publish`` would do."""
    publication = choose_publication(
        table, into, catalog=catalog, columns=columns, vector=vector, indexes=indexes
    )
    return _Publishing(table, publication, catalog, position, full=full, force=force).plan()


class _Publishing:
    """One publication."""

    def __init__(
        self,
        table: ChangeTable,
        publication: Publication,
        catalog: Catalog | None,
        position: int | None,
        *,
        full: bool,
        force: bool,
    ) -> None:
        self._table = table
        self._publication = publication
        self._catalog = catalog or publication.open_catalog(table.catalog)
        self._position = position
        self._demand = Demand(str(publication.target), full, force)
        self._require_free()

    def _require_free(self) -> None:
        """Refuse to publish into what is a change table itself."""
        try:
            view = self._catalog.metastore.begin()
        except UnsupportedError:
            return
        if find_objects(view, self._publication.target) is not None:
            msg = (
                f"{quote(self._demand.into)} is a change table: a change table is published into a"
                " Lance table of another name"
            )
            raise ConflictError(msg)

    def plan(self) -> PublishPlan:
        """Say what is to be done; the position is the same however often it is asked."""
        moment = find_moment(self._table.catalog, self._table.id, position=self._position)
        self._position = moment.position
        return plan_publish(
            moment, self._shape(moment.table.definition), self._look(), self._demand
        )

    def _shape(self, definition: Definition) -> Shape:
        return Shape.of(self._publication, definition, f"change table {quote(str(self._table.id))}")

    def _look(self) -> Standing | None:
        handle = find_published(self._catalog, self._publication)
        return None if handle is None else find_standing(handle)

    def run(self, runner: Runner, on_done: Callable[[PartWritten], None] | None) -> PublishReport:
        """Publish.

        Raises:
            ReadOnlyError: a catalog was opened read-only.
            ConcurrentModificationError: others were faster all the time.
        """
        self._table.catalog.backend.require_writable()  # it keeps the settings
        began = time.monotonic()
        plan = self.plan()
        for _ in range(_ATTEMPTS):
            if plan.action is Action.NOTHING:
                return self._nothing(plan, runner, began)
            try:
                return self._do(plan, runner, on_done, began)
            except Overtaken:
                plan = self._plan_again()
        msg = f"others published into {quote(self._demand.into)} first every time: try again"
        raise ConcurrentModificationError(msg)

    def _plan_again(self) -> PublishPlan:
        """Plan after somebody else was faster, who may have done it."""
        plan = self.plan()
        definition = plan.moment.table.definition
        made = plan.published
        is_other = made and made.mark.settings != self._shape(definition).digest(definition)
        if is_other and not self._demand.full:
            msg = (
                f"{quote(self._demand.into)} was published with other columns or vectors meanwhile:"
                " look at it, and publish again"
            )
            raise ConcurrentModificationError(msg)
        return plan

    def _nothing(self, plan: PublishPlan, runner: Runner, began: float) -> PublishReport:
        """Tell that it is published already, and see to what a killed one left undone."""
        made = plan.published
        assert made is not None  # noqa: S101  # there is nothing to do
        if made.mark.position == plan.moment.position:
            save_publication(self._table, self._publication)
        rows = self._count(plan.standing.newest if plan.standing else made.version)
        return self._report(plan, runner, began, version=made.version, rows=rows)

    def _do(
        self,
        plan: PublishPlan,
        runner: Runner,
        on_done: Callable[[PartWritten], None] | None,
        began: float,
    ) -> PublishReport:
        definition = plan.moment.table.definition
        shape = self._typed(plan, self._shape(definition))
        mark = PublishMark(source_of(plan.moment), plan.moment.position, shape.digest(definition))
        landing = self._landing(plan, shape, mark, runner)
        whole = plan.action in {Action.CREATE, Action.OVERWRITE}
        address = CatalogAddress.of(self._table.catalog)
        written = write_parts(
            self._catalog,
            self._publication.target,
            shape.schema,
            divide_buckets(plan.changes, 4 * runner.workers),
            work=WriteBuckets(address, definition, shape, whole),
            runner=runner,
            mode=WriteMode.OVERWRITE if plan.action is Action.OVERWRITE else WriteMode.APPEND,
            on_done=on_done,
            land=landing,
            notes=mark.properties,
            creates=plan.action is Action.CREATE,
        )
        save_publication(self._table, self._publication)
        return self._report(
            plan,
            runner,
            began,
            version=written.version,
            rows=self._count(written.version),
            written=written.rows,
            deleted=landing.deleted,
        )

    def _landing(
        self, plan: PublishPlan, shape: Shape, mark: PublishMark, runner: Runner
    ) -> PublishLanding:
        definition = plan.moment.table.definition
        keys = None
        if plan.action is Action.UPDATE:
            pieces = tuple(change.fresh for change in plan.changes)
            address = CatalogAddress.of(self._table.catalog)
            keys = ChangedKeys(address, definition, pieces, RandomIds().new_id())
        return PublishLanding(
            plan,
            mark,
            TableAddress(CatalogAddress.of(self._catalog), self._publication.into),
            shape.schema,
            runner,
            keys,
            tuple(shape.published(definition.keys)),
            minds_others=not self._demand.full,
        )

    def _typed(self, plan: PublishPlan, shape: Shape) -> Shape:
        """Find the type of the vectors: that of the Lance table, or that of the first one.

        Raises:
            InvalidTableStateError: the Lance table has other columns than were published.
            InvalidInputError: no row tells how long vectors are.
        """
        if plan.action in {Action.UPDATE, Action.APPEND}:
            with self._catalog.table(self._publication.target).handle.reading() as dataset:
                there = dataset.schema
            if there.names != shape.schema.names:
                msg = (
                    f"table {quote(self._demand.into)} has other columns than were published:"
                    " write all rows anew with --full"
                )
                raise InvalidTableStateError(msg)
            if shape.vector is not None:
                shape = replace(shape, vector_type=there.field(shape.vector.name).type)
            return shape
        if shape.vector is None or shape.vector_type is not None:
            return shape
        return replace(shape, vector_type=self._taste(plan, shape))

    def _taste(self, plan: PublishPlan, shape: Shape) -> pa.DataType:
        store = self._table.catalog.metastore.store
        for change in plan.changes:
            table = plan.moment.table.definition
            rows = merge_bucket(store, change.read.pieces, table, shape.reads).rows
            for start in range(0, rows.num_rows, _TASTE):
                kind = shape.vectors(rows.slice(start, _TASTE)).type
                if not pa.types.is_null(kind):
                    return kind
        name = shape.vector.name if shape.vector else ""
        msg = (
            f"no row of {plan.moment.table.what} tells how long the vectors {quote(name)} are:"
            f" give it, as in {name}[384]=..., or publish when there are rows"
        )
        raise InvalidInputError(msg)

    def _count(self, version: int) -> int:
        with self._catalog.table(self._publication.target).handle.reading(At(version)) as dataset:
            return int(dataset.count_rows())

    def _report(
        self,
        plan: PublishPlan,
        runner: Runner,
        began: float,
        *,
        version: int,
        rows: int,
        written: int = 0,
        deleted: int = 0,
    ) -> PublishReport:
        indexes = keep_indexes(
            self._catalog,
            self._publication.target,
            self._publication.indexes,
            rows=rows,
            runner=runner,
        )
        is_new = plan.action is not Action.NOTHING
        return PublishReport(
            table=str(self._table.id),
            into=self._demand.into,
            catalog=self._publication.catalog,
            action=str(plan.action),
            why=plan.why,
            position=plan.moment.position if is_new else plan.since or 0,
            previous=plan.since,
            version=version,
            rows=rows,
            rows_written=written,
            rows_deleted=deleted,
            buckets=len(plan.changes),
            buckets_in_all=plan.buckets,
            indexes=tuple(indexes),
            seconds=time.monotonic() - began,
            is_new=is_new,
        )
