"""A strict commit of any Lance operation: exactly one version number, decided by our store."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import lance
from lance.commit import CommitConflictError

from mooring.errors import ServiceUnavailableError
from mooring.tables.arbiter import VersionArbiter
from mooring.tables.versions import newest_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance import LanceDataset

    BaseOperation = lance.LanceOperation.BaseOperation

    from mooring.store import Store

__all__ = ["commit_strictly", "sweep_transaction", "transaction_path"]


def commit_strictly(  # a commit's parts, all but two by name
    store: Store,
    table_dir: str,
    *,
    operation: BaseOperation,
    version: int,
    nonce: str | None = None,
    properties: Mapping[str, str] | None = None,
    needs: Sequence[str] = (),
    base: LanceDataset | None = None,
    like: str = "",
    keep_record: bool = True,
) -> LanceDataset | bool:
    """Commit an operation as exactly ``version``.

    Args:
        store: The catalog's store; the create-only put of the version's manifest in it decides.
        table_dir: The table's directory in the store.
        operation: What to commit.
        version: The only number it may get.
        nonce: Names the transaction's file.
        properties: Kept with the transaction.
        needs: Files that must be safe on disk before.
        base: The table at the version before, where it is open already.
        like: The file of any version, where one is known: then no versions are listed.
        keep_record: Whether the transaction's own file must outlast a power cut.

    Returns:
        The table at the new version, True where only that it was committed is known, or False
        where the version exists.

    Raises:
        ServiceUnavailableError: Lance failed before anything was decided.
        UnknownOutcomeError: the store never said what was decided.
    """
    nonce = nonce or uuid.uuid4().hex
    transaction = lance.Transaction(version - 1, operation, nonce, dict(properties or {}))
    if keep_record:
        needs = [transaction_path(table_dir, version - 1, nonce), *needs]
    arbiter = VersionArbiter(store, table_dir, version, needs=needs, like=like)
    committed: LanceDataset | bool = True
    try:
        committed = lance.LanceDataset.commit(
            base if base is not None else store.location(table_dir),
            transaction,
            storage_options=dict(store.options) or None,
            max_retries=0,
            namespace_client=arbiter,  # type: ignore[arg-type]  # called by name
            table_id=[table_dir],
            namespace_client_managed_versioning=True,
        )
    except (CommitConflictError, OSError, RuntimeError, ValueError) as exc:
        # Lance words a refusal in several ways; the arbiter knows what was decided. Before
        # that, Lance fails on files that a purge or a newer commit took away.
        undecided = arbiter.decided is None and arbiter.unknown is None
        if undecided and newest_version(store, table_dir) == version - 1:
            msg = f"Lance could not commit version {version} of '{table_dir}': {exc}"
            raise ServiceUnavailableError(msg) from exc
    # Also where Lance looked and found its version: it may not outlast a power cut.
    if arbiter.unknown is not None:
        raise arbiter.unknown
    return committed if arbiter.decided else False


def transaction_path(table_dir: str, read: int, nonce: str) -> str:
    """Return the path of the file of a transaction that was made on a version."""
    return f"{table_dir}/_transactions/{read}-{nonce}.txn"


def sweep_transaction(store: Store, table_dir: str, nonce: str) -> None:
    """Delete the file of a transaction that was never committed."""
    directory = f"{table_dir}/_transactions"
    names = store.list_dir(directory).files
    store.delete(f"{directory}/{name}" for name in names if nonce in name)
