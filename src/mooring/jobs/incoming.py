"""Data files of a table that is not there yet, written before the catalog gives it a place.

Whoever writes a table from several processes must know where to before the first begins. A table
that is there has a place. The files of one that is not wait below `_mooring/incoming/<run>/`,
which no catalog takes for a table, until one process makes the table: there they are linked or
copied into the place that the catalog gives, and the directory goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from mooring.errors import ConcurrentModificationError, TableNotFoundError, UnsupportedError
from mooring.iceberg.backend import IcebergBackend
from mooring.iceberg.table import lance_location
from mooring.identifiers import quote
from mooring.remote.backend import RemoteBackend
from mooring.store import open_store
from mooring.tables.api import ElsewhereWritten
from mooring.tables.draft import draft_for
from mooring.tables.fragments import data_files
from mooring.tables.pending import PendingRun
from mooring.tables.place import open_place
from mooring.tables.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from lance.fragment import FragmentMetadata

    from mooring.catalog import Catalog
    from mooring.identifiers import ObjectId
    from mooring.opening import StoredBackend
    from mooring.store import Store
    from mooring.tables.draft import Draft
    from mooring.tables.place import Place
    from mooring.tables.runs import RunMark

__all__ = ["INCOMING_DIR", "Incoming", "IncomingRows", "list_incoming", "sweep_incoming"]

INCOMING_DIR = "_mooring/incoming"
_DATA_DIR = "data"


@dataclass(frozen=True)
class Incoming:
    """The directory of one run.

    Attributes:
        location: As Lance names it.
        options: Storage options of Lance.
        run: The run.
    """

    location: str
    options: Mapping[str, str] = field(repr=False)  # it holds secrets
    run: str

    @classmethod
    def of(cls, catalog: Catalog, run: str, table: ObjectId | None = None) -> Incoming:
        """Return the directory of a run in a catalog.

        Args:
            catalog: The catalog.
            run: The run.
            table: What it is for, where not all tables of the catalog lie in one place.

        Raises:
            UnsupportedError: where the table will lie is known to the catalog's server alone.
        """
        if table is not None and isinstance(catalog.backend, IcebergBackend | RemoteBackend):
            above, options = _place_of(catalog.backend, table)
            return cls(f"{above}/{INCOMING_DIR}/{run}", options, run)
        store = _store_of(catalog)
        return cls(store.location(f"{INCOMING_DIR}/{run}"), dict(store.options), run)

    @property
    def draft(self) -> Draft:
        """What workers must know to write there."""
        return draft_for(self.location, self.options, self.run)

    @property
    def place(self) -> Place:
        """The directory in its store."""
        return open_place(self.location, self.options)

    @property
    def pending(self) -> PendingRun:
        """The run, to be claimed or given up."""
        return PendingRun(self.place, self.run)

    @property
    def newest_ms(self) -> int:
        """When something was written there last."""
        found = self.place.store.list_prefix(self.place.directory)
        return max((meta.modified_ms for meta in found), default=0)

    def delete(self) -> None:
        """Delete all of it.

        The directory of all runs stays: another may be about to write there.
        """
        place = self.place
        place.store.delete_prefix(place.directory)
        place.store.prune(place.directory)


class IncomingRows(ElsewhereWritten):
    """The first rows of a table, which wait in the directory of a run."""

    def __init__(
        self,
        incoming: Incoming,
        schema: pa.Schema,
        fragments: Sequence[FragmentMetadata],
        *,
        mark: RunMark | None = None,
    ) -> None:
        """Take what was written.

        Args:
            incoming: The directory.
            schema: The rows' schema.
            fragments: What workers told of their data files.
            mark: A name by which the run is known again.
        """
        self._incoming = incoming
        self._schema = schema
        self._fragments = fragments
        self._mark = mark
        self._copies: tuple[Store, list[str]] | None = None
        self._runs: Runs | None = None

    @property
    def schema(self) -> pa.Schema:
        """The rows' schema."""
        return self._schema

    @property
    def properties(self) -> Mapping[str, str]:
        """What is kept with the table's first commit."""
        return self._mark.properties if self._mark else {}

    def write(self, location: str, options: Mapping[str, str]) -> Sequence[object]:
        """Link or copy the data files into the table's directory.

        Raises:
            ConcurrentModificationError: a cleanup has given the run up.
        """
        self._incoming.pending.claim()
        if self._mark is not None:
            self._runs = Runs(open_place(location, options), self._mark)
            self._runs.begin(0)
        self._copy(location, options)
        return list(self._fragments)

    def _copy(self, location: str, options: Mapping[str, str]) -> None:
        store, target = _whole(location, options)
        _, source = _whole(self._incoming.location, options)
        above = f"{source}/{_DATA_DIR}/"
        found = [meta.path.removeprefix(above) for meta in store.list_prefix(above.rstrip("/"))]
        wanted = data_files(self._fragments)
        if not wanted.issubset(found):
            # A cleanup deletes its decision, too, with all the rest.
            msg = f"run {quote(self._incoming.run)} was given up, its files are gone: run it again"
            raise ConcurrentModificationError(msg)
        # What Lance puts beside a file lies in a directory of the same name.
        stems = {name.removesuffix(".lance") for name in wanted}
        names = [name for name in found if name.partition("/")[0].removesuffix(".lance") in stems]
        self._copies = (store, [f"{target}/{_DATA_DIR}/{name}" for name in names])
        for name in names:
            store.copy(above + name, f"{target}/{_DATA_DIR}/{name}")

    def settle(self, *, is_committed: bool) -> None:
        """Take back what was copied where it came to nothing."""
        if is_committed or self._copies is None:
            return
        store, copies = self._copies
        store.delete(copies)
        if self._runs is not None:
            self._runs.forget()


def list_incoming(catalog: Catalog) -> list[Incoming]:
    """Find the directories of runs that have not ended."""
    found = _store_of(catalog).list_dir(INCOMING_DIR).directories
    return [Incoming.of(catalog, run) for run in sorted(found)]


def sweep_incoming(catalog: Catalog, written_before_ms: int) -> list[Incoming]:
    """Delete what runs left that wrote nothing for a while and are not about to make a table.

    Returns:
        What was deleted.
    """
    swept = []
    for incoming in list_incoming(catalog):
        if incoming.newest_ms < written_before_ms and incoming.pending.abandon():
            incoming.delete()
            swept.append(incoming)
    return swept


def _place_of(
    backend: IcebergBackend | RemoteBackend, table: ObjectId
) -> tuple[str, dict[str, str]]:
    """Return below what a table of a server's catalog will lie, and how that is reached."""
    try:
        declared = backend.describe_table(table)
    except TableNotFoundError:
        place = backend.place_of_new_tables(table.parent)
    else:
        return declared.location.rpartition("/")[0], dict(declared.storage_options)
    if place is None:
        msg = (
            f"only the server of this catalog knows where table {quote(str(table))} will lie:"
            " declare it first; of an Iceberg catalog, the property 'root' can say it, too"
        )
        raise UnsupportedError(msg)
    return lance_location(place), backend.options_for(place)


def _store_of(catalog: Catalog) -> Store:
    return cast("StoredBackend", catalog.backend).store


def _whole(location: str, options: Mapping[str, str]) -> tuple[Store, str]:
    """Return a store that holds all places of a catalog, and a location's path in it."""
    if "://" in location:
        place = open_place(location, options)
        return place.store, place.directory
    return open_store("/", options), location.strip("/")
