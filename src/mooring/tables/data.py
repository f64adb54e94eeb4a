"""Lance tables as files of a catalog: staged data and strict commits."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, cast

import lance
from lance.fragment import write_fragments

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    ServiceUnavailableError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
    UnsupportedError,
)
from mooring.tables.api import AT_MS, BY, ElsewhereWritten, StagedTable, Write
from mooring.tables.failures import explain
from mooring.tables.fragments import data_files, whole_schema
from mooring.tables.opening import open_at
from mooring.tables.strict import commit_strictly, sweep_transaction
from mooring.tables.versions import list_versions, newest_version
from mooring.tables.watched_rows import WatchedRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa
    from lance import LanceDataset, Transaction
    from lance.fragment import FragmentMetadata
    from lance.schema import LanceSchema

    BaseOperation = lance.LanceOperation.BaseOperation
    Overwrite = lance.LanceOperation.Overwrite

    from mooring.clock import Clock
    from mooring.store import Store

__all__ = ["LanceTables"]


_RECENT = 1000


class LanceTables:
    """Writes Lance tables into directories of a store."""

    def __init__(self, store: Store, *, author: str, clock: Clock) -> None:
        """Write below the root of ``store``.

        Args:
            store: The catalog's store.
            author: In whose name versions are committed.
            clock: Stamps them.

        Raises:
            UnsupportedError: Lance cannot write where the store keeps its objects.
        """
        if store.location("").startswith("memory:"):
            msg = "a memory:// catalog holds names only: Lance cannot write tables into it"
            raise UnsupportedError(msg)
        self._store = store
        self._author = author
        self._clock = clock

    def stage(self, table_dir: str, rows: pa.RecordBatchReader | ElsewhereWritten) -> StagedTable:
        """Write data files; nothing is visible yet, and a failure leaves nothing behind.

        Raises:
            TableSchemaValidationError: Lance cannot store a type of the schema.
            InvalidInputError: the rows could not be read to their end.
            ConcurrentModificationError: somebody else's first version came in between.
            ServiceUnavailableError: the data could not be written.
        """
        if isinstance(rows, ElsewhereWritten):
            return self._stage_elsewhere(table_dir, rows)
        source = WatchedRows(rows)
        try:
            written = self._write(table_dir, source)
        except (ValueError, OSError, RuntimeError, NotImplementedError) as exc:
            self._prune(table_dir)
            raise source.failure or _explain(exc) from exc
        fragments = written.fragments
        files = tuple(f"{table_dir}/data/{name}" for name in sorted(data_files(fragments)))
        staged = StagedTable(
            table_dir, written.new_schema, tuple(fragments), files, uuid.uuid4().hex
        )
        try:
            self._store.sync(files)
        except ServiceUnavailableError:
            self.discard(staged)
            raise
        return staged

    def _stage_elsewhere(self, table_dir: str, rows: ElsewhereWritten) -> StagedTable:
        """Have workers write the data files, which sync them."""
        try:
            written = rows.write(self._store.location(table_dir), self._store.options)
        except BaseException:
            rows.settle(is_committed=False)
            self._prune(table_dir)
            raise
        fragments = cast("list[FragmentMetadata]", list(written))
        files = tuple(f"{table_dir}/data/{name}" for name in sorted(data_files(fragments)))
        schema = whole_schema(rows.schema)
        return StagedTable(table_dir, schema, tuple(fragments), files, uuid.uuid4().hex, rows)

    def _write(self, table_dir: str, source: WatchedRows) -> Overwrite:
        # Lance warns about an overwrite of nothing and refuses a creation over something.
        is_new = not newest_version(self._store, table_dir)
        options = dict(self._store.options) or None
        location = self._store.location(table_dir)
        mode = "create" if is_new else "overwrite"
        try:
            written = write_fragments(
                source.reader,
                location,
                mode=mode,
                storage_options=options,
                return_transaction=True,
            )
            return cast("Overwrite", written.operation)
        except OSError as exc:
            if not is_new or not newest_version(self._store, table_dir):
                raise
            msg = f"somebody else wrote the first version of '{table_dir}' at the same time"
            raise ConcurrentModificationError(msg) from exc

    def writes(self, table_dir: str) -> list[Write]:
        """Tell who wrote the newest thousand versions, as far as it was through a catalog."""
        newest = newest_version(self._store, table_dir)
        if not newest:
            return []
        dataset = open_at(self._store.location(table_dir), self._store.options)
        found = []
        for version, transaction in _recent_transactions(dataset):
            properties = (transaction and transaction.transaction_properties) or {}
            if BY in properties:
                found.append(Write(version, properties[BY], int(properties.get(AT_MS, 0))))
        return found[::-1]

    def commit(self, staged: StagedTable, version: int) -> bool:
        """Commit the staged data as exactly ``version``; False where it exists."""
        schema = cast("LanceSchema", staged.schema)
        fragments = cast("list[FragmentMetadata]", list(staged.fragments))
        overwrite = lance.LanceOperation.Overwrite(schema, fragments)
        source = staged.source
        kept = source.properties if source else {}
        done = self._commit(staged.table_dir, overwrite, version, staged.nonce, kept=kept)
        if done and source:
            source.settle(is_committed=True)
        return done

    def discard(self, staged: StagedTable) -> None:
        """Delete data and transaction files of a stage that was never committed."""
        if staged.source:
            staged.source.settle(is_committed=False)
        self._store.delete(staged.files)
        sweep_transaction(self._store, staged.table_dir, staged.nonce)
        self._prune(staged.table_dir)

    def restore(self, table_dir: str, version: int, as_version: int) -> bool:
        """Commit an older version's content as exactly ``as_version``.

        Returns:
            False where that version exists, or the older one is gone.
        """
        if version not in list_versions(self._store, table_dir):
            return False
        nonce = uuid.uuid4().hex
        done = self._commit(table_dir, lance.LanceOperation.Restore(version), as_version, nonce)
        if not done:
            sweep_transaction(self._store, table_dir, nonce)
        return done

    def _commit(
        self,
        table_dir: str,
        operation: BaseOperation,
        version: int,
        nonce: str,
        *,
        kept: Mapping[str, str] | None = None,
    ) -> bool:
        committed = commit_strictly(
            self._store,
            table_dir,
            operation=operation,
            version=version,
            nonce=nonce,
            properties={BY: self._author, AT_MS: str(self._clock.now_ms()), **(kept or {})},
        )
        return committed is not False

    def _prune(self, table_dir: str) -> None:
        """Leave no empty directory of a table that did not come about.

        Not where it did: Lance would fail on a directory that is gone when it writes its file.
        """
        if not newest_version(self._store, table_dir):
            self._store.prune(table_dir)


def _explain(failure: Exception) -> MooringError:
    found = explain(failure, "Lance cannot store this data")
    if isinstance(found, InvalidInputError | TableColumnNotFoundError):
        return TableSchemaValidationError(str(found))
    return found


def _recent_transactions(dataset: LanceDataset) -> Iterable[tuple[int, Transaction | None]]:
    """Read the newest transactions with the versions they made, the newest first."""
    try:
        # Not by the version a transaction was made on: Lance moves it behind others.
        found = enumerate(dataset.get_transactions(_RECENT))
        return [(dataset.version - back, transaction) for back, transaction in found]
    except TypeError:
        # One of them is a compaction of indexed rows, which Lance cannot make an object of.
        versions = [version["version"] for version in dataset.versions()]
        return [(version, _read(dataset, version)) for version in versions[-_RECENT:][::-1]]


def _read(dataset: LanceDataset, version: int) -> Transaction | None:
    try:
        return dataset.read_transaction(version)
    except (TypeError, OSError, ValueError):
        return None
