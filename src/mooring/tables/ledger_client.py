"""A ledger as Lance asks it: the calls of a namespace that manages versions.

Lance calls them by name with plain dictionaries, so the class needs no base. It folds whatever a
call raises into words of its own; what really happened is kept here.

Spec: objects-and-relationships, "External Manifest Store".
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mooring.errors import (
    ConcurrentModificationError,
    MooringError,
    TableBranchNotFoundError,
    TableVersionNotFoundError,
    UnknownOutcomeError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mooring.tables.api import Ledger, VersionRecord

__all__ = ["LedgerClient", "Response"]


class Response(dict[str, Any]):
    """A response as Lance reads it: a mapping that can dump itself and has attributes."""

    def model_dump(self, **_: object) -> dict[str, Any]:
        """Return the mapping."""
        return dict(self)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # a wire shape of several types
        """Return a value of the mapping."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class LedgerClient:
    """Passes the commits of one opened table to its ledger.

    Afterwards ``failure`` is what ended the last commit, None where a lost race or nothing did,
    and ``raised`` what a call raised last.
    """

    def __init__(self, ledger: Ledger, before: Callable[[int], None] | None = None) -> None:
        """Commit through a ledger.

        Args:
            ledger: Decides.
            before: Called before a version is made, with its number; what it raises refuses it.
        """
        self._ledger = ledger
        self._before = before
        self.failure: Exception | None = None
        self.raised: MooringError | None = None
        # Told to Lance at its first question instead of being looked up twice.
        self.known: VersionRecord | None = None

    def namespace_id(self) -> str:
        """Identify this client in Lance's caches: never the same twice."""
        return f"mooring-ledger-{id(self)}"

    def describe_table(self, request: dict[str, Any]) -> Response:
        """Answer how storage is reached; Lance asks before what it was told comes to its end."""
        del request
        with self._watched():
            return Response(storage_options=dict(self._ledger.options()))

    def list_table_versions(self, request: dict[str, Any]) -> Response:
        """Answer the newest version, which is all that Lance asks for."""
        branch = request.get("branch")
        if self.known is not None and not branch:
            known, self.known = self.known, None
            return Response(versions=[_entry(known)])
        try:
            with self._watched():
                newest = self._ledger.newest(branch)
        except TableBranchNotFoundError:
            # Lance asks before it makes a branch, and reads no error as "not there".
            newest = None
        return Response(versions=[] if newest is None else [_entry(newest)])

    def describe_table_version(self, request: dict[str, Any]) -> Response:
        """Answer where a version's manifest is.

        Raises:
            TableVersionNotFoundError: there is no such version.
            Exception: a commit failed, and this asks whether it did: an answer would be read
                as a lost race, and the commit repeated.
        """
        if self.failure is not None:
            raise self.failure
        with self._watched():
            return Response(version=_entry(self._describe(request)))

    def _describe(self, request: dict[str, Any]) -> VersionRecord:
        return self._ledger.describe(int(request["version"]), request.get("branch"))

    def create_table_version(self, request: dict[str, Any]) -> Response:
        """Make a staged manifest a version.

        Raises:
            ConcurrentModificationError: the version exists.
        """
        version, branch = int(request["version"]), request.get("branch")
        try:
            if self._before is not None:
                self._before(version)
        except Exception as exc:
            self.failure = exc
            raise
        try:
            record = self._ledger.create(version, request["manifest_path"], branch)
        except ConcurrentModificationError as exc:
            self.failure = None if self._exists(request) else exc
            raise
        except MooringError as exc:
            self.failure = exc
            raise
        return Response(version=_entry(record))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except MooringError as exc:
            self.raised = exc
            raise

    def _exists(self, request: dict[str, Any]) -> bool:
        try:
            self._describe(request)
        except (TableVersionNotFoundError, UnknownOutcomeError):
            return False
        return True


def _entry(record: VersionRecord) -> dict[str, Any]:
    return {"version": record.version, "manifest_path": record.manifest_path}
