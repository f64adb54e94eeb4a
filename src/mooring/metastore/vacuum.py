"""Vacuum: finds and removes data that no object names.

Data is written under an id, before the transaction that names it: below ``_data/<id>/``, or as a
Lance table ``_tables/<id>.lance``. No clock decides that nobody will name it any more: the id is
given up by an entry of the chain, after which no transaction that depends on it commits, and only
then the data goes. Age only picks what to look at.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.metastore.entry import Entry
from mooring.metastore.layout import DATA_DIR, KEPT_MARKER, TABLES_DIR, parse_stage
from mooring.metastore.locator import Kind
from mooring.metastore.model import LOCATION, Delta, Stream, decode_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mooring.clock import IdSource
    from mooring.metastore.chain import CommitChain
    from mooring.metastore.entry import Change
    from mooring.metastore.model import MetaObject
    from mooring.store import ObjectMeta, Store

__all__ = ["Stray", "find_strays", "vacuum"]


@dataclass(frozen=True, slots=True)
class Stray:
    """Data that no object names.

    Attributes:
        path: A data file, or the directory of a Lance table.
        stage_id: The id that it was written under.
        size_bytes: How large it is.
        modified_ms: When it was written last.
    """

    path: str
    stage_id: str
    size_bytes: int
    modified_ms: int


class _Names:
    """The files and directories that objects name."""

    def __init__(self, store: Store) -> None:
        self._root = f"{store.location('').rstrip('/')}/"
        self._files: set[str] = set()
        self._directories: set[str] = set()

    def add(self, changes: Iterable[Change]) -> None:
        """Note what objects name, as far as they are not deleted."""
        for change in changes:
            if change.kind in {Kind.DELTA, Kind.STREAM} and change.body is not None:
                self._note(decode_object(change.body, "/".join(change.ids)))

    def _note(self, value: MetaObject) -> None:
        match value:
            case Delta(manifest=manifest):
                for file in manifest.files:
                    self._note_file(self._relative(file.path))
            case Stream(properties=properties) if LOCATION in properties:
                directory = self._relative(properties[LOCATION])
                self._directories.add(directory)
                # One that lies within what was written under an id keeps all of that.
                stage = parse_stage(f"{directory}/")
                if stage is not None:
                    self._directories.add(stage[0])
            case _:
                pass

    def _note_file(self, path: str) -> None:
        self._files.add(path)
        stage = parse_stage(path)
        if stage is not None and _is_table(stage[0]):
            self._directories.add(stage[0])

    def __contains__(self, path: str) -> bool:
        """Whether a path is named, or a directory that it lies in."""
        parts = path.split("/")
        above = {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
        return path in self._files or bool(above & self._directories)

    def _relative(self, path: str) -> str:
        """Return a path relative to the root also where it was written out in full."""
        return path.removeprefix(self._root).rstrip("/")


def find_strays(store: Store, chain: CommitChain, written_before_ms: int) -> list[Stray]:
    """List the data that no object names and to which nothing was added for a while.

    What a reader of any state since then finds stays: a delta that was deleted a moment ago may
    have been read the moment before.
    """
    listed = [
        stray
        for directory in (DATA_DIR, TABLES_DIR)
        for stray in _group(store.list_prefix(directory), written_before_ms)
    ]
    # After the files: whoever commits meanwhile is found.
    newest = chain.snapshot()
    names = _Names(store)
    names.add(newest.timeline.alive(newest.seq))
    strays = [stray for stray in listed if stray.path not in names]
    if strays:
        _add_recent(names, chain, newest.seq, written_before_ms)
    return [stray for stray in strays if stray.path not in names]


def _group(files: Iterable[ObjectMeta], written_before_ms: int) -> Iterator[Stray]:
    """Go through what was written under ids that nothing was written under since."""
    stages: dict[tuple[str, str], list[ObjectMeta]] = defaultdict(list)
    for meta in files:
        stage = parse_stage(meta.path)
        if stage is not None:
            stages[stage].append(meta)
    for (directory, stage_id), own in sorted(stages.items()):
        newest_ms = max(meta.modified_ms for meta in own)
        if newest_ms >= written_before_ms:
            continue
        if _is_table(directory):
            if f"{directory}/{KEPT_MARKER}" in {meta.path for meta in own}:
                continue
            yield Stray(directory, stage_id, sum(meta.size_bytes for meta in own), newest_ms)
            continue
        for meta in own:
            yield Stray(meta.path, stage_id, meta.size_bytes, meta.modified_ms)


def _add_recent(names: _Names, chain: CommitChain, newest: int, since_ms: int) -> None:
    """Add what the state at a time named, and everything after it."""
    first = 0
    for seq, entry in chain.backwards(newest):
        if any(record.end_ms <= since_ms for record in entry.records):
            first = seq
            break
        names.add(change for record in entry.records for change in record.changes)
    state = chain.at(first)
    names.add(state.timeline.alive(first))


def vacuum(store: Store, chain: CommitChain, strays: Sequence[Stray], ids: IdSource) -> list[Stray]:
    """Give up the ids that data was written under, then delete it; return what was deleted.

    Tables that were deregistered stay.

    Ids are given up also where other data of theirs is in use: a transaction that is under way may
    be about to name more of it. One that names what it read in an object needs no id: where the
    object was deleted it has read what somebody else changed, and does not commit.

    Raises:
        UnknownOutcomeError: the store never said whether they are given up: nothing was deleted.
    """
    names = _Names(store)
    seq = chain.settle()
    names.add(chain.at(seq).timeline.alive(seq))
    while True:
        doomed = _without_kept(store, [stray for stray in strays if stray.path not in names])
        aborted = chain.timeline.is_aborted
        fresh = tuple(sorted({one.stage_id for one in doomed if not aborted(one.stage_id)}))
        if not fresh or chain.append(seq + 1, Entry(nonce=ids.new_id(), aborted=fresh)):
            break
        later = chain.settle()
        for entry in chain.between(seq, later):
            names.add(change for record in entry.records for change in record.changes)
        seq = later
    _delete(store, doomed)
    return doomed


def _without_kept(store: Store, strays: list[Stray]) -> list[Stray]:
    """Leave out tables that were forgotten on purpose, also since the listing.

    Whoever forgets a table marks it first: where it is not named any more the mark is there.
    """
    markers = [f"{stray.path}/{KEPT_MARKER}" for stray in strays if _is_table(stray.path)]
    kept = store.existing(markers) if markers else set()
    return [stray for stray in strays if f"{stray.path}/{KEPT_MARKER}" not in kept]


def _is_table(path: str) -> bool:
    return path.startswith(f"{TABLES_DIR}/")


def _delete(store: Store, doomed: Sequence[Stray]) -> None:
    tables = [stray.path for stray in doomed if _is_table(stray.path)]
    files = [stray.path for stray in doomed if not _is_table(stray.path)]
    store.delete(files)
    for directory in sorted({stage[0] for path in files if (stage := parse_stage(path))}):
        store.prune(directory)
    for directory in tables:
        store.delete_prefix(directory)
