"""A located table: how to open it, and how every change of its content is made.

Reading opens the table where it lies, or the version that its catalog names where that keeps them.
A change commits through the catalog's ledger, in whatever mode the catalog was opened: the put that
decides is the catalog's, and a table that was dropped meanwhile takes no writes.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import lance

from mooring.errors import (
    InvalidInputError,
    InvalidTableStateError,
    MooringError,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import quote
from mooring.tables.api import EXPIRES_AT
from mooring.tables.confinement import check_confined
from mooring.tables.failures import translated
from mooring.tables.ledger_client import LedgerClient
from mooring.tables.opening import open_at
from mooring.tables.place import Place, open_place
from mooring.tables.reference_names import branch_of, check_tag
from mooring.tables.versions import BRANCHES_DIR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lance import LanceDataset

    from mooring.tables.api import Ledger

__all__ = ["NEWEST", "At", "TableHandle"]

_CALL_FAILED = "Python error in"
_LAST_VERSION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class At:
    """A state of a table: a version, a tag or a branch; by default the newest of main.

    Raises:
        InvalidInputError: a tag together with a version or branch, of which it names both, or
            a name that no tag or branch can have.
    """

    version: int | None = None
    tag: str | None = None
    branch: str | None = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself, and know main by no other name."""
        if self.tag is not None and (self.version is not None or self.branch is not None):
            msg = "a tag names a version: give it without a version or branch"
            raise InvalidInputError(msg)
        if self.tag is not None:
            check_tag(self.tag)
        object.__setattr__(self, "branch", branch_of(self.branch))

    @property
    def reference(self) -> str | tuple[str | None, int | None]:
        """The same as Lance writes it."""
        return self.tag if self.tag is not None else (self.branch, self.version)


NEWEST = At()


class TableHandle:
    """A live table of a catalog."""

    def __init__(
        self,
        name: str,
        location: str,
        options: Mapping[str, str],
        ledger: Ledger,
        *,
        stamp: Mapping[str, str] | None = None,
    ) -> None:
        """Hold on to a location; nothing is opened yet.

        Args:
            name: The identifier, for messages.
            location: Where Lance finds the table.
            options: Storage options of Lance.
            ledger: Decides about its versions.
            stamp: Kept with each write, as far as Lance keeps anything with it.
        """
        self.what = f"table {quote(name)}"
        self.location = location
        self.options = options
        self.ledger = ledger
        self.stamp = dict(stamp or {})

    @cached_property
    def place(self) -> Place:
        """Where the table's files lie, for what the store decides and Lance does not."""
        return open_place(self.location, self.options)

    def place_of(self, branch: str | None) -> Place:
        """Where the files of a branch lie, or those of main."""
        if branch is None:
            return self.place
        return Place(self.place.store, self.place.path(f"{BRANCHES_DIR}/{branch}"))

    def confirm(self) -> None:
        """After a change beside the versions: acknowledge it only where it stays.

        Raises:
            ConcurrentModificationError: the table is being renamed, and may leave it behind.
            TableNotFoundError: the table was dropped or renamed.
        """
        self.place.require_unsealed(self.what)
        self.ledger.confirm()

    def open(self, at: At = NEWEST) -> LanceDataset:
        """Open the table to read it.

        Raises:
            TableNotFoundError: the table is only declared.
            UnsupportedError: it lies where this program cannot reach it.
            TableVersionNotFoundError: there is no such version.
            TableTagNotFoundError: there is no such tag.
            TableBranchNotFoundError: there is no such branch.
        """
        self._require_possible(at)
        try:
            return self._open(at)
        except TableNotFoundError as exc:
            raise self._absent() from exc
        except TableVersionNotFoundError as exc:
            if at.version is None:
                raise
            if at.branch is not None:
                # Lance does not tell whether it is the version that is missing or the branch.
                self.ledger.newest(at.branch)
            raise self._no_version(at) from exc

    def _open(self, at: At) -> LanceDataset:
        # Through the catalog, Lance also gets fresh credentials before those of now are at an end.
        if self.ledger.keeps_versions or EXPIRES_AT in self.options:
            return self.open_managed(at)
        if at == NEWEST or (at.version is not None and at.branch is None):
            return check_confined(open_at(self.location, self.options, at.version), self.location)
        newest = open_at(self.location, self.options)
        with translated(self.what):
            return check_confined(newest.checkout_version(at.reference), self.location)

    def _require_possible(self, at: At) -> None:
        """Refuse numbers that Lance cannot even take."""
        if isinstance(at.version, int) and not 0 < at.version <= _LAST_VERSION:
            raise self._no_version(at)

    def _no_version(self, at: At) -> TableVersionNotFoundError:
        where = "" if at.branch is None else f" on branch {quote(at.branch)}"
        return TableVersionNotFoundError(f"{self.what} has no version {at.version}{where}")

    def _absent(self) -> MooringError:
        """Tell a table without data from one whose data is not to be seen from here."""
        if self.ledger.newest(None) is None:
            return self._only_declared()
        msg = (
            f"{self.what} has data, and nothing of it is to be seen at '{self.location}', where its"
            " catalog says that it lies: that place cannot be reached from here; give storage"
            " options that reach it, or have the server hand them out"
        )
        return UnsupportedError(msg)

    def _only_declared(self) -> TableNotFoundError:
        msg = f"{self.what} has no data yet: it is only declared; create it first"
        return TableNotFoundError(msg)

    def open_managed(self, at: At = NEWEST) -> LanceDataset:
        """Open the table so that whatever is written through the result goes through the catalog.

        Raises:
            TableNotFoundError: the table is only declared.
            TableVersionNotFoundError: there is no such version.
            TableTagNotFoundError: there is no such tag.
            TableBranchNotFoundError: there is no such branch.
        """
        client = LedgerClient(self.ledger)
        with self._explained(client):
            return self.open_through(client, at)

    @contextmanager
    def reading(self, at: At = NEWEST) -> Iterator[LanceDataset]:
        """Open the table, and raise errors of ours for what Lance raises while it is read."""
        with translated(self.what):
            yield self.open(at)

    @contextmanager
    def changing(
        self, at: At = NEWEST, *, before: Callable[[int], None] | None = None
    ) -> Iterator[LanceDataset]:
        """Open the table so that its commits go through the catalog.

        Args:
            at: Where a change begins.
            before: Called before a version is made, with its number; what it raises refuses it.

        Raises:
            ReadOnlyError: the catalog was opened read-only.
            ConcurrentModificationError: a conflicting change came first.
            TableNotFoundError: the table was dropped meanwhile; what was written may be in it.
            UnknownOutcomeError: the store never said what was decided.
        """
        self.ledger.prepare()
        client = LedgerClient(self.ledger, before)
        try:
            with self._explained(client):
                yield self.open_through(client, at)
        except InvalidTableStateError as exc:
            if exc is not client.failure:
                self.ledger.confirm()  # what a table that was moved or purged lacks, or refuses
            raise

    @contextmanager
    def _explained(self, client: LedgerClient) -> Iterator[None]:
        """Raise errors of ours for Lance's, which words what a ledger raises in its own way."""
        try:
            with translated(self.what):
                yield
        except MooringError as exc:
            known = client.failure or (
                client.raised if _CALL_FAILED in str(exc.__cause__) else None
            )
            if known is not None and known is not exc:
                raise known from exc
            raise

    def open_through(self, client: LedgerClient, at: At = NEWEST) -> LanceDataset:
        """Open the table so that its commits go through a client; Lance's failures stay as is.

        Raises:
            TableNotFoundError: the table is only declared.
        """
        self._require_possible(at)
        client.known = self.ledger.newest(None)
        if client.known is None:
            raise self._only_declared()
        if at.branch is not None:
            # Lance would ask the same, and not say which branch is not there.
            self.ledger.newest(at.branch)
        opened = lance.LanceDataset(
            self.location,
            storage_options=dict(self.options) or None,
            namespace_client=client,
            table_id=[self.location],
            namespace_client_managed_versioning=True,
        )
        found = opened if at == NEWEST else opened.checkout_version(at.reference)
        return check_confined(found, self.location)
