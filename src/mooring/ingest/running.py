"""One ingestion: look at source and table, have the parts written, commit, and tell about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.errors import (
    InvalidInputError,
    MooringError,
    NotLanceTableError,
    TableNotFoundError,
    UnknownOutcomeError,
)
from mooring.identifiers import quote
from mooring.ingest.evolving import evolve
from mooring.ingest.fitting import compare, require_fit
from mooring.ingest.landing import (
    AppendLanding,
    DeleteLanding,
    UpsertLanding,
    note_upsert_key,
    require_same_key,
)
from mooring.ingest.matching import LocalMatcher
from mooring.ingest.rejects import RejectRules, too_many, write_rejects
from mooring.ingest.report import IngestReport, Progress
from mooring.ingest.request import IngestMode, OnConflict, Request
from mooring.ingest.source import FileSource
from mooring.ingest.task import Ingested, WriteTask
from mooring.ingest.written_parts import WrittenParts
from mooring.jobs.address import CatalogAddress, TableAddress
from mooring.jobs.runner import Threads
from mooring.jobs.writing import WriteMode, write_parts
from mooring.tables.draft import draft_for
from mooring.tables.failures import translated
from mooring.tables.key_types import require_key_types
from mooring.tables.keys import forget_key
from mooring.tables.pending import PendingRun, new_run_id
from mooring.tables.place import open_place
from mooring.tables.runs import RunMark, find_done
from mooring.tables.upserts import KeyFiles
from mooring.tables.versions import newest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from enum import StrEnum

    from mooring.catalog import Catalog, Name
    from mooring.identifiers import ObjectId
    from mooring.ingest.evolving import Evolution
    from mooring.ingest.fitting import Misfit
    from mooring.ingest.matching import Matcher
    from mooring.ingest.source import Plan, Source
    from mooring.jobs.runner import Runner
    from mooring.table import Table
    from mooring.tables.draft import Draft
    from mooring.tables.fragments import FragmentMetadata

__all__ = ["ingest"]

_SHOWN = 5


def ingest(
    catalog: Catalog,
    source: str | Sequence[str] | Source,
    into: Name,
    *,
    mode: str = "append",
    key: str | Sequence[str] = (),
    kind: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    evolve: bool = False,
    rejects: str | None = None,
    max_rejects: int | None = None,
    on_conflict: str = "fail",
    run_id: str | None = None,
    runner: Runner | None = None,
    matcher: Matcher | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> IngestReport:
    """Bring rows from elsewhere into a table, by one commit.

    A failure leaves the table and its directory as they were.

    Args:
        catalog: The catalog.
        source: Files, directories, patterns or URIs, or a source that was found already.
        into: The table; to append, overwrite or upsert it may be new.
        mode: ``append``, ``overwrite``, ``upsert`` or ``delete``, the last two by key.
        key: The columns by which rows are the same.
        kind: The format of the source; told by its suffix unless given.
        storage_options: Those of the service that the source lies in; the catalog's unless given.
        evolve: Whether the table's columns may be added to and widened.
        rejects: A file for records that do not fit, which are left out; any number of them.
        max_rejects: At most so many.
        on_conflict: What becomes of appended rows whose key is there: ``fail`` or ``reject``.
        run_id: A name by which the run is known again: it counts once.
        runner: Who does the parts; threads of this process unless given.
        matcher: Compares keys; this process unless given.
        on_progress: Hears how far it has come.

    Raises:
        NotFoundError: a source is not there.
        TableNotFoundError: there is no table to delete from.
        TableSchemaValidationError: the source does not fit the table.
        InvalidInputError: a record does not fit, a key is null or comes twice, or an argument
            makes no sense.
        ConflictError: keys of appended rows are in the table.
        ConcurrentModificationError: others were faster all the time.
    """
    asked = Request(
        IngestMode(_choose(mode, IngestMode, "mode")),
        (key,) if isinstance(key, str) else tuple(key),
        RejectRules.of(rejects, max_rejects),
        OnConflict(_choose(on_conflict, OnConflict, "answer to conflicts")),
        None if run_id is None else RunMark(run_id),
        evolve,
    )
    asked.check()
    if storage_options is None:
        storage_options = dict(catalog.options.get("storage_options") or {})
    found = _find(source, kind, storage_options)
    name = catalog.identifier(into)
    run = _Run(
        catalog,
        name,
        found,
        asked,
        runner=runner or Threads(),
        matcher=matcher,
        on_progress=on_progress,
    )
    with translated(f"table {quote(str(name))}"):
        return run.run()


def _find(
    source: str | Sequence[str] | Source, kind: str | None, storage_options: Mapping[str, str]
) -> Source:
    if isinstance(source, Sequence):  # a string is one, too
        return FileSource.find(source, kind=kind, storage_options=storage_options)
    return source


def _choose(text: str, among: type[StrEnum], what: str) -> str:
    if text not in list(among):
        msg = f"{quote(text)} is no {what}: use one of {', '.join(among)}"
        raise InvalidInputError(msg)
    return text


class _Run:
    """One ingestion."""

    def __init__(
        self,
        catalog: Catalog,
        name: ObjectId,
        source: Source,
        asked: Request,
        *,
        runner: Runner,
        matcher: Matcher | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self._catalog = catalog
        self._name = name
        self._what = f"table {quote(str(name))}"
        self._source = source
        self._asked = asked
        self._runner = runner
        self._matcher = matcher or LocalMatcher()
        self._on_progress = on_progress
        self._address = TableAddress(CatalogAddress.of(catalog), tuple(name.names))
        self._begun_s = time.monotonic()
        self._rows = self._bytes = 0
        self._noted: Draft | None = None
        self._written = WrittenParts()

    def run(self) -> IngestReport:
        self._catalog.backend.require_writable()
        table, schema = self._table()
        done = find_done(table.handle, self._asked.mark) if table and self._asked.mark else None
        if done is not None:
            return self._report(done.version, is_new=False)
        self._plan: Plan = self._source.plan(self._runner, schema.names if schema else ())
        if self._asked.mode is IngestMode.DELETE:
            return self._delete(table, schema)
        if table is not None and self._asked.mode is IngestMode.UPSERT:
            require_same_key(table.handle.place, self._asked.key)
        target, evolution = self._target(table, schema)
        try:
            return self._write(target, evolution)
        except UnknownOutcomeError:
            raise
        except BaseException as exc:
            self._take_back(evolution, exc)
            raise

    def _table(self) -> tuple[Table | None, pa.Schema | None]:
        """Find the table and its schema, as far as they are there."""
        try:
            table = self._catalog.table(self._name)
            return table, table.handle.open().schema
        except NotLanceTableError:
            raise  # the name is taken: it cannot be made
        except TableNotFoundError:
            return None, None

    # -- the schema ----------------------------------------------------------------------------

    def _target(
        self, table: Table | None, schema: pa.Schema | None
    ) -> tuple[pa.Schema, Evolution | None]:
        """Decide the schema of what is written; evolve the table if it may and must be."""
        asked = self._asked
        is_replaced = asked.mode is IngestMode.OVERWRITE and asked.evolve
        if table is None or schema is None or is_replaced:
            target, evolution = self._plan.natural(), None
        else:
            target, evolution = self._evolved(table, schema)
        if asked.by_key:
            self._require_key_columns()
            require_key_types(target, asked.key, self._what)
        return target, evolution

    def _evolved(self, table: Table, schema: pa.Schema) -> tuple[pa.Schema, Evolution | None]:
        if not self._asked.evolve:
            self._require_fit(schema)
            return schema, None
        found = self._misfits(schema, evolve=True)
        cures = {misfit.name: misfit for misfit in found if misfit.is_curable and misfit.source}
        # What cannot be cured is refused before anything is changed.
        require_fit([one for one in found if one.name not in cures], self._label, self._what)
        if not cures:
            self._require_fit(schema)
            return schema, None
        evolution = evolve(table.handle, list(cures.values()))
        target = table.handle.open().schema
        try:
            self._require_fit(target)
        except BaseException as exc:
            self._take_back(evolution, exc)
            raise
        return target, evolution

    @property
    def _label(self) -> str:
        return self._plan.pieces[0].label if len(self._plan.pieces) == 1 else "the source"

    def _misfits(self, schema: pa.Schema, *, evolve: bool) -> list[Misfit]:
        found: dict[str, Misfit] = {}
        for piece in self._plan.pieces:
            wide = evolve and piece.is_typed
            for misfit in compare(piece.read_for(schema), piece.natural, schema, evolve=wide):
                found.setdefault(misfit.name, misfit)
        whole = self._plan.natural() if evolve else None
        if whole is None:
            return list(found.values())
        widest = compare(whole, whole, schema, evolve=True)
        return [
            next((one for one in widest if one.name == misfit.name and one.source), misfit)
            for misfit in found.values()
        ]

    def _require_fit(self, schema: pa.Schema) -> None:
        for piece in self._plan.pieces:
            require_fit(
                compare(piece.read_for(schema), piece.natural, schema), piece.label, self._what
            )

    def _require_key_columns(self) -> None:
        for piece in self._plan.pieces:
            for name in self._asked.key:
                if name not in piece.schema.names:
                    msg = f"{piece.label} lacks the key column {quote(name)}"
                    raise InvalidInputError(msg)

    def _take_back(self, evolution: Evolution | None, failure: BaseException) -> None:
        """Undo what was done to the table's columns, or say that it stays."""
        if evolution is None or evolution.undo():
            return
        changes = ", ".join(evolution.changes)
        if isinstance(failure, MooringError):
            msg = f"{failure}; others changed {self._what} meanwhile, so this stays: {changes}"
            raise type(failure)(msg) from failure

    # -- writing -------------------------------------------------------------------------------

    def _write(self, target: pa.Schema, evolution: Evolution | None) -> IngestReport:
        asked, plan = self._asked, self._plan
        task = WriteTask(target, self._source.options, asked.rules.limit)
        landing = self._landing(target, task)
        is_overwrite = asked.mode is IngestMode.OVERWRITE
        try:
            written = write_parts(
                self._catalog,
                self._name,
                target,
                plan.parts,
                work=task,
                runner=plan.runner,
                mode=WriteMode.OVERWRITE if is_overwrite else WriteMode.APPEND,
                mark=asked.mark,
                on_done=self._tell,
                check=self._check,
                land=landing,
            )
        except UnknownOutcomeError:
            raise
        except BaseException:
            self._forget_key()
            raise
        if not written.is_new:
            return self._report(written.version, is_new=False)
        rows = sum(part.rows for part in self._written.parts)
        updated = landing.updated if isinstance(landing, UpsertLanding) else 0
        return self._report(
            written.version,
            inserted=rows - updated,
            updated=updated,
            changes=evolution.changes if evolution else (),
        )

    def _landing(self, target: pa.Schema, task: WriteTask) -> AppendLanding | UpsertLanding:
        asked = self._asked
        common = (self._address, self._matcher, asked.mark)
        if asked.mode is IngestMode.UPSERT:
            return UpsertLanding(*common, key=asked.key)
        may_reject = asked.on_conflict is OnConflict.REJECT
        if may_reject and not self._plan.can_repeat:
            msg = "rows of a query cannot be rejected one by one: use --on-conflict fail"
            raise InvalidInputError(msg)
        return AppendLanding(
            *common,
            schema=target if asked.mode is IngestMode.OVERWRITE else None,
            leave_out=partial(self._leave_out, task) if may_reject else None,
        )

    def _tell(self, part: Ingested) -> None:
        self._rows += part.rows
        self._bytes += part.size_bytes
        if self._on_progress is not None:
            self._on_progress(Progress(self._rows, self._bytes, self._plan.size_bytes))

    def _check(self, draft: Draft, parts: Sequence[Ingested]) -> None:
        """Before a commit: see to rejected records, and to the key of an upsert."""
        self._written = WrittenParts(list(parts))
        self._keep_rejects()
        if self._asked.mode is not IngestMode.UPSERT:
            return
        fragments = self._written.fragments()
        if fragments:
            self._require_keys(KeyFiles.of(draft, fragments, self._asked.key), repeats=True)
        self._noted = draft
        note_upsert_key(open_place(draft.location, draft.options), self._asked.key)

    def _keep_rejects(self) -> None:
        rules, rejects = self._asked.rules, self._written.rejects()
        if rules.limit is not None and len(rejects) > rules.limit:
            raise too_many(rejects, rules.limit)
        if rules.path is not None:
            write_rejects(rules.path, rejects)

    def _require_keys(self, keys: KeyFiles, *, repeats: bool) -> None:
        """Refuse rows that have no key, or one that comes twice."""
        columns = ", ".join(keys.columns)
        nulls = self._matcher.nulls(keys)
        if len(nulls):
            msg = (
                f"{len(nulls):,} rows of the source have no value in their key ({columns}), the"
                f" first is row {int(nulls[0]) + 1}: {keys.show(nulls[:1].tolist())}"
            )
            raise InvalidInputError(msg)
        twice = self._matcher.repeats(keys) if repeats else nulls
        if len(twice):
            first = sorted(twice.tolist())[:_SHOWN]
            more = "" if len(first) == len(twice) else f" and {len(twice) - len(first):,} more"
            msg = (
                f"keys ({columns}) come more than once in the source: {keys.show(first)}{more};"
                " keep one row of each"
            )
            raise InvalidInputError(msg)

    def _forget_key(self) -> None:
        """Leave no note in the directory of a table that did not come about."""
        if self._noted is None:
            return
        place = open_place(self._noted.location, self._noted.options)
        if not newest_version(place.store, place.directory):
            forget_key(place)

    def _leave_out(
        self, task: WriteTask, draft: Draft, wrong: Mapping[int, str]
    ) -> list[FragmentMetadata]:
        """Write the parts again that have rows which must not get in."""
        left_out = self._written.leave_out(wrong)
        numbers = sorted(left_out)
        again = [(self._plan.parts[number], self._written.left_out[number]) for number in numbers]
        results = self._plan.runner.run(partial(_write_without, task, draft), again)
        for number, result in zip(numbers, results, strict=True):
            self._written.parts[number] = result
        self._keep_rejects()
        return self._written.fragments()

    # -- deleting --------------------------------------------------------------------------------

    def _delete(self, table: Table | None, schema: pa.Schema | None) -> IngestReport:
        if table is None or schema is None:
            msg = f"there is no {self._what} to delete from"
            raise TableNotFoundError(msg)
        asked = self._asked
        require_key_types(schema, asked.key, self._what)
        self._require_key_columns()
        nullable = True
        target = pa.schema([schema.field(name).with_nullable(nullable) for name in asked.key])
        for piece in self._plan.pieces:
            keys = piece.read_for(target)
            keys = pa.schema([keys.field(name) for name in asked.key])
            natural = pa.schema([piece.natural.field(name) for name in asked.key])
            require_fit(
                [one for one in compare(keys, natural, target) if one.source],
                piece.label,
                self._what,
            )
        task = WriteTask(target, self._source.options, asked.rules.limit, only=True)
        handle = table.handle
        draft = draft_for(handle.location, handle.options, new_run_id())
        landing = DeleteLanding(self._address, self._matcher, asked.mark, key=asked.key)
        try:
            parts = self._plan.runner.run(
                partial(task, draft), self._plan.parts, label="reading keys", on_done=self._tell
            )
            self._written = WrittenParts(parts)
            self._keep_rejects()
            fragments = self._written.fragments()
            if fragments:
                self._require_keys(KeyFiles.of(draft, fragments, asked.key), repeats=False)
            landed = landing(handle, draft, fragments)
        finally:
            # The keys were written to be compared, and are in no version.
            PendingRun(handle.place, draft.run).settle()
        return self._report(landed.version, is_new=landed.is_new, deleted=landing.deleted)

    # -- telling ---------------------------------------------------------------------------------

    def _report(
        self,
        version: int,
        *,
        is_new: bool = True,
        inserted: int = 0,
        updated: int = 0,
        deleted: int = 0,
        changes: tuple[str, ...] = (),
    ) -> IngestReport:
        parts = self._written.parts if is_new else []
        return IngestReport(
            table=str(self._name),
            mode=self._asked.mode,
            version=version,
            is_new=is_new,
            rows_in=sum(part.rows_in for part in parts),
            rows_written=inserted + updated,
            rows_inserted=inserted,
            rows_updated=updated,
            rows_deleted=deleted,
            rows_rejected=sum(len(part.rejects) for part in parts),
            bytes_read=sum(part.size_bytes for part in parts),
            files=self._source.files if is_new else 0,
            seconds=round(time.monotonic() - self._begun_s, 3),
            engine="threads" if isinstance(self._runner, Threads) else "spark",
            changes=changes,
        )


def _write_without(
    task: WriteTask, draft: Draft, again: tuple[object, Mapping[int, str]]
) -> Ingested:
    part, left_out = again
    return task.write(draft, part, left_out)  # type: ignore[arg-type]  # a readable
