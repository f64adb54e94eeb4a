"""Making a version of a table whose snapshots an Iceberg catalog decides about.

The manifest is written beside the others, under a name of its own, before anybody is asked. The
server's answer to one request decides: it lands only where the version before is still the newest.
Then the manifest gets the name by which readers of the directory find it; whoever comes next does
that for a writer who died in between, before anything is built on it. So is a lost answer looked
up before the request is repeated: each version carries an id of its writer's.

Spec: iceberg-namespace, "Requirement for Implementation Managed Table".
"""

from __future__ import annotations

import re
from contextlib import suppress
from time import sleep as pause
from typing import TYPE_CHECKING, Any

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    ServiceUnavailableError,
    TableNotFoundError,
    UnknownOutcomeError,
)
from mooring.iceberg.shown_schema import show
from mooring.iceberg.snapshots import (
    MAIN,
    Snapshot,
    current_version,
    find_snapshot,
    newest_snapshot,
)
from mooring.identifiers import quote
from mooring.tables.api import VersionRecord
from mooring.tables.final_manifests import put_final
from mooring.tables.manifest_message import schema_digest
from mooring.tables.records import final_name, key_for_lance
from mooring.tables.versions import VERSIONS_DIR, list_versions, manifest_name, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mooring.clock import Clock, IdSource
    from mooring.iceberg.table import IcebergTable
    from mooring.namespace.table_operations import CreateVersion

__all__ = [
    "KEPT_STAGED",
    "VersionCommit",
    "is_finished",
    "land",
    "on_current",
    "stored_path",
    "tell",
]

_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.05
_PLACEHOLDER = "lance"
_STAGED = re.compile(r"([0-9]+\.manifest)-.+")
# A reader who was told of a staged manifest may still open it when so many more were made.
KEPT_STAGED = 16


class VersionCommit:
    """A version in the making: prepared, landed with others or alone, then finished."""

    def __init__(
        self, table: IcebergTable, wanted: CreateVersion, *, clock: Clock, ids: IdSource
    ) -> None:
        """Make a version.

        Args:
            table: The table, as it was looked up just now.
            wanted: What was asked for.
            clock: Stamps it.
            ids: Names it.
        """
        self.table = table
        self.wanted = wanted
        self._clock = clock
        self._id = ids.new_id()
        self._records = table.records()
        self._staged = ""
        self._body = b""
        self.snapshot: Snapshot | None = None
        self.has_new_schema = False

    def prepare(self) -> None:
        """Look at the manifest, and finish the version before.

        Raises:
            ConcurrentModificationError: the version exists.
            InvalidInputError: there is no such manifest, or the number leaves a gap.
        """
        staged = self._records.staged_path(self.wanted.manifest_path)
        self._require_next()
        self._require_known()
        self._staged = staged
        before = finalize(self.table)
        body = self.table.place.store.get(staged)
        if body is None:
            msg = f"there is no manifest {quote(self.wanted.manifest_path)} that could be version"
            raise InvalidInputError(f"{msg} {self.wanted.version}")
        self._body = body
        if parse_manifest(_stem(staged.rpartition("/")[2])) != self.wanted.version:
            self._rename(staged, body)
        self.table.place.store.sync([self._staged])
        self.snapshot = Snapshot(
            self.wanted.version,
            # A server refuses times before those that it knows; clocks differ.
            max(self._clock.now_ms(), int(self.table.metadata.get("last-updated-ms") or 0)),
            f"{VERSIONS_DIR}/{self._staged.rpartition('/')[2]}",
            len(body),
            commit_id=self._id,
            given=dict(self.wanted.metadata or {}),
            schema_digest=schema_digest(staged, body),
        )
        self.has_new_schema = before is None or before.schema_digest != self.snapshot.schema_digest

    def _rename(self, staged: str, body: bytes) -> None:
        """Name a manifest for its version, so that its name alone tells what it is."""
        store, directory = self.table.place.store, staged.rpartition("/")[0]
        self._staged = f"{directory}/{manifest_name(self.wanted.version)}-{self._id}"
        store.put(self._staged, body)
        store.delete([staged])

    def _require_next(self) -> None:
        version, newest = self.wanted.version, self.table.version
        if version < 1:
            msg = f"versions begin with 1, and {version} was asked for"
            raise InvalidInputError(msg)
        if newest is not None and version > newest + 1:
            msg = f"versions have no gaps: after {newest} comes {newest + 1}, not {version}"
            raise InvalidInputError(msg)
        # Also where its records were deleted: no number is given out again.
        if version <= max(newest or 0, int(self.table.metadata.get("last-sequence-number") or 0)):
            raise self.taken()

    def _require_known(self) -> None:
        """Refuse a first version where others lie already: it would take the place of the oldest.

        A table that is registered has an entry before the entry names its newest version.
        """
        if self.table.version is None and self._records.newest_first(1):
            msg = (
                f"where {self.table.what} lies are versions that the Iceberg catalog does not"
                " record: it is being registered; if that was cut off, deregister it and register"
                " it again"
            )
            raise ConcurrentModificationError(msg)

    def change(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the requirements and updates that make it."""
        assert self.snapshot is not None  # noqa: S101  # prepared before
        newest = self.table.version
        updates = self.snapshot.become_newest(self.table.metadata, newest)
        requirements = on_current(self.table)
        if newest is None:
            # Not all servers check that there is no snapshot yet; that no field was added, all do.
            requirements.append(_no_field_added(self.table))
            updates += _field_added(self.table)
        return requirements, updates

    def is_landed(self, metadata: Mapping[str, Any]) -> bool | None:
        """Tell by a fresh look whether it was made; None where that cannot be told, or not yet."""
        found = find_snapshot(metadata, self.wanted.version)
        if found is not None:
            return found.commit_id == self._id
        if (current_version(metadata) or 0) < self.wanted.version:
            return None
        # Some servers keep no snapshot but the newest. Whoever built on this version gave its
        # manifest the final name before.
        final = self.table.place.store.get(_final(self._staged, self.wanted.version))
        return None if final is None else final == self._body

    def finish(self) -> VersionRecord:
        """Give the manifest the name by which readers of the directory find it."""
        assert self.snapshot is not None  # noqa: S101  # prepared before
        store = self.table.place.store
        # What follows from the commit can be done by whoever comes later as well.
        is_final = False
        with suppress(ServiceUnavailableError):
            put_final(store, _final(self._staged, self.wanted.version), self._body)
            is_final = True
            if self.wanted.version % KEPT_STAGED == 0:
                store.delete(_old_staged(self.table, self.wanted.version - KEPT_STAGED))
        return tell(self.table, self.snapshot, is_final=is_final)

    def abandon(self) -> None:
        """Leave nothing of a version that certainly did not come about."""
        if self._staged:
            with suppress(MooringError):
                self.table.place.store.delete([self._staged])

    def taken(self) -> ConcurrentModificationError:
        """Word that another writer was first."""
        version = self.wanted.version
        msg = f"version {version} of {self.table.what} was made by another writer: try again on"
        return ConcurrentModificationError(f"{msg} the newest")


def on_current(table: IcebergTable) -> list[dict[str, Any]]:
    """Return what must still hold when a change of a table's versions lands."""
    newest = {"type": "assert-ref-snapshot-id", "ref": MAIN, "snapshot-id": table.version}
    return [*table.same, newest]


def _no_field_added(table: IcebergTable) -> dict[str, Any]:
    last = int(table.metadata.get("last-column-id") or 0)
    return {"type": "assert-last-assigned-field-id", "last-assigned-field-id": last}


def _field_added(table: IcebergTable) -> list[dict[str, Any]]:
    """Return what makes a second first version fail; the true schema is shown right after."""
    number = int(table.metadata.get("last-column-id") or 0) + 1
    field = {"id": number, "name": _PLACEHOLDER, "required": False, "type": "string"}
    return show(table.metadata, {"type": "struct", "fields": [field]})


def land(
    commits: Sequence[VersionCommit],
    send: Callable[[], object],
    look: Callable[[VersionCommit], Mapping[str, Any]],
) -> None:
    """Have versions made, all by one request, and tell the truth about what became of them.

    Args:
        commits: What is to be made.
        send: Sends the request; the same whenever it is called.
        look: Asks the server for a table's metadata, with all its snapshots; where its name means
            another table by now, the table is not found.

    Raises:
        ConcurrentModificationError: another writer was first.
        TableNotFoundError: the table is gone.
        UnknownOutcomeError: the server never said what was decided.
    """
    _Landing(commits, send, look).run()


class _Landing:
    """One request on its way, until it is known what became of it."""

    def __init__(
        self,
        commits: Sequence[VersionCommit],
        send: Callable[[], object],
        look: Callable[[VersionCommit], Mapping[str, Any]],
    ) -> None:
        self._commits = commits
        self._send = send
        self._look = look
        # After an answer that never came, none of the later ones can be believed alone.
        self._unheard: MooringError | None = None
        self._last: MooringError | None = None

    def run(self) -> None:
        for attempt in range(_ATTEMPTS):
            if attempt:
                pause(_FIRST_PAUSE_S * 2 ** (attempt - 1))
            if self._try():
                return
        if self._unheard is None and self._last is not None:
            raise self._last
        what = ", ".join(
            f"version {one.wanted.version} of {one.table.what}" for one in self._commits
        )
        msg = f"the Iceberg catalog never said whether {what} was made: look before trying again"
        raise UnknownOutcomeError(msg) from self._unheard

    def _try(self) -> bool:
        try:
            self._send()
        except ServiceUnavailableError as exc:
            self._last = exc
            if isinstance(exc, UnknownOutcomeError):
                self._unheard = exc
            return self._unheard is not None and self._is_settled(exc)
        except ConcurrentModificationError as exc:
            # It may be the echo of one's own request, or of a change of something else.
            self._last = exc
            return self._is_settled(exc)
        except MooringError as exc:
            if self._unheard is None:
                raise
            if not self._is_settled(exc):
                raise self._unheard from exc
        return True

    def _is_settled(self, failure: MooringError) -> bool:
        """Tell whether the versions were made; False where nothing is decided.

        Raises:
            ConcurrentModificationError: others' were.
        """
        try:
            found = [one.is_landed(self._look(one)) for one in self._commits]
        except TableNotFoundError:
            # What was asked for before may be in it, wherever it is now.
            raise self._unheard or failure from None
        except ServiceUnavailableError as exc:
            self._unheard = self._unheard or exc
            return False
        # One request makes all of them or none.
        if any(one is False for one in found):
            raise self._commits[0].taken() from failure
        return any(found)


def finalize(table: IcebergTable) -> Snapshot | None:
    """Give the newest version's manifest its final name, where its writer did not come to it.

    Returns:
        The newest version; None where there is none.
    """
    newest = newest_snapshot(table.metadata)
    if newest is None or newest.manifest_path is None:
        return newest
    if is_finished(table, newest):
        return newest
    store, path = table.place.store, stored_path(table, newest)
    body = store.get(path)
    if body is None:
        return newest
    try:
        put_final(store, _final(path, newest.version), body)
    except UnknownOutcomeError as exc:
        # Nothing was asked for yet.
        msg = f"version {newest.version} of {table.what} could not be completed: {exc}"
        raise ServiceUnavailableError(msg) from exc
    return newest


def is_finished(table: IcebergTable, snapshot: Snapshot) -> bool:
    """Whether a version's manifest has its final name; what others wrote there does not count."""
    path = stored_path(table, snapshot)
    final = _final(path, snapshot.version)
    found = None if path == final else table.place.store.head(final)
    if found is None:
        return path == final
    return snapshot.size_bytes is None or found.size_bytes == snapshot.size_bytes


def tell(table: IcebergTable, snapshot: Snapshot, *, is_final: bool = False) -> VersionRecord:
    """Return a version as it is told: by what was staged, or by its final name."""
    path = stored_path(table, snapshot)
    if is_final:
        path = _final(path, snapshot.version)
    return VersionRecord(
        snapshot.version,
        key_for_lance(table.place.store.location(path)),
        snapshot.size_bytes,
        snapshot.e_tag,
        snapshot.at_ms,
        dict(snapshot.given),
    )


def stored_path(table: IcebergTable, snapshot: Snapshot) -> str:
    """Return where a version's manifest was written, in the table's store.

    Other programs may record versions, too, and not say where: then it has its final name. What
    they say is read only as the name of a file among the versions.
    """
    directory = f"{table.place.directory}/{VERSIONS_DIR}"
    told = (snapshot.manifest_path or "").rpartition("/")[2]
    if parse_manifest(_stem(told)) == snapshot.version:
        return f"{directory}/{told}"
    known = list_versions(table.place.store, table.place.directory)
    return known.get(snapshot.version, f"{directory}/{manifest_name(snapshot.version)}")


def _final(path: str, version: int) -> str:
    """Return the path by which readers of the directory find a manifest."""
    return f"{path.rpartition('/')[0]}/{final_name(path, version, counting_down=True)}"


def _stem(name: str) -> str:
    """Return the final name of a manifest that is staged, as far as it is named for one."""
    return name.partition(".manifest")[0] + ".manifest"


def _old_staged(table: IcebergTable, version: int) -> list[str]:
    """Find what was staged for versions so old that nobody opens it by that name any more."""
    directory = f"{table.place.directory}/{VERSIONS_DIR}"
    found = []
    for name in table.place.store.list_dir(directory).files:
        match = _STAGED.fullmatch(name)
        staged = parse_manifest(match[1]) if match else None
        if staged is not None and staged <= version:
            found.append(f"{directory}/{name}")
    return found
