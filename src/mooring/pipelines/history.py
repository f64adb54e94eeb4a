"""The runs of pipelines as the catalog keeps them.

A run is an object of the metastore, below a namespace that no listing shows and no table can lie
in: it becomes visible with what the run wrote, in one transaction, and no vacuum takes it away.
Beside the runs of a pipeline stands up to where they have read the changes of tables.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

from mooring.errors import NotFoundError, UnreadableError
from mooring.identifiers import quote
from mooring.metastore import (
    CommitState,
    Lifecycle,
    Namespace,
    Partition,
    Stream,
    Table,
    TableVersion,
)
from mooring.metastore.lance_table import HISTORY
from mooring.metastore.locator import Locator
from mooring.pipelines.expectations import Checked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.catalog import Catalog
    from mooring.metastore.transaction import Transaction

__all__ = [
    "DONE",
    "FAILED",
    "InputRecord",
    "OutputRecord",
    "Remembered",
    "RunRecord",
    "StepRecord",
    "find_record",
    "list_runs",
    "read_remembered",
    "remember",
    "require_run",
    "save_record",
]

DONE, FAILED = "done", "failed"
_VERSION = "1"
_STREAM = ("runs", "mooring-pipeline-runs")
_RECORD = "record"
_SOURCE = "source."


class InputRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that a run read.

    Attributes:
        source: What the pipeline calls it.
        kind: ``files``, ``table``, ``change table`` or ``changes``.
        name: The table, or the paths.
        shown: Its version, for people.
        version: Its version.
    """

    source: str
    kind: str
    name: str
    shown: str
    version: dict[str, Any] = {}


class StepRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step of a run."""

    name: str
    kind: str
    needs: tuple[str, ...] = ()


class OutputRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that a run wrote.

    Attributes:
        table: The table.
        change: What the rows did.
        source: The step they are from.
        rows: How many.
        position: The position that they got; none where there were no rows.
        table_id: The table's id.
        token: The id that the files were written under.
        is_created: Whether the run made the table.
        was_kept: Whether it was written by an earlier try of the run.
        published: The Lance table and version that it became.
    """

    table: str
    change: str
    source: str
    rows: int = 0
    position: int | None = None
    table_id: str | None = None
    token: str | None = None
    is_created: bool = False
    was_kept: bool = False
    published: str | None = None


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run of a pipeline.

    Attributes:
        run: Its id.
        pipeline: The pipeline.
        state: ``done`` or ``failed``.
        fingerprint: What makes it the same as another.
        parameters: Their values.
        by: Who ran it.
        started_ms: When it began.
        ended_ms: When it was over.
        attempts: How many times it was tried.
        error: Why it failed.
        inputs: What it read.
        steps: Its steps, in order.
        expectations: What was counted.
        outputs: What it wrote.
        file: The pipeline's file.
        txn_id: The transaction of a run that is done.
    """

    run: str
    pipeline: str
    state: str
    fingerprint: str
    parameters: dict[str, str] = {}
    by: str = ""
    started_ms: int = 0
    ended_ms: int = 0
    attempts: int = 1
    error: str | None = None
    inputs: tuple[InputRecord, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    expectations: tuple[Checked, ...] = ()
    outputs: tuple[OutputRecord, ...] = ()
    file: str | None = None
    txn_id: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether what it wrote is visible."""
        return self.state == DONE

    def read_tables(self) -> set[str]:
        """Return the tables that it read."""
        return {one.name for one in self.inputs if one.kind != "files"}

    def written_tables(self) -> set[str]:
        """Return the tables that it wrote, or would have."""
        return {one.table for one in self.outputs}


class Remembered(msgspec.Struct, frozen=True):
    """Up to where the changes of a table were read."""

    table_id: str
    position: int


_ROOT = Locator.of(HISTORY)


def _stream(pipeline: str) -> Locator:
    return _ROOT.child(pipeline).child(_VERSION).child(*_STREAM)


def _prepare(txn: Transaction, pipeline: str) -> Locator:
    """Make what lies above the runs of a pipeline, where it is not there yet."""
    if txn.find(_ROOT) is None:
        txn.create(_ROOT, Namespace(description="Runs of pipelines"))
    table, stream = _ROOT.child(pipeline), _stream(pipeline)
    if txn.find(table) is None:
        txn.create(table, Table(latest_version=_VERSION, latest_active_version=_VERSION))
        version = TableVersion(version=_VERSION, state=Lifecycle.ACTIVE)
        txn.create(table.child(_VERSION), version)
        made = Stream(stream_id=_STREAM[0], format=_STREAM[1], state=CommitState.COMMITTED)
        txn.create(stream, made)
    return stream


def save_record(txn: Transaction, record: RunRecord) -> None:
    """Write a run, within a transaction; one that was there is replaced."""
    locator = _prepare(txn, record.pipeline).child(record.run)
    value = Partition(
        partition_id=record.run,
        state=CommitState.COMMITTED,
        properties={_RECORD: msgspec.json.encode(record).decode()},
    )
    if txn.find(locator) is None:
        txn.create(locator, value)
    else:
        txn.update(locator, value)


def find_record(txn: Transaction, pipeline: str, run: str) -> RunRecord | None:
    """Find a run of a pipeline; None where there is none."""
    found = txn.find(_stream(pipeline).child(run))
    return None if found is None else _decode(cast("Partition", found.value), run)


def read_remembered(txn: Transaction, pipeline: str) -> dict[str, Remembered]:
    """Return up to where runs have read changes, by source."""
    found = txn.find(_stream(pipeline))
    if found is None:
        return {}
    told = cast("Stream", found.value).properties
    return {
        key.removeprefix(_SOURCE): msgspec.json.decode(value, type=Remembered)
        for key, value in told.items()
        if key.startswith(_SOURCE)
    }


def remember(txn: Transaction, pipeline: str, read: Mapping[str, Remembered]) -> None:
    """Note up to where changes have been read, within a transaction."""
    if not read:
        return
    locator = _prepare(txn, pipeline)
    stream = cast("Stream", txn.get(locator).value)
    told = {f"{_SOURCE}{name}": msgspec.json.encode(one).decode() for name, one in read.items()}
    txn.update(locator, replace(stream, properties={**stream.properties, **told}))


def list_runs(
    catalog: Catalog,
    pipeline: str | None = None,
    *,
    table: str | None = None,
    limit: int | None = None,
) -> list[RunRecord]:
    """Return runs, the newest first.

    Args:
        catalog: A metastore.
        pipeline: Only those of a pipeline.
        table: Only those that read or wrote a table.
        limit: At most so many.

    Raises:
        NotFoundError: no pipeline of this name ever ran.
        UnsupportedError: the catalog is no metastore.
    """
    view = catalog.metastore.begin()
    names = _pipelines(view)
    if pipeline is not None and pipeline not in names:
        known = f": those that did are {', '.join(names)}" if names else ""
        raise NotFoundError(f"no pipeline {quote(pipeline)} ever ran here{known}")
    chosen = names if pipeline is None else [pipeline]
    runs = [record for name in chosen for record in _runs(view, name)]
    if table is not None:
        wanted = str(catalog.identifier(table))
        runs = [one for one in runs if wanted in one.read_tables() | one.written_tables()]
    return sorted(runs, key=lambda one: (one.started_ms, one.run), reverse=True)[:limit]


def require_run(catalog: Catalog, run: str) -> RunRecord:
    """Find a run by its id, or by how it begins where no other does.

    Raises:
        NotFoundError: there is no such run, or there are several.
    """
    found = [one for one in list_runs(catalog) if one.run.startswith(run)]
    exact = [one for one in found if one.run == run]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        raise NotFoundError(f"there is no run {quote(run)}: see mooring runs")
    several = ", ".join(f"{one.run} of {one.pipeline}" for one in found[:5])
    raise NotFoundError(f"several runs are called {quote(run)}: {several}")


def _pipelines(view: Transaction) -> list[str]:
    if view.find(_ROOT) is None:
        return []
    return [found.locator.parts[0] for found in view.children(_ROOT)]


def _runs(view: Transaction, pipeline: str) -> list[RunRecord]:
    return [
        _decode(cast("Partition", found.value), found.id)
        for found in view.children(_stream(pipeline))
    ]


def _decode(value: Partition, run: str) -> RunRecord:
    try:
        return msgspec.json.decode(value.properties.get(_RECORD, ""), type=RunRecord)
    except (msgspec.DecodeError, json.JSONDecodeError) as exc:
        raise UnreadableError(f"the record of run {quote(run)} is damaged: {exc}") from exc
