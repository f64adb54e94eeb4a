"""Versions that are files of a table: the put of the file decides, and the catalog has no part.

So a write is acknowledged only where the catalog has the table still, after the file is there.

Spec: objects-and-relationships, "Table Version".
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mooring.errors import (
    InvalidInputError,
    ServiceUnavailableError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnknownOutcomeError,
)
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.identifiers import ObjectId
    from mooring.namespace.table_operations import CreateVersion
    from mooring.tables.api import VersionRecord
    from mooring.tables.records import VersionRecords

__all__ = ["VersionFiles"]


class VersionFiles:
    """The versions of one table, or of one branch of it, that are files."""

    def __init__(self, table: ObjectId, records: VersionRecords, branch: str | None = None) -> None:
        """Work on a located table.

        Args:
            table: Its identifier.
            records: The files.
            branch: Of which branch they are; None for main.
        """
        self._what = f"table {quote(str(table))}"
        self._records = records
        self._branch = branch

    def newest_first(self, limit: int | None) -> list[VersionRecord]:
        """Return the versions, the newest first.

        Raises:
            TableBranchNotFoundError: there is no such branch.
        """
        found = self._records.newest_first(limit)
        if self._branch and not found:
            raise self._no_branch(self._branch)
        return found

    def describe(self, version: int) -> VersionRecord:
        """Return one version.

        Raises:
            TableVersionNotFoundError: there is no such version.
            TableBranchNotFoundError: there is no such branch.
        """
        try:
            return self._records.describe(version)
        except TableVersionNotFoundError:
            if self._branch and not self._records.newest_first(1):
                raise self._no_branch(self._branch) from None
            raise

    def _no_branch(self, branch: str) -> TableBranchNotFoundError:
        return TableBranchNotFoundError(f"{self._what} has no branch {quote(branch)}")

    def create(self, wanted: CreateVersion, is_there: Callable[[], bool]) -> VersionRecord:
        """Make a manifest that was written a version.

        Args:
            wanted: What was asked for.
            is_there: Looks whether the catalog has the table still, where it was.

        Raises:
            ConcurrentModificationError: the version exists.
            TableNotFoundError: the table is there no more, whether the version was made or not.
            UnknownOutcomeError: nothing told whether it was made, or whether the table is there.
        """
        version = wanted.version
        try:
            record = self._records.create(version, wanted.manifest_path, wanted.metadata)
        except InvalidInputError:
            # A manifest that is not there may have gone with the table.
            self._confirm(version, is_there)
            raise
        try:
            self._confirm(version, is_there)
        except ServiceUnavailableError as exc:
            msg = f"version {version} of {self._what} was written, and whether the table is still"
            raise UnknownOutcomeError(f"{msg} there was not told: {exc}") from exc
        return record

    def _confirm(self, version: int, is_there: Callable[[], bool]) -> None:
        """Acknowledge a write only to a table that is still there."""
        with suppress(TableNotFoundError):
            if is_there():
                return
        msg = (
            f"{self._what} was dropped or renamed while its version {version} was written, which"
            " may be in it when it comes back: look before writing again"
        )
        raise TableNotFoundError(msg)
