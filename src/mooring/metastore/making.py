"""Ways in which a Lance table gets into a metastore, and out of it without losing its bytes.

Each is a step: prepared before a transaction, planned within it, as often as it is tried, and
finished after it. Several steps may share one transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from msgspec.structs import replace

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    TableNotFoundError,
)
from mooring.identifiers import quote
from mooring.metastore.committer import given_up
from mooring.metastore.lance_table import (
    branch_locator,
    create_table,
    find_table,
    locator_of,
    partition_of,
    relocate,
    tables_in,
)
from mooring.metastore.lance_versions import take_in, version_at
from mooring.metastore.layout import KEPT_MARKER, TABLES_DIR, TXN_DIR, parse_stage, table_dir
from mooring.metastore.locator import ROOT
from mooring.metastore.manifests import BranchFiles
from mooring.metastore.trash import require_namespace, require_unprotected
from mooring.namespace.api import CreateMode
from mooring.namespace.locations import check_location, overlaps, places_of
from mooring.namespace.presence import already_there
from mooring.tables.reference_names import list_branches
from mooring.tables.versions import list_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from mooring.identifiers import ObjectId
    from mooring.metastore.lance_table import LanceTable
    from mooring.metastore.lance_versions import LanceVersions
    from mooring.metastore.model import Namespace
    from mooring.metastore.transaction import Transaction
    from mooring.metastore.trash import Trash
    from mooring.namespace.api import TableInfo
    from mooring.namespace.home import Home
    from mooring.namespace.table_operations import Outcome
    from mooring.tables.place import Place

__all__ = ["Declaration", "Deregistration", "Making", "Registration", "Step"]


class Step(Protocol):
    """A part of what one transaction does."""

    @property
    def message(self) -> str:
        """What it does, in words."""
        ...

    def prepare(self, txn: Transaction) -> None:
        """Before the transaction: write what nobody sees yet; the state given is only to look."""
        ...

    def plan(self, txn: Transaction) -> None:
        """Within the transaction; on a newer state again, where somebody else was first."""
        ...

    def finish(self) -> Outcome:
        """After the commit."""
        ...

    def abandon(self) -> None:
        """After a failure: nothing was committed."""
        ...

    def unsettle(self) -> None:
        """After a failure of which nobody knows whether it was one."""
        ...


class Info(Protocol):
    """Describes a table."""

    def __call__(
        self,
        table: LanceTable,
        *,
        is_only_declared: bool | None = None,
        version: int | None = None,
    ) -> TableInfo:
        """Describe a table."""
        ...


@dataclass
class Declaration:
    """A table without data."""

    home: Home
    info: Info
    table: ObjectId
    properties: Mapping[str, str]
    _made: LanceTable | None = None

    @property
    def message(self) -> str:
        """What it does, in words."""
        return f"declare table {self.table}"

    def prepare(self, txn: Transaction) -> None:
        """Nothing is written before."""

    def plan(self, txn: Transaction) -> None:
        """Reserve the name and a directory.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
            TableAlreadyExistsError: the name is taken.
        """
        locator = locator_of(self.table)
        require_namespace(txn, self.table.parent)
        if txn.find(locator) is not None:
            raise already_there(self.table)
        create_table(txn, locator, self.properties, table_dir(self.home.ids.new_id()))
        self._made = find_table(txn, locator)

    def finish(self) -> TableInfo:
        """Tell where it is."""
        assert self._made is not None  # noqa: S101  # planned before
        return self.info(self._made, is_only_declared=True)

    def abandon(self) -> None:
        """Nothing was written."""

    def unsettle(self) -> None:
        """Whoever asks again is told that it exists."""


@dataclass
class Making:
    """A table with its first rows, in a directory that nobody else knows."""

    home: Home
    info: Info
    place_of: Callable[[str], Place]
    table: ObjectId
    properties: Mapping[str, str]
    rows: pa.RecordBatchReader
    _token: str = ""
    _location: str = ""
    _made: LanceTable | None = None

    @property
    def message(self) -> str:
        """What it does, in words."""
        return f"create table {self.table}"

    def prepare(self, txn: Transaction) -> None:
        """Write the table, which has no name yet."""
        del txn
        self._token = self.home.ids.new_id()
        self._location = table_dir(self._token)
        tables = self.home.open_tables()
        staged = tables.stage(self._location, self.rows)
        tables.commit(staged, 1)

    def plan(self, txn: Transaction) -> None:
        """Give it the name, which may be declared already.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
            TableAlreadyExistsError: the name is taken.
        """
        locator = locator_of(self.table)
        require_namespace(txn, self.table.parent)
        txn.depends_on(self._token)
        if txn.find(locator) is None:
            create_table(txn, locator, self.properties, self._location)
        else:
            self._complete(txn)
        files = BranchFiles(self.place_of(self._location), self._location, None)
        main = branch_locator(locator, None)
        written = files.records.newest_first(1)
        if not written:  # a vacuum took it for a leftover before it was named
            raise given_up(self._token)
        known = txn.find(main)
        moved = replace(partition_of(main, None), stream_position=1)
        if known is None:
            txn.create(main, moved)
        else:
            txn.update(main, moved)
        txn.create(
            main.child("1"),
            version_at(files, written[0], self.home.author, self.home.clock.now_ms()),
        )
        self._made = find_table(txn, locator)

    def _complete(self, txn: Transaction) -> None:
        """Make a declared table this one."""
        locator = locator_of(self.table)
        known = find_table(txn, locator)
        if known is None or known.newest is not None:
            raise already_there(self.table)
        relocate(txn, locator, self._location)
        if self.properties:
            txn.update(locator, replace(known.value, properties=dict(self.properties)))

    def finish(self) -> TableInfo:
        """Tell where it is."""
        assert self._made is not None  # noqa: S101  # planned before
        return self.info(self._made, version=1)

    def abandon(self) -> None:
        """Delete what was written."""
        if self._location:
            self.home.store.delete_prefix(self._location)
            self.home.store.prune(self._location)

    def unsettle(self) -> None:
        """It may be there: a vacuum takes it if it is not."""


@dataclass
class Registration:
    """A table that lies in storage, with the versions it has."""

    home: Home
    info: Info
    versions: LanceVersions
    trash: Trash
    table: ObjectId
    location: str
    properties: Mapping[str, str]
    mode: CreateMode
    _made: LanceTable | None = None
    _path: str = field(default="")

    @property
    def message(self) -> str:
        """What it does, in words."""
        return f"register table {self.table}"

    def prepare(self, txn: Transaction) -> None:
        """Refuse a location that cannot be accepted.

        Raises:
            InvalidInputError: with the reason.
        """
        del txn
        self._path = check_location(
            self.location,
            self.home.store.location(""),
            self.home.settings.allowed_locations,
            own=(TXN_DIR,),
        )

    def plan(self, txn: Transaction) -> None:
        """Give the table the name.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
            TableAlreadyExistsError: the name is taken.
            TableNotFoundError: nothing is there.
        """
        locator = locator_of(self.table)
        require_namespace(txn, self.table.parent)
        # Whoever purges or registers a table at the same place waits for this, or this for them.
        for place in places_of(self._path):
            txn.claim(place)
        self._require_unpurged(txn)
        stage = parse_stage(f"{self._path}/")
        if stage is not None:
            # What somebody left here may be on its way out.
            txn.depends_on(stage[1])
        if txn.find(locator) is not None and not self._make_way(txn):
            return
        self._require_fitting(txn)
        here = self.versions.place_of(self._path)
        if not list_versions(here.store, here.directory):
            msg = f"there is no table at {quote(self.location)}: no version is there"
            raise TableNotFoundError(msg)
        create_table(txn, locator, self.properties, self._path)
        self._made = find_table(txn, locator)
        assert self._made is not None  # noqa: S101  # just made
        for branch in (None, *list_branches(here.store, here.directory)):
            take_in(txn, self._made, BranchFiles(here, self._path, branch), self.home)

    def _make_way(self, txn: Transaction) -> bool:
        """Drop the table that has the name; False where it is the same."""
        known = find_table(txn, locator_of(self.table))
        if self.mode is not CreateMode.OVERWRITE or known is None:
            raise already_there(self.table)
        if known.location == self._path:
            self._made = known
            return False
        self.trash.drop_table(txn, known, None)
        return True

    def _require_unpurged(self, txn: Transaction) -> None:
        """Refuse a place where a table was purged: whoever did may sleep, and delete more later."""
        try:
            for place in places_of(self._path):
                txn.depends_on(place)
        except ConcurrentModificationError as exc:
            msg = (
                f"a table was purged at {quote(self.location)}, and what lies there now could be"
                " deleted with it: copy the table to another place and register that"
            )
            raise InvalidInputError(msg) from exc

    def _require_fitting(self, txn: Transaction) -> None:
        """Refuse a location that another table has, or lies in, or that is being purged.

        Every table has versions of its own: two of them in one directory would give out the same
        numbers.
        """
        view = self.versions.metastore.begin(at=txn.seq)  # no part of the transaction
        for namespace in view.children(ROOT):
            for other in tables_in(view, namespace.locator):
                if not overlaps(other.location, self._path):
                    continue
                if other.value.dropped is not None and other.value.dropped.purging:
                    msg = f"the table at {quote(self.location)} is being purged"
                    raise InvalidTableStateError(msg)
                raise self._not_free(other)

    def _not_free(self, other: LanceTable) -> InvalidInputError:
        told, where = quote(str(other.id)), quote(other.location)
        drop = other.value.dropped
        if drop is not None:
            told = f"{quote(drop.name)}, which was dropped,"
        msg = f"{quote(self.location)} cannot be the location of a table: table {told} lies at"
        return InvalidInputError(f"{msg} {where}")

    def finish(self) -> TableInfo:
        """Tell where it is."""
        assert self._made is not None  # noqa: S101  # planned before
        return self.info(self._made)

    def abandon(self) -> None:
        """Nothing was written."""

    def unsettle(self) -> None:
        """Whoever asks again is told that it exists."""


@dataclass
class Deregistration:
    """A table whose name is forgotten while its bytes stay."""

    home: Home
    info: Info
    versions: LanceVersions
    table: ObjectId
    require: Callable[[Transaction, ObjectId], LanceTable]
    _gone: LanceTable | None = None

    @property
    def message(self) -> str:
        """What it does, in words."""
        return f"deregister table {self.table}"

    def prepare(self, txn: Transaction) -> None:
        """Mark the directory, so that no vacuum takes it for a leftover."""
        found = self._require(txn)
        if found.location.startswith(f"{TABLES_DIR}/"):
            self.home.store.put(f"{found.location}/{KEPT_MARKER}", b"")

    def plan(self, txn: Transaction) -> None:
        """Forget the table.

        Raises:
            TableNotFoundError: no live table has this identifier.
            ProtectedError: it is protected.
        """
        found = self._require(txn)
        # Whoever looks at the bytes alone has to find what the catalog told of them.
        self.versions.complete(txn.seq, found)
        txn.delete(found.locator, cascade=True)
        self._gone = found

    def _require(self, txn: Transaction) -> LanceTable:
        found = self.require(txn, self.table)
        namespace = cast("Namespace", txn.get(found.locator.parent).value)
        require_unprotected(self.table, found.value, namespace)
        return found

    def finish(self) -> TableInfo:
        """Tell where its bytes are."""
        assert self._gone is not None  # noqa: S101  # planned before
        return self.info(self._gone)

    def abandon(self) -> None:
        """A marker in a directory that has a name is no harm."""

    def unsettle(self) -> None:
        """Whoever asks again is told that there is none."""
