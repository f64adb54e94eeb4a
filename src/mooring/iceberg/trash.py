"""Dropped tables of an Iceberg catalog: moved into a namespace of their own, and back.

The server's rename decides: a table is dropped, brought back, or taken by a purge, by one request
that finds it under its name. All that the trash must tell stands in the new name, in letters that
every server takes, so one listing answers. Two never meet on a name, for each holds a fresh id.

Spec: soft-delete.
"""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from time import sleep as pause
from typing import TYPE_CHECKING

from mooring.clock import parse_ttl
from mooring.errors import (
    ConcurrentModificationError,
    InvalidNameError,
    MooringError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    NotFoundError,
    ProtectedError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.hints import suggest
from mooring.iceberg.connection import TRASH
from mooring.iceberg.entries import forgotten_name, keeps_bytes, release
from mooring.identifiers import ObjectId, quote
from mooring.namespace.api import PurgeReport
from mooring.namespace.presence import already_there
from mooring.namespace.properties import PROTECTED, RETENTION
from mooring.namespace.purging import is_over
from mooring.namespace.settings import DEFAULT_TTL_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mooring.iceberg.client import LoadedTable
    from mooring.iceberg.connection import Connection
    from mooring.iceberg.table import IcebergTable
    from mooring.namespace.api import PurgeProgress, Ttl

__all__ = ["Dropped", "Trash", "rename"]

_DROPPED, _PURGING = "d", "p"
_NAME = re.compile(r"([dp])_([0-9a-f]+)_([0-9a-f]+|n)_([0-9a-f]{12})_([0-9a-v]+)")
_LONGEST = 255
_RENAME = "/v1/{prefix}/tables/rename"
_ATTEMPTS = 5
_FIRST_PAUSE_S = 0.05
_METADATA_DIR = "metadata"
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Dropped:
    """A table in the trash.

    Attributes:
        id: What it was called.
        at_ms: When it was dropped.
        ttl_ms: How long it stays; None is for ever.
        nonce: Tells it from others that were called the same.
        is_purging: Whether a purge has begun, and there is no way back.
    """

    id: ObjectId
    at_ms: int
    ttl_ms: int | None
    nonce: str
    is_purging: bool = False

    @property
    def expires_at_ms(self) -> int | None:
        """When its time is over."""
        return None if self.ttl_ms is None else self.at_ms + self.ttl_ms

    @property
    def name(self) -> str:
        """Its name in the trash.

        Raises:
            InvalidNameError: it would be longer than servers take.
        """
        kind = _PURGING if self.is_purging else _DROPPED
        ttl = "n" if self.ttl_ms is None else f"{self.ttl_ms:x}"
        called = base64.b32hexencode("\x1f".join(self.id.names).encode()).decode()
        name = f"{kind}_{self.at_ms:x}_{ttl}_{self.nonce}_{called.rstrip('=').lower()}"
        if len(name) > _LONGEST:
            msg = (
                f"the identifier {quote(str(self.id))} is too long to be kept in the trash of an"
                " Iceberg catalog: give the table a shorter name first"
            )
            raise InvalidNameError(msg)
        return name

    @classmethod
    def parse(cls, name: str) -> Dropped | None:
        """Read a name in the trash; None for one that is not ours."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        text = match[5].upper()
        try:
            called = base64.b32hexdecode(text + "=" * (-len(text) % 8)).decode()
        except ValueError:
            return None
        ttl = None if match[3] == "n" else int(match[3], 16)
        id_ = ObjectId(tuple(called.split("\x1f")))
        return cls(id_, int(match[2], 16), ttl, match[4], match[1] == _PURGING)

    def is_over(self, now_ms: int) -> bool:
        """Whether its time is over; a purge that was cut off is to be finished."""
        return is_over(self.expires_at_ms, now_ms, purging=self.is_purging)


class Trash:
    """The dropped tables of a catalog."""

    def __init__(self, connection: Connection) -> None:
        """Keep the trash of a catalog."""
        self._connection = connection
        self._is_ready = False

    # -- reading ---------------------------------------------------------------------------------

    def read(self) -> list[Dropped]:
        """Return all that is in the trash, sorted by identifier, the oldest drop first."""
        try:
            names = self._connection.client.list_tables((TRASH,))
        except NamespaceNotFoundError:
            return []
        found = [one for one in map(Dropped.parse, names) if one is not None]
        return sorted(found, key=lambda one: (one.id, one.at_ms, one.nonce))

    def of(self, table: ObjectId) -> list[Dropped]:
        """Return what was dropped of a name, the oldest first."""
        return [one for one in self.read() if one.id == table]

    def revivable(self, table: ObjectId) -> Dropped | None:
        """Return the newest drop of a name that can come back."""
        return next((one for one in self.of(table)[::-1] if not one.is_purging), None)

    # -- dropping and bringing back --------------------------------------------------------------

    def drop(self, table: IcebergTable, ttl: Ttl | None) -> Dropped:
        """Move a live table into the trash.

        Raises:
            ProtectedError: it is protected.
            UnsupportedError: the server cannot rename.
        """
        self.require_renaming(f"drop {table.what} so that it could come back")
        self.require_unprotected(table)
        clock, ids = self._connection.clock, self._connection.ids
        ttl_ms = self._default_ttl_ms(table.id.parent) if ttl is None else ttl.ms
        dropped = Dropped(table.id, clock.now_ms(), ttl_ms, ids.new_id()[:12])
        self._move_in(table.id, dropped.name)
        return dropped

    def forget(self, table: IcebergTable) -> IcebergTable:
        """Let a live table's entry go for good, and keep its bytes; return what had the name.

        Where the server can rename, that decides, and the entry goes under a name that nobody
        looks for; a crash in between leaves it there.

        Raises:
            ProtectedError: the table is protected.
        """
        self.require_unprotected(table)
        connection = self._connection
        name = forgotten_name(connection)
        try:
            self.require_renaming(f"forget {table.what}")
            self._move_in(table.id, name.name)
        except UnsupportedError:
            self._drop_entry(table)
            return table
        # Others may have given the name to another table since it was looked at.
        with suppress(MooringError):
            loaded = connection.client.load_table((TRASH,), name.name, refs_only=True)
            table = connection.read(table.id, loaded)
        release(connection, name, table)
        return table

    def retract(self, table: IcebergTable) -> None:
        """Take back a table that was only declared; one that has rows by now stays.

        A server drops whatever has the name. So the entry is moved away first, where nobody writes
        to it, and looked at there.
        """
        self.require_renaming(f"take {table.what} back")
        # Older than every drop: an undrop does not come upon it.
        dropped = Dropped(table.id, 0, None, self._connection.ids.new_id()[:12])
        self._move_in(table.id, dropped.name)
        place = ObjectId((TRASH, dropped.name))
        loaded = self._connection.client.load_table((TRASH,), dropped.name)
        found = self._connection.read(table.id, loaded)
        is_empty = found.version is None and not found.records().newest_first(1)
        if is_empty and found.uuid == table.uuid:
            self.purge(dropped, None)
        else:
            rename(self._connection, place, table.id)

    def _drop_entry(self, table: IcebergTable) -> None:
        """Let an entry go on a server that cannot rename.

        Raises:
            UnsupportedError: the server would delete the table's files with it.
        """
        self._make_namespace()
        if not keeps_bytes(self._connection, table):
            msg = (
                f"this Iceberg catalog deletes the files of a table with its entry, so {table.what}"
                " cannot be deregistered"
            )
            raise UnsupportedError(msg)
        self._connection.client.drop_table(table.id.parent.names, table.id.name)

    def _move_in(self, table: ObjectId, name: str) -> None:
        # Some servers rename into a namespace that is not there, and then never list it.
        self._make_namespace()
        rename(self._connection, table, ObjectId((TRASH, name)), is_fresh=True)

    def require_unprotected(self, table: IcebergTable) -> None:
        """Refuse to let go of a table that is protected.

        Raises:
            ProtectedError: it is.
        """
        if table.properties.get(PROTECTED) == "true":
            lift = suggest("table unprotect", str(table.id))
            msg = f'{table.what} is protected; lift that first with "{lift}"'
            raise ProtectedError(msg)
        for namespace, properties in self._around(table.id.parent):
            if properties.get(PROTECTED) == "true":
                shown = quote(str(namespace))
                msg = f"{table.what} is protected by namespace {shown}: lift its protection first"
                raise ProtectedError(msg)

    def require_renaming(self, purpose: str) -> None:
        """Refuse where the server says that it cannot rename.

        Raises:
            UnsupportedError: it cannot.
        """
        if not self._connection.client.offers("POST", _RENAME):
            raise _no_renames(purpose)

    def _default_ttl_ms(self, namespace: ObjectId) -> int | None:
        """Return how long what is dropped in a namespace stays: the nearest that says so counts."""
        said = (properties.get(RETENTION) for _, properties in self._around(namespace))
        retention = next((text for text in said if text is not None), None)
        return DEFAULT_TTL_MS if retention is None else parse_ttl(retention)

    def _around(self, namespace: ObjectId) -> Iterator[tuple[ObjectId, Mapping[str, str]]]:
        """Go through a namespace and those around it, with their properties, the inmost first."""
        while not namespace.is_root:
            with suppress(NamespaceNotFoundError):
                yield namespace, self._connection.client.load_namespace(namespace.names)
            namespace = namespace.parent

    def _make_namespace(self) -> None:
        if self._is_ready:
            return
        with suppress(NamespaceAlreadyExistsError):
            self._connection.client.create_namespace((TRASH,), {})
        self._is_ready = True

    def undrop(self, table: ObjectId, new: ObjectId) -> IcebergTable:
        """Bring the newest drop of a table back, and return it.

        Raises:
            TableNotFoundError: nothing dropped has this identifier.
            TableAlreadyExistsError: the name is taken.
        """
        # Looked at before the trash: a drop that makes the name free later is not in it, and an
        # older one would come back in its place.
        is_taken = self._is_taken(new)
        found = self.revivable(table)
        if found is None:
            raise self._nothing(table)
        if is_taken and self._is_taken(new):
            raise already_there(new)
        if is_taken:
            msg = f"table {quote(str(new))} was dropped or renamed just now: try again"
            raise ConcurrentModificationError(msg)
        try:
            loaded = rename(self._connection, ObjectId((TRASH, found.name)), new)
        except TableNotFoundError:
            msg = f"table {quote(str(table))} was brought back or purged by somebody else"
            raise ConcurrentModificationError(msg) from None
        return self._connection.read(new, loaded)

    def _is_taken(self, name: ObjectId) -> bool:
        return self._connection.client.table_exists(name.parent.names, name.name)

    def _nothing(self, table: ObjectId) -> TableNotFoundError:
        if self.of(table):
            msg = f"table {quote(str(table))} is being purged: it cannot come back"
            return TableNotFoundError(msg)
        return TableNotFoundError(f"nothing dropped is named {quote(str(table))}")

    # -- purging ---------------------------------------------------------------------------------

    def purge(self, dropped: Dropped, progress: PurgeProgress | None) -> bool:
        """Delete a dropped table; False where somebody else brought it back or purged it.

        Its files go only where its directory was made for it: what was registered may be known
        to others, too.
        """
        connection = self._connection
        claimed = replace(dropped, is_purging=True)
        if not dropped.is_purging:
            try:
                rename(connection, ObjectId((TRASH, dropped.name)), ObjectId((TRASH, claimed.name)))
            except NotFoundError:
                return False
        try:
            loaded = connection.client.load_table((TRASH,), claimed.name)
        except NotFoundError:
            return not dropped.is_purging  # somebody else finished it
        table = connection.read(dropped.id, loaded)
        if not table.owns_location:
            name = forgotten_name(connection)
            rename(connection, ObjectId((TRASH, claimed.name)), name)
            release(connection, name, table)
            return True
        # The server reads its own files until it has forgotten the table.
        _delete_files(table, progress, is_kept=_METADATA_DIR)
        with suppress(NotFoundError):
            connection.client.drop_table((TRASH,), claimed.name)
        _delete_files(table, progress)
        table.place.store.prune(table.place.directory)
        return True

    def purge_over(
        self, progress: PurgeProgress | None, tables: Iterable[ObjectId] | None = None
    ) -> PurgeReport:
        """Purge what is over, of these tables or of all; a failure does not keep others from it."""
        wanted, now_ms = None if tables is None else set(tables), self._connection.clock.now_ms()
        report = PurgeReport([], {})
        for one in self.read():
            if not one.is_over(now_ms) or (wanted is not None and one.id not in wanted):
                continue
            try:
                if self.purge(one, progress):
                    report.purged.append(one.id)
            except MooringError as exc:
                report.failed[one.id] = exc
        return report


def rename(
    connection: Connection, source: ObjectId, target: ObjectId, *, is_fresh: bool = False
) -> LoadedTable:
    """Give a table another name, and tell the truth about what became of it.

    Args:
        connection: The server.
        source: Its name.
        target: The name to be.
        is_fresh: Whether nobody else knows the name to be.

    Returns:
        The table as it was found under its former name; others may change it at once.

    Raises:
        TableNotFoundError: there is no such table.
        NamespaceNotFoundError: there is no such namespace.
        TableAlreadyExistsError: the name is taken.
        UnsupportedError: the server cannot rename.
        UnknownOutcomeError: the server never said what was decided.
    """
    found = _find(connection, source)
    try:
        _send(connection, source, target)
    except UnsupportedError as exc:
        raise _no_renames(f"give table {quote(str(source))} another name", exc) from exc
    except UnknownOutcomeError as exc:
        # Sent once more, it could undo what somebody did since: drop what was brought back.
        if not _is_at(connection, target, found):
            msg = f"the Iceberg catalog never said whether table {quote(str(source))} was renamed:"
            raise UnknownOutcomeError(f"{msg} look before trying again") from exc
    except (NotFoundError, TableAlreadyExistsError) as exc:
        # What stands between may have sent it twice, and answered what came of the second.
        if not is_fresh or not _is_at(connection, target, found):
            raise _missing_namespace(connection, target) or exc from exc
    return found


def _send(connection: Connection, source: ObjectId, target: ObjectId) -> None:
    """Ask for a rename, and again where the server says that it did nothing."""
    ends = (source.parent.names, source.name), (target.parent.names, target.name)
    for attempt in range(_ATTEMPTS):
        if attempt:
            pause(_FIRST_PAUSE_S * 2 ** (attempt - 1))
        try:
            connection.client.rename_table(*ends)
        except UnknownOutcomeError:
            raise
        except ServiceUnavailableError:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _missing_namespace(connection: Connection, target: ObjectId) -> NamespaceNotFoundError | None:
    """Tell whether it is the target's namespace that is missing: servers word that in many ways."""
    try:
        connection.client.load_namespace(target.parent.names)
    except NamespaceNotFoundError as exc:
        return exc
    except MooringError:
        return None
    return None


def _find(connection: Connection, table: ObjectId) -> LoadedTable:
    try:
        return connection.client.load_table(table.parent.names, table.name, refs_only=True)
    except NotFoundError as exc:
        raise TableNotFoundError(f"there is no table {quote(str(table))}") from exc


def _is_at(connection: Connection, name: ObjectId, table: LoadedTable) -> bool:
    """Whether a name is known to be a table's."""
    try:
        found = _find(connection, name).metadata
    except (TableNotFoundError, ServiceUnavailableError):
        return False
    told = table.metadata
    return all(found.get(key) == told.get(key) for key in ("table-uuid", "location"))


def _no_renames(purpose: str, failure: Exception | None = None) -> UnsupportedError:
    told = f" ({failure})" if failure else ""
    return UnsupportedError(
        f"this Iceberg catalog cannot rename tables{told}, so it cannot {purpose}: deregister the"
        " table, which keeps its bytes, and register it again to have it back"
    )


def _delete_files(
    table: IcebergTable, progress: PurgeProgress | None, *, is_kept: str | None = None
) -> None:
    """Delete the files of a table, some at a time."""
    place = table.place
    kept = place.path(f"{is_kept}/") if is_kept else None
    doomed = [
        meta
        for meta in place.store.list_prefix(place.directory)
        if kept is None or not meta.path.startswith(kept)
    ]
    files = size_bytes = 0
    for start in range(0, len(doomed), _BATCH):
        batch = doomed[start : start + _BATCH]
        place.store.delete(meta.path for meta in batch)
        files += len(batch)
        size_bytes += sum(meta.size_bytes for meta in batch)
        if progress is not None:
            progress(table.id, files, size_bytes)
