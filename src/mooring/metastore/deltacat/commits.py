"""Commits that deltacat makes by its own rules: found by their logs, read as records of ours.

The log of a transaction commits it, and names the files that it wrote. Logs lie by the minute in
which their transactions began, so whoever has seen all of them looks again only at the last hour,
and at those transactions that were running then.

Of two revisions with one number its readers see the one whose name comes later, whichever was
committed first: so the other is left out here as well.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mooring.metastore.deltacat import codec
from mooring.metastore.deltacat.kept import as_dict, as_list
from mooring.metastore.deltacat.layout import (
    PAUSED_DIR,
    RUNNING_DIR,
    SUCCESS_DIR,
    canonical_digest,
    is_txn_id,
    log_dir,
    minute_parts,
    parse_file,
    parse_log,
    start_ns,
)
from mooring.metastore.entry import Change, NameChange, Record, Remapped
from mooring.metastore.keys import touched_keys, written_keys
from mooring.metastore.layout import Operation
from mooring.metastore.locator import Kind
from mooring.metastore.model import decode_object, encode_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mooring.metastore.deltacat.kept import Dictionary
    from mooring.metastore.deltacat.layout import FileName
    from mooring.metastore.timeline import Ids, Parts, Timeline
    from mooring.store import Store

__all__ = ["AUTHOR", "DeltacatCommits"]

AUTHOR = "deltacat"
_NS_PER_MS = 1_000_000
# Clocks of those who commit differ: so much before the newest start is looked at again.
_SLACK_NS = 5 * 60 * 1_000_000_000
_AT_ONCE = 16
_RUNNING = "running:"
_NAMED = {Kind.NAMESPACE, Kind.TABLE}


@dataclass(frozen=True, slots=True)
class _Commit:
    txn_id: str
    end_ns: int
    path: str


@dataclass(frozen=True, slots=True)
class _Revision:
    name: FileName
    change: Change
    names: frozenset[Parts]


class DeltacatCommits:
    """What deltacat committed to a store."""

    name = AUTHOR

    def __init__(self, store: Store) -> None:
        """Look at a store; nothing is read yet."""
        self._store = store
        self._known: set[str] = set()
        self._newest_ns = 0
        self._from_ns = 0
        self._floor_ns = 0
        self._watched: set[str] = set()
        self._found: list[_Commit] = []
        self._latest: dict[Ids, tuple[int, str, str]] = {}

    # -- what is known ---------------------------------------------------------------------------

    def begin_at(self, recent: Iterable[str]) -> None:
        """Begin with the transactions that a checkpoint names; what is older is in it."""
        for name in recent:
            if name.startswith(_RUNNING):
                self._watched.add(name.removeprefix(_RUNNING))
            else:
                self.note([name])
        self._from_ns = self._floor_ns = min(map(start_ns, self._known), default=0)

    def recent(self) -> tuple[str, ...]:
        """Return committed transactions of the last minutes, and those that are running."""
        since = self._newest_ns - _SLACK_NS
        late = (txn_id for txn_id in self._known if start_ns(txn_id) >= since)
        running = (f"{_RUNNING}{txn_id}" for txn_id in self._watched)
        return (*sorted(late), *sorted(running))

    def note(self, txn_ids: Iterable[str]) -> None:
        """Take transactions as known: they are in the chain."""
        for txn_id in txn_ids:
            self._known.add(txn_id)
            self._newest_ns = max(self._newest_ns, start_ns(txn_id))

    def running(self) -> list[str]:
        """Return the transactions that were not over at the last look."""
        return sorted(self._watched)

    # -- looking ---------------------------------------------------------------------------------

    def look(self) -> bool:
        """Look for commits that are not known; tell whether there are any."""
        # First who is running: whoever is not any more has a log by now, or never will.
        listed = (self._store.list_dir(path).files for path in (RUNNING_DIR, PAUSED_DIR))
        running = {name for names in listed for name in names if is_txn_id(name)}
        logs = [*self._found, *self._list(), *self._logs_of(self._watched - running)]
        self._watched = running
        found = {log.txn_id: log for log in logs if log.txn_id not in self._known}
        self._found = sorted(found.values(), key=lambda log: (log.end_ns, log.txn_id))
        newest = max((start_ns(txn_id) for txn_id in found), default=0)
        self._from_ns = max(self._newest_ns, newest) - _SLACK_NS
        return bool(found)

    def _list(self) -> list[_Commit]:
        """List logs from the last hour on; at the beginning all of them."""
        if self._from_ns <= 0:
            paths = [meta.path for meta in self._store.list_prefix(SUCCESS_DIR)]
        else:
            paths = list(self._walk(SUCCESS_DIR, minute_parts(self._from_ns)[:-1]))
        logs = [_Commit(*parsed, path) for path in paths if (parsed := parse_log(path))]
        return [log for log in logs if start_ns(log.txn_id) >= self._floor_ns]

    def _walk(self, path: str, since: tuple[str, ...]) -> Iterator[str]:
        """Go through the logs below a directory that began in or after an hour."""
        if not since:
            yield from (meta.path for meta in self._store.list_prefix(path))
            return
        for name in sorted(self._store.list_dir(path).directories):
            if name == since[0]:
                yield from self._walk(f"{path}/{name}", since[1:])
            elif name > since[0] and name.isdecimal():
                yield from (meta.path for meta in self._store.list_prefix(f"{path}/{name}"))

    def _logs_of(self, txn_ids: set[str]) -> list[_Commit]:
        paths = [
            f"{log_dir(txn_id)}/{name}"
            for txn_id in sorted(txn_ids)
            for name in self._store.list_dir(log_dir(txn_id)).files
        ]
        return [_Commit(*parsed, path) for path in paths if (parsed := parse_log(path))]

    # -- reading ---------------------------------------------------------------------------------

    def commits(self, timeline: Timeline) -> Iterator[Record]:
        """Go through what was found and is not known, in the order in which it was committed."""
        fresh = [log for log in self._found if log.txn_id not in self._known]
        logs = self._read_logs(fresh)
        paths = self._paths(logs)
        wanted = [path for own in paths.values() for path in own if path.endswith(".mpk")]
        bodies = self._get(wanted)
        for log in fresh:
            files = _Files(paths[log.txn_id], bodies)
            record = self._record(log, logs[log.txn_id], files, timeline)
            self.note([log.txn_id])
            yield record
        self._found = []

    def _get(self, paths: list[str]) -> dict[str, bytes | None]:
        if not paths:
            return {}
        with ThreadPoolExecutor(_AT_ONCE) as readers:
            return dict(zip(paths, readers.map(self._store.get, paths), strict=True))

    def _read_logs(self, logs: list[_Commit]) -> dict[str, Dictionary]:
        bodies = self._get([log.path for log in logs])
        return {log.txn_id: _decode(bodies[log.path]) for log in logs}

    def _paths(self, logs: dict[str, Dictionary]) -> dict[str, list[str]]:
        """Return the files that transactions wrote, by their logs, or else by their names."""
        found = {txn_id: _written(log) for txn_id, log in logs.items()}
        # A log that is empty or cut off commits all the same.
        silent = {txn_id for txn_id, log in logs.items() if not log}
        for meta in self._store.list_prefix("") if silent else ():
            name = parse_file(meta.path)
            if name is not None and name.txn_id in silent:
                found[name.txn_id].append(meta.path)
        return found

    def _record(
        self, commit: _Commit, log: Dictionary, files: _Files, timeline: Timeline
    ) -> Record:
        revisions = self._revisions(files, timeline)
        changes, remapped = _with_names(revisions, files, timeline)
        message = log.get("commit_message")
        return Record(
            txn_id=commit.txn_id,
            by=AUTHOR,
            start_ms=start_ns(commit.txn_id) // _NS_PER_MS,
            end_ms=commit.end_ns // _NS_PER_MS,
            message=None if message is None else str(message),
            changes=changes,
            remapped=remapped,
            writes=written_keys(changes),
            touches=touched_keys(changes),
            adopted=True,
        )

    def _revisions(self, files: _Files, timeline: Timeline) -> list[_Revision]:
        found = []
        for path, name in files.names():
            body = files.bodies.get(path)
            if name.digest is not None or body is None or self._is_superseded(name, timeline):
                continue
            self._latest[name.ids] = _rank(name)
            found.append(_revision(path, name, body))
        return found

    def _is_superseded(self, name: FileName, timeline: Timeline) -> bool:
        latest = self._latest.get(name.ids)
        if latest is not None and _rank(name) < latest:
            return True
        return name.revision < timeline.revision(name.ids, timeline.seq)


@dataclass(frozen=True, slots=True)
class _Files:
    paths: list[str]
    bodies: dict[str, bytes | None]

    def names(self) -> list[tuple[str, FileName]]:
        """Return what the paths tell, in the order of their numbers."""
        parsed = [(path, name) for path in dict.fromkeys(self.paths) if (name := parse_file(path))]
        known = [(path, name) for path, name in parsed if len(name.ids) <= len(Kind)]
        return sorted(known, key=lambda one: (one[1].revision, one[0]))


def _rank(name: FileName) -> tuple[int, str, str]:
    return name.revision, name.operation.value, name.txn_id


def _revision(path: str, name: FileName, body: bytes) -> _Revision:
    kind = Kind.at(len(name.ids))
    if name.operation is Operation.DELETE:
        # What it says may be about the object that replaces this one.
        change = Change(ids=name.ids, kind=kind, operation=name.operation, revision=name.revision)
        return _Revision(name, change, frozenset())
    decoded = codec.decode(body, name.ids, path)
    change = Change(
        ids=name.ids,
        kind=kind,
        operation=name.operation,
        revision=name.revision,
        body=encode_object(decoded.value),
    )
    own = [(decoded.name,)] if kind in _NAMED else []
    return _Revision(name, change, frozenset([*own, *codec.aliases(decoded.value)]))


def _with_names(
    revisions: list[_Revision], files: _Files, timeline: Timeline
) -> tuple[tuple[Change, ...], tuple[Remapped, ...]]:
    """Give changes the names that begin or end with them."""
    changes = [revision.change for revision in revisions]
    last = {change.ids: index for index, change in enumerate(changes)}
    names: dict[int, list[NameChange]] = defaultdict(list)
    remapped = []
    for _, name in files.names():
        parent, digest = name.ids[:-1], name.digest
        if digest is None or name.revision < timeline.mapping_revision(parent, digest):
            continue
        parts = _parts_of(name.ids, digest, revisions, timeline)
        if parts is None or name.ids not in last:
            remapped.append(Remapped(name.ids, digest, name.operation, name.revision))
            continue
        is_alias = Kind.at(len(name.ids)) not in _NAMED
        mapped = NameChange(digest, parts, name.operation, name.revision, is_alias)
        names[last[name.ids]].append(mapped)
    for index, own in names.items():
        changes[index] = msgspec.structs.replace(changes[index], names=tuple(own))
    return tuple(changes), tuple(remapped)


def _parts_of(
    ids: Ids, digest: str, revisions: list[_Revision], timeline: Timeline
) -> Parts | None:
    """Return the name that a digest was made of; None where nothing tells."""
    known = set(timeline.names_of(ids, timeline.seq))
    change = timeline.find(ids, timeline.seq)
    if change is not None and change.body is not None:
        known.update(codec.aliases(decode_object(change.body, "/".join(ids))))
    for revision in revisions:
        if revision.change.ids == ids:
            known |= revision.names
    return next((parts for parts in known if canonical_digest(parts) == digest), None)


def _decode(body: bytes | None) -> Dictionary:
    try:
        return as_dict(msgspec.msgpack.decode(body or b""))
    except msgspec.DecodeError:
        return {}


def _written(log: Dictionary) -> list[str]:
    return [
        str(path)
        for operation in as_list(log.get("operations"))
        for key in ("metafile_write_paths", "locator_write_paths")
        for path in as_list(as_dict(operation).get(key))
    ]
