"""Processes that make and change tables and namespaces of one manifest catalog at the same time.

Afterwards every acknowledged table is there exactly once and readable, nobody was told of an error
that was not his own, and no directory lies there that no row mentions. Where calls are mixed, the
ways that rows were said to go are put together: each table and each namespace went one way, from
where it was made to where it is. About root tables in `<name>.lance` their chains are asked.

Spec: directory-namespace, "V2: Manifest"; "Manifest Table Commits".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mooring.directory.decisions import State
from mooring.directory.entries import dropped_id, object_id_of, read_dropped
from mooring.directory.layout import table_dir
from mooring.directory.manifest import MANIFEST_DIR
from mooring.identifiers import ObjectId
from mooring.namespace.states import Exists
from mooring.opening import open_directory
from mooring.tables.manifest import NAMESPACE, TABLE
from mooring.tables.opening import open_at
from mooring.tables.versions import newest_version

from .manifest_worker import BEGUN, NAMESPACES, ROOTS, identity_of

if TYPE_CHECKING:
    from mooring.directory.compat_backend import CompatBackend

REPOSITORY = Path(__file__).parents[2]
MODES = {True: "compatibility", False: "manifest"}
# How many calls each of four processes makes.
ON_DISK = int(os.environ.get("MOORING_TORTURE_DISK", "80"))
ON_MOTO = int(os.environ.get("MOORING_TORTURE_MOTO", "20"))
# By which decision a call about a root table in its directory is found in the chain.
DECIDES = {
    "create": State.LIVE,
    "drop": State.DELETED,
    "undrop": State.LIVE,
    "undrop to": State.LIVE,
    "rename": State.RENAMING,
}
FILL_ALLOWED = {"ok", "TableAlreadyExistsError"}
MIX_ALLOWED = {
    "ok",
    "ConcurrentModificationError",
    "InvalidTableStateError",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NamespaceNotFoundError",
    "TableAlreadyExistsError",
    "TableNotFoundError",
}


class Entry(NamedTuple):
    """What one call was answered."""

    token: str
    verb: str
    names: list[str]
    outcome: str
    place: str
    deleted: list[str]
    moves: list[list[str]]
    new: list[str]

    @property
    def new_key(self) -> str:
        return "$".join(self.new)

    @property
    def is_ok(self) -> bool:
        return self.outcome == "ok"


class Place(NamedTuple):
    """Where a catalog is, and in which mode it is used."""

    uri: str
    options: dict[str, str]
    listing: bool = True

    def open(self) -> CompatBackend:
        return open_directory(self.uri, self.options, dir_listing_enabled=self.listing)


def run(play: str, place: Place, tmp_path: Path, size: tuple[int, ...]) -> list[Entry]:
    """Run some processes and return all that they were answered."""
    processes, count, *threads = size
    place.open().initialize()
    logs = [tmp_path / f"{seed}.log" for seed in range(1, processes + 1)]
    jobs = [
        {
            **place._asdict(),
            "play": play,
            "seed": seed,
            "count": count,
            "log": str(log),
            "threads": sum(threads),
        }
        for seed, log in enumerate(logs, 1)
    ]
    started = [start(job, stderr=subprocess.PIPE) for job in jobs]
    said = [process.communicate()[1].decode() for process in started]
    codes = [process.returncode for process in started]
    assert codes == [0] * processes, said[codes.index(next(code for code in codes if code))]
    written = [path for log in logs for path in tmp_path.glob(f"{log.name}*")]
    return [entry for log in written for entry in read_log(log) if entry.outcome != BEGUN]


def start(job: dict, **how) -> subprocess.Popen:
    """Start one process."""
    command = [sys.executable, "-m", "tests.torture.manifest_worker", json.dumps(job)]
    return subprocess.Popen(command, cwd=REPOSITORY, **how)


def read_log(log: Path) -> list[Entry]:
    """Read what one process was answered, and what it had begun; a line cut off is left out."""
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    return [Entry(*json.loads(line)) for line in lines if line.endswith("\n")]


def rows_of(backend) -> list:
    """Return every row of the manifest."""
    with backend.manifest.reading() as draft:
        return list(draft.rows())


def require_no_orphans(backend, rows: list) -> None:
    """Every directory belongs to a row or a root table, and every row lies in a namespace."""
    mentioned = {(row.location or "").partition("/")[0] for row in rows}
    by_name = {table_dir(*names) for names in ROOTS}
    found = set(backend.store.list_dir("").directories)
    # SeaweedFS goes on listing a directory for a while after its last object is gone.
    unknown = sorted(found - {MANIFEST_DIR} - mentioned - by_name)
    orphans = [name for name in unknown if backend.store.list_prefix(name)]
    assert not orphans, f"directories without a row: {orphans[:5]}"
    live = [row for row in rows if read_dropped(row) is None]
    namespaces = {row.object_id for row in live if row.object_type == NAMESPACE}
    assert len({row.object_id for row in live}) == len(live)
    assert {row.object_id.rpartition("$")[0] for row in live} <= {*namespaces, ""}


def read_token(backend, location: str) -> str:
    """Read by which call the rows at a place were written; empty for a declared table."""
    if not newest_version(backend.store, location):
        return ""
    found = open_at(backend.store.location(location), dict(backend.store.options))
    (token,) = found.to_table()["token"].to_pylist()
    return token


def check_filled(place: Place, entries: list[Entry]) -> Counter[str]:
    """Compare what was acknowledged with what is there."""
    unexpected = [entry for entry in entries if entry.outcome not in FILL_ALLOWED]
    assert not unexpected, unexpected[0]
    acknowledged = [entry for entry in entries if entry.is_ok and entry.verb != "ns"]
    backend = place.open()
    tables = [list(found.names) for found in backend.list_all_tables()]
    assert sorted(entry.names for entry in acknowledged) == tables
    # Whoever was refused wanted a name that another one got.
    assert all(entry.names in tables for entry in entries if not entry.is_ok)
    assert all(backend.describe_namespace(ObjectId(names)) for names in NAMESPACES)
    rows = rows_of(backend)
    require_no_orphans(backend, rows)
    assert len(rows) == len(tables) + len(NAMESPACES)
    for entry in acknowledged:
        if entry.verb == "create":
            assert read_token(backend, entry.place) == entry.token
    return count(entries)


def count(entries: list[Entry]) -> Counter[str]:
    """Count outcomes by kind."""
    return Counter(f"{entry.verb} {entry.outcome}" for entry in entries)


# -- calls that are mixed --------------------------------------------------------------------------


def check_mixed(place: Place, entries: list[Entry]) -> Counter[str]:
    """Compare what was acknowledged with what is there, table by table."""
    unexpected = [entry for entry in entries if entry.outcome not in MIX_ALLOWED]
    assert not unexpected, unexpected[0]
    backend = place.open()
    rows = rows_of(backend)
    require_no_orphans(backend, rows)
    check_ways(rows, entries)
    for entry in entries:
        if entry.is_ok:
            check_moves(entry, place.listing)
    stories = {names[0]: tell_story(backend, names[0], entries) for names in ROOTS}
    check_tokens(backend, rows, entries, stories)
    check_listings(backend, rows)
    return count(entries)


def check_ways(rows: list, entries: list[Entry]) -> None:
    """Every row went one way, by the moves that were acknowledged, from its making to its place.

    Such moves leave every identifier as often as they reach it, but for the first and the last.
    A move that was acknowledged and lost, or made twice, breaks that.
    """
    balances: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        for what, old, new in entry.moves:
            balances[what].update({new: 1})
            balances[what].subtract({old: 1})
            assert new or entry.verb == "purge" or is_by_name(what), entry
    ends = {identity_of(row): row.object_id for row in rows if identity_of(row)}
    assert ends.keys() <= balances.keys()
    for what, balance in balances.items():
        if is_by_name(what):
            continue  # its row follows from its directory, which is used again and again
        expected = Counter({"": -1})
        expected.update({ends.get(what, ""): 1})
        left = balance.copy()
        left.subtract(expected)
        assert not any(left.values()), f"{what} did not go the way that was acknowledged: {left}"


def is_by_name(location: str) -> bool:
    """Whether a place is that of a root table's name."""
    return location in {table_dir(*names) for names in ROOTS}


def check_moves(entry: Entry, listing: bool) -> None:
    """What was acknowledged moved the row that it names, as its verb says."""
    key = "$".join(entry.names)
    moved = [(old, new) for what, old, new in entry.moves if not is_by_name(what)]
    by_row = len(entry.names) > 1 or not listing
    match entry.verb:
        case "ns":
            assert moved == [("", key)]
        case "dropns" | "cascade":
            assert moved[0][0] == key or key in [old for old, _ in moved]
            assert entry.verb == "cascade" or len(moved) == 1
            assert all(dropped_id(new) == old for old, new in moved)
        case "undropns":
            assert key in [new for _, new in moved]
            assert all(dropped_id(old) == new for old, new in moved)
        case "declare" if by_row:
            assert moved == [("", key)]
        case "create" if by_row:
            assert moved in ([("", key)], [])  # a declared table is filled without a commit
        case "drop" if by_row:
            assert [(old, dropped_id(new)) for old, new in moved] == [(key, key)]
        case "undrop" if by_row:
            assert [(dropped_id(old), new) for old, new in moved] == [(key, key)]
        case "undrop to" if by_row:
            assert [(dropped_id(old), new) for old, new in moved] == [(key, entry.new_key)]
        case "rename" if by_row:
            assert moved == ([(key, entry.new_key)] if entry.new_key != key else [])


def is_by_chain(entry: Entry) -> bool:
    """Whether what was acknowledged about a root table is a decision about its directory."""
    if entry.verb in {"rename", "undrop to"}:
        # A table by hash leaves a row; one in its directory gets a place by hash only now.
        return all(is_by_name(what) or not old for what, old, _ in entry.moves)
    return entry.verb in DECIDES and is_by_name(entry.place)


def tell_story(backend, name: str, entries: list[Entry]) -> dict[str, set[str]]:
    """Check what was acknowledged about a root table in its directory against its chain.

    Returns:
        Which call's rows it held, at the end under the empty key and at each rename under the
        token of that; several where a creator was told that it wrote and lost the table at once.
    """
    chain = [link.decision for link in backend._listed.chains.history(name)]
    decided = {(said.by, said.state) for said in chain}
    firsts = []
    for entry in entries:
        if entry.names != [name] or not entry.is_ok or not is_by_chain(entry):
            continue
        if (entry.token, DECIDES[entry.verb]) in decided:
            continue
        if entry.verb == "create":
            firsts.append(entry.token)  # the first has no decision but its version
        else:
            assert is_joint(entry, chain, entries), _lost(entry, chain, entries)
    assert len(firsts) <= 1, f"two first creations of {name} were acknowledged: {firsts}"
    story = {"": set(firsts) or {"", *unsure_tokens(entries)}}
    for said in chain:
        if said.state is State.RENAMING:
            story[said.by] = story[""]
        elif said.state is State.LIVE and said.action == "create":
            story[""] = {said.by}
    return story


def _lost(entry: Entry, chain: list, entries: list[Entry]) -> str:
    """Tell what is known about a name of which an acknowledgement seems lost."""
    decided = [(said.by, said.action, said.state.value) for said in chain]
    mine = [
        (one.token, one.verb, one.outcome) for one in entries if entry.names in (one.names, one.new)
    ]
    return f"{entry} was lost\ndecided: {decided}\nasked: {mine}"


def is_joint(entry: Entry, chain: list, entries: list[Entry]) -> bool:
    """Whether somebody else may have decided what was acknowledged: renames are for all to end."""
    if entry.verb == "rename":
        helped = any(other.place == entry.place and other.moves for other in entries)
        return helped or entry.new == entry.names
    if "undrop" not in entry.verb:
        return False
    if any(said.action == "undo rename" for said in chain):
        return True
    # Undone before it was decided, a rename leaves nothing in the chain, and whoever asked for
    # it is told of a conflict.
    return any(
        other.verb in {"rename", "undrop to"}
        and other.names == entry.names
        and other.outcome == "ConcurrentModificationError"
        for other in entries
    )


def unsure_tokens(entries: list[Entry]) -> set[str]:
    """Name the creators that were told of a conflict: one of them may have written all the same."""
    conflict = "ConcurrentModificationError"
    return {entry.token for entry in entries if (entry.verb, entry.outcome) == ("create", conflict)}


def check_tokens(backend, rows: list, entries: list[Entry], stories: dict) -> None:
    """Every table that is live or dropped holds the rows of the call that made it."""
    purged = {place for entry in entries for place in entry.deleted if entry.verb == "purge"}
    made: dict[str, set[str]] = {}
    for entry in entries:
        for what, old, _ in entry.moves:
            if not old and entry.verb in {"rename", "undrop to"} and not is_by_name(what):
                # A rename that another one went on with is not told by its own token.
                story = stories[entry.names[0]]
                made[what] = story.get(entry.token) or set().union(*story.values())
    made |= {entry.place: {entry.token} for entry in entries if is_creation(entry)}
    declared = {"", *unsure_tokens(entries)}
    for location in {row.location for row in rows if row.location}:
        assert is_by_name(location) or location not in purged, f"{location} was purged"
        if not is_by_name(location):
            assert read_token(backend, location) in made.get(location, declared), location
    for name, story in stories.items():
        if backend._listed.view(name).state in {State.LIVE, State.DELETED}:
            assert read_token(backend, table_dir(name)) in story[""]


def is_creation(entry: Entry) -> bool:
    return entry.is_ok and entry.verb == "create"


def check_listings(backend, rows: list) -> None:
    """What is listed is what the rows say, and all of it is live."""
    listed = backend.list_all_tables()
    named = [row for row in rows if read_dropped(row) is None and row.object_type == TABLE]
    assert [str(table) for table in listed] == [
        str(table) for table in sorted(object_id_of(row.object_id) for row in named)
    ]
    assert all(backend.table_status(table) == Exists() for table in listed)


def _report(capsys, where: str, outcomes: Counter[str]) -> None:
    with capsys.disabled():
        total = sum(outcomes.values())
        print(f"\n{where}: {total} calls: {dict(sorted(outcomes.items()))}")  # noqa: T201


def _fill(place: Place, tmp_path: Path, size: tuple[int, ...]) -> Counter[str]:
    return check_filled(place, run("fill", place, tmp_path, size))


def _mix(place: Place, tmp_path: Path, size: tuple[int, ...]) -> Counter[str]:
    return check_mixed(place, run("mix", place, tmp_path, size))


def test_processes_that_fill_a_catalog_on_disk_lose_nothing(tmp_path):
    _fill(Place(str(tmp_path / "lake"), {}), tmp_path, (4, 15))


def test_threads_that_share_commits_lose_nothing_beside_another_process(tmp_path):
    _fill(Place(str(tmp_path / "lake"), {}), tmp_path, (2, 10, 4))


def test_threads_that_mix_everything_and_share_commits_lose_nothing(tmp_path):
    _mix(Place(str(tmp_path / "lake"), {}), tmp_path, (2, 15, 3))


@pytest.mark.parametrize("listing", MODES, ids=MODES.get)
def test_processes_that_mix_everything_on_disk_lose_nothing(tmp_path, listing):
    _mix(Place(str(tmp_path / "lake"), {}, listing), tmp_path, (3, 30))


@pytest.mark.torture
def test_eight_processes_make_2000_tables_on_disk(tmp_path, capsys):
    outcomes = _fill(Place(str(tmp_path / "lake"), {}), tmp_path, (8, 250))
    _report(capsys, "2,000 on disk", outcomes)


@pytest.mark.torture
def test_eight_processes_make_400_tables_on_moto(tmp_path, capsys, moto, prefix):
    outcomes = _fill(Place(moto.uri(prefix), moto.options), tmp_path, (8, 50))
    _report(capsys, "400 on moto", outcomes)


@pytest.mark.torture
def test_eight_processes_make_60_tables_on_seaweedfs(tmp_path, capsys, seaweedfs, prefix):
    outcomes = _fill(Place(seaweedfs.uri(prefix), seaweedfs.options), tmp_path, (8, 8))
    _report(capsys, "64 on SeaweedFS", outcomes)


@pytest.mark.torture
@pytest.mark.parametrize("listing", MODES, ids=MODES.get)
def test_four_processes_that_mix_everything_on_disk_lose_nothing(tmp_path, capsys, listing):
    outcomes = _mix(Place(str(tmp_path / "lake"), {}, listing), tmp_path, (4, ON_DISK))
    _report(capsys, f"mixed on disk, {MODES[listing]}", outcomes)


@pytest.mark.torture
@pytest.mark.parametrize("listing", MODES, ids=MODES.get)
def test_four_processes_that_mix_everything_on_moto_lose_nothing(
    tmp_path, capsys, listing, moto, prefix
):
    outcomes = _mix(Place(moto.uri(prefix), moto.options, listing), tmp_path, (4, ON_MOTO))
    _report(capsys, f"mixed on moto, {MODES[listing]}", outcomes)
