"""The commit of a run: all outputs, the record of it, and up to where it has read; or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.changes.commits import WrittenChange, add_change
from mooring.changes.objects import create_objects, find_objects, require_objects
from mooring.changes.replacement import add_replacement
from mooring.errors import ConcurrentModificationError
from mooring.identifiers import quote
from mooring.metastore import DeltaType
from mooring.pipelines.history import (
    OutputRecord,
    Remembered,
    find_record,
    read_remembered,
    remember,
    save_record,
)
from mooring.pipelines.inputs import ChangesInput
from mooring.pipelines.notes import fits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.catalog import Catalog
    from mooring.changes.objects import ChangeObjects
    from mooring.changes.transforms import Values
    from mooring.metastore import DataFile, Partition
    from mooring.metastore.transaction import Transaction
    from mooring.pipelines.definition import Output
    from mooring.pipelines.history import RunRecord
    from mooring.pipelines.notes import Finished
    from mooring.pipelines.planning import RunPlan

__all__ = ["AlreadyDone", "FilesGivenUp", "commit_run", "record_failure"]


class AlreadyDone(Exception):  # noqa: N818  # it is no error
    """Somebody else did the same run."""

    def __init__(self, record: RunRecord) -> None:
        """Tell what they did."""
        super().__init__(record.run)
        self.record = record


class FilesGivenUp(Exception):  # noqa: N818  # the run goes on
    """A vacuum took files that were waiting to be committed."""

    def __init__(self, labels: list[str]) -> None:
        """Tell the outputs."""
        super().__init__(", ".join(labels))
        self.labels = labels


def commit_run(
    catalog: Catalog, plan: RunPlan, finished: Mapping[str, Finished], record: RunRecord
) -> RunRecord:
    """Make what a run wrote visible, all of it or nothing, with the record of it.

    Raises:
        AlreadyDone: a run of the same id is done.
        FilesGivenUp: a vacuum came first.
        ConcurrentModificationError: a table is not what it was, or another run of the pipeline
            has read the same changes.
        UnknownOutcomeError: the store never said whether it happened.
    """

    def work(txn: Transaction) -> RunRecord:
        known = find_record(txn, plan.pipeline.name, plan.run)
        if known is not None and known.is_done:
            raise AlreadyDone(known)
        _require_unread(txn, plan)
        _depend(txn, finished)
        outputs = tuple(
            _land(catalog, txn, one.output, finished[one.output.label]) for one in plan.outputs
        )
        done = replace(record, outputs=outputs, txn_id=txn.id, attempts=_attempts(known))
        save_record(txn, done)
        remember(txn, plan.pipeline.name, _read_until(plan))
        return done

    message = f"run {plan.run} of pipeline {plan.pipeline.name}"
    return catalog.metastore.run(work, message=message)


def record_failure(catalog: Catalog, record: RunRecord) -> None:
    """Note a run that failed; one that somebody else has done meanwhile stays done."""

    def work(txn: Transaction) -> None:
        known = find_record(txn, record.pipeline, record.run)
        if known is None or not known.is_done:
            save_record(txn, replace(record, attempts=_attempts(known)))

    catalog.metastore.run(work, message=f"run {record.run} of {record.pipeline} failed")


def _attempts(known: RunRecord | None) -> int:
    return 1 if known is None else known.attempts + 1


def _depend(txn: Transaction, finished: Mapping[str, Finished]) -> None:
    lost = [one.label for one in finished.values() if txn.timeline.is_aborted(one.token)]
    if lost:
        raise FilesGivenUp(lost)
    for one in finished.values():
        txn.depends_on(one.token)


def _require_unread(txn: Transaction, plan: RunPlan) -> None:
    """Refuse where another run has read the same changes meanwhile: they count once."""
    now = read_remembered(txn, plan.pipeline.name)
    for name, one in plan.inputs.items():
        if isinstance(one, ChangesInput) and now.get(name) != plan.remembered.get(name):
            msg = (
                f"another run of pipeline {quote(plan.pipeline.name)} has read changes of"
                f" {quote(one.table)} meanwhile: run it again for what is left"
            )
            raise ConcurrentModificationError(msg)


def _read_until(plan: RunPlan) -> dict[str, Remembered]:
    return {
        name: Remembered(one.table_id, one.position)
        for name, one in plan.inputs.items()
        if isinstance(one, ChangesInput)
    }


def _land(catalog: Catalog, txn: Transaction, output: Output, written: Finished) -> OutputRecord:
    table = catalog.identifier(output.table)
    found = find_objects(txn, table)
    is_created = found is None and written.table_id is None
    if is_created:
        found = create_objects(txn, table, written.definition, {})
    now = found or require_objects(txn, table)
    if not fits(now, written):
        msg = f"{now.what} was made or changed while the run wrote to it: run the pipeline again"
        raise ConcurrentModificationError(msg)
    position = _change(txn, now, output.change, written)
    return OutputRecord(
        table=str(table),
        change=output.change,
        source=output.source,
        rows=written.rows,
        position=position,
        table_id=now.lasting_id,
        token=written.token,
        is_created=is_created,
        was_kept=written.was_kept,
    )


def _change(txn: Transaction, table: ChangeObjects, change: str, written: Finished) -> int | None:
    """Let rows change a table; none change nothing, unless they replace others."""
    if change == "replace":
        files: dict[Values, list[DataFile]] = {one: [] for one in _partitions(txn, table)}
        for one in written.files:
            files.setdefault(one.values, []).append(one.file)
        return add_replacement(txn, table, files, rows=written.rows).position
    if not written.files:
        return None
    given = WrittenChange(table.id, written.definition, DeltaType(change), written.files)
    return add_change(txn, given).position


def _partitions(txn: Transaction, table: ChangeObjects) -> set[Values]:
    """Return the values of all partitions; one that comes meanwhile is in the way of the commit."""
    return {
        tuple(cast("Partition", child.value).values)
        for stream in (table.changes, table.bases)
        for child in txn.children(stream)
    }
