"""Lance tables as files of a catalog: staged data and strict commits."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, cast

import lance
from lance.commit import CommitConflictError
from lance.fragment import write_fragments

from mooring.errors import InvalidInputError, TableSchemaValidationError, UnsupportedError
from mooring.tables.api import StagedTable
from mooring.tables.arbiter import VersionArbiter
from mooring.tables.versions import list_versions, newest_version

if TYPE_CHECKING:
    import pyarrow as pa
    from lance.fragment import FragmentMetadata
    from lance_namespace import LanceNamespace

    BaseOperation = lance.LanceOperation.BaseOperation

    from mooring.store import Store

__all__ = ["LanceTables"]


class LanceTables:
    """Writes Lance tables into directories of a store."""

    def __init__(self, store: Store) -> None:
        """Write below the root of ``store``.

        Raises:
            UnsupportedError: Lance cannot write where the store keeps its objects.
        """
        if store.location("").startswith("memory:"):
            msg = "a memory:// catalog holds names only: Lance cannot write tables into it"
            raise UnsupportedError(msg)
        self._store = store

    def stage(self, table_dir: str, rows: pa.RecordBatchReader) -> StagedTable:
        """Write data files; nothing is visible yet.

        Raises:
            TableSchemaValidationError: Lance cannot store a type of the schema.
        """
        # Lance warns about an overwrite of nothing and refuses a creation over something.
        mode = "overwrite" if newest_version(self._store, table_dir) else "create"
        try:
            fragments = write_fragments(
                rows,
                self._store.location(table_dir),
                mode=mode,
                storage_options=dict(self._store.options) or None,
            )
        except (ValueError, NotImplementedError) as exc:
            msg = f"the data cannot be stored as a Lance table: {exc}"
            raise TableSchemaValidationError(msg) from exc
        files = tuple(
            f"{table_dir}/data/{file.path}" for fragment in fragments for file in fragment.files
        )
        return StagedTable(table_dir, rows.schema, tuple(fragments), files, uuid.uuid4().hex)

    def commit(self, staged: StagedTable, version: int) -> bool:
        """Commit the staged data as exactly ``version``; False where it exists."""
        schema = cast("pa.Schema", staged.schema)
        fragments = cast("list[FragmentMetadata]", list(staged.fragments))
        overwrite = lance.LanceOperation.Overwrite(schema, fragments)
        return self._commit(staged.table_dir, overwrite, version, staged.nonce)

    def discard(self, staged: StagedTable) -> None:
        """Delete data and transaction files of a stage that was never committed."""
        self._store.delete(staged.files)
        self._sweep_transaction(staged.table_dir, staged.nonce)

    def restore(self, table_dir: str, version: int, as_version: int) -> bool:
        """Commit an older version's content as exactly ``as_version``; False where it exists.

        Raises:
            InvalidInputError: the version is gone.
        """
        if version not in list_versions(self._store, table_dir):
            msg = f"'{table_dir}' has no version {version} to go back to"
            raise InvalidInputError(msg)
        nonce = uuid.uuid4().hex
        done = self._commit(table_dir, lance.LanceOperation.Restore(version), as_version, nonce)
        if not done:
            self._sweep_transaction(table_dir, nonce)
        return done

    def _commit(
        self,
        table_dir: str,
        operation: BaseOperation,
        version: int,
        nonce: str,
    ) -> bool:
        transaction = lance.Transaction(version - 1, operation, uuid=nonce)
        arbiter = VersionArbiter(self._store, table_dir, version)
        try:
            lance.LanceDataset.commit(
                self._store.location(table_dir),
                transaction,
                storage_options=dict(self._store.options) or None,
                max_retries=0,
                namespace_client=cast("LanceNamespace", arbiter),
                table_id=[table_dir],
                namespace_client_managed_versioning=True,
            )
        except (CommitConflictError, OSError, RuntimeError, ValueError):
            # Lance words a refusal in several ways; the arbiter knows what was decided.
            if arbiter.decided is None:
                raise
        return bool(arbiter.decided)

    def _sweep_transaction(self, table_dir: str, nonce: str) -> None:
        directory = f"{table_dir}/_transactions"
        names = self._store.list_dir(directory).files
        self._store.delete(f"{directory}/{name}" for name in names if nonce in name)
