"""The first version of a table whose catalog decides about versions: committed through it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import lance
from lance.commit import CommitConflictError

from mooring.errors import MooringError, ServiceUnavailableError
from mooring.tables.ledger_client import LedgerClient

if TYPE_CHECKING:
    from lance.fragment import FragmentMetadata
    from lance.schema import LanceSchema

    from mooring.tables.api import StagedTable
    from mooring.tables.handle import TableHandle

__all__ = ["commit_first"]


def commit_first(handle: TableHandle, staged: StagedTable) -> bool:
    """Make staged data the first version of a table.

    Args:
        handle: The table, which has no version yet.
        staged: What was written into its directory.

    Returns:
        False, and nothing changed, where somebody else made the first version.

    Raises:
        ServiceUnavailableError: Lance failed before anything was decided.
        UnknownOutcomeError: the catalog never said what was decided.
    """
    schema = cast("LanceSchema", staged.schema)
    fragments = cast("list[FragmentMetadata]", list(staged.fragments))
    source = staged.source
    kept = {**handle.stamp, **(source.properties if source else {})}
    overwrite = lance.LanceOperation.Overwrite(schema, fragments)
    client = LedgerClient(handle.ledger)
    try:
        lance.LanceDataset.commit(
            handle.location,
            lance.Transaction(0, overwrite, staged.nonce, kept),
            storage_options=dict(handle.options) or None,
            max_retries=0,
            namespace_client=client,  # type: ignore[arg-type]  # called by name
            table_id=[handle.location],
            namespace_client_managed_versioning=True,
        )
    except (CommitConflictError, OSError, RuntimeError, ValueError) as exc:
        if isinstance(client.failure, MooringError):
            raise client.failure from exc
        if handle.ledger.newest(None) is not None:
            return False  # Lance words a lost race in several ways
        if client.raised is not None:
            raise client.raised from exc
        msg = f"Lance could not make the first version of {handle.what}: {exc}"
        raise ServiceUnavailableError(msg) from exc
    if source is not None:
        source.settle(is_committed=True)
    return True
