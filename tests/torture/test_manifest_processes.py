"""Processes that make and change tables and namespaces of one manifest catalog at the same time.

Afterwards every acknowledged table is there exactly once and readable, nobody was told of an error
that was not his own, and no directory lies there that no row mentions.

Spec: directory-namespace, "V2: Manifest"; "Manifest Table Commits".
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mooring.directory.entries import read_dropped
from mooring.directory.manifest import MANIFEST_DIR
from mooring.identifiers import ObjectId
from mooring.opening import open_directory
from mooring.tables.opening import open_at

from .manifest_worker import BEGUN, NAMESPACES

REPOSITORY = Path(__file__).parents[2]
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


def run(play: str, place: tuple[str, dict[str, str]], tmp_path: Path, size: tuple[int, ...]):
    """Run some processes and return all that they were answered."""
    uri, options = place
    processes, count, *threads = size
    open_directory(uri, options).initialize()
    logs = [tmp_path / f"{seed}.log" for seed in range(1, processes + 1)]
    jobs = [
        {
            "play": play,
            "uri": uri,
            "options": options,
            "seed": seed,
            "count": count,
            "log": str(log),
            "threads": sum(threads),
        }
        for seed, log in enumerate(logs, 1)
    ]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.torture.manifest_worker", json.dumps(job)],
            cwd=REPOSITORY,
            stderr=subprocess.PIPE,
        )
        for job in jobs
    ]
    said = [process.communicate()[1].decode() for process in started]
    codes = [process.returncode for process in started]
    assert codes == [0] * processes, said[codes.index(next(code for code in codes if code))]
    written = [path for log in logs for path in tmp_path.glob(f"{log.name}*")]
    return [entry for log in written for entry in read_log(log) if entry[3] != BEGUN]


def read_log(log: Path) -> list:
    """Read what one process was answered, and what it had begun."""
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def rows_of(backend) -> list:
    """Return every row of the manifest."""
    with backend.manifest.reading() as draft:
        return list(draft.rows())


def require_no_orphans(backend, rows: list) -> None:
    """Every directory belongs to a row, and every row lies in a namespace."""
    mentioned = {(row.location or "").partition("/")[0] for row in rows}
    unknown = set(backend.store.list_dir("").directories) - {MANIFEST_DIR} - mentioned
    # SeaweedFS goes on listing a directory for a while after its last object is gone.
    orphans = [found for found in sorted(unknown) if backend.store.list_prefix(found)]
    assert not orphans, f"directories without a row: {orphans[:5]}"
    live = {row.object_id: row for row in rows if read_dropped(row) is None}
    assert len(live) == sum(read_dropped(row) is None for row in rows)
    for key in live:
        parent = key.rpartition("$")[0]
        assert not parent or live[parent].object_type == "namespace", f"{key} is an orphan"


def read_token(backend, table: ObjectId) -> str:
    info = backend.describe_table(table)
    return open_at(info.location, info.storage_options).to_table()["token"][0].as_py()


def check_filled(place: tuple[str, dict[str, str]], entries: list) -> Counter[str]:
    """Compare what was acknowledged with what is there."""
    unexpected = [entry for entry in entries if entry[3] not in FILL_ALLOWED]
    assert not unexpected, unexpected[0]
    acknowledged = [entry for entry in entries if entry[3] == "ok" and entry[1] != "ns"]
    refused = [entry for entry in entries if entry[3] != "ok"]
    backend = open_directory(*place)
    tables = [list(found.names) for found in backend.list_all_tables()]
    assert sorted(entry[2] for entry in acknowledged) == tables
    # Whoever was refused wanted a name that another one got.
    assert all(entry[2] in tables for entry in refused)
    assert all(backend.describe_namespace(ObjectId(names)) == {} for names in NAMESPACES)
    require_no_orphans(backend, rows_of(backend))
    for token, verb, names, *_ in acknowledged:
        if verb == "create":
            assert read_token(backend, ObjectId(tuple(names))) == token
    return Counter(f"{verb} {outcome}" for _, verb, _, outcome, *_ in entries)


def check_mixed(place: tuple[str, dict[str, str]], entries: list) -> Counter[str]:
    """Follow every table that was made: it is live or dropped, with its rows, or was purged."""
    unexpected = [entry for entry in entries if entry[3] not in MIX_ALLOWED]
    assert not unexpected, unexpected[0]
    backend = open_directory(*place)
    rows = rows_of(backend)
    require_no_orphans(backend, rows)
    kept = {row.location for row in rows if row.location}
    purged = {place for _, verb, *_, deleted in entries for place in deleted if verb == "purge"}
    assert not kept & purged, "files of a table that can be read were purged"
    made = {
        place: token
        for token, verb, _, outcome, place, _ in entries
        if (verb, outcome) == ("create", "ok")
    }
    assert made.keys() <= kept | purged, "a table is gone that nobody purged"
    for location in kept:
        found = open_at(backend.store.location(location), dict(backend.store.options))
        assert found.to_table()["token"].to_pylist() == [made[location]]
    return Counter(f"{verb} {outcome}" for _, verb, _, outcome, *_ in entries)


def _report(capsys, where: str, outcomes: Counter[str]) -> None:
    with capsys.disabled():
        total = sum(outcomes.values())
        print(f"\n{where}: {total} calls: {dict(sorted(outcomes.items()))}")  # noqa: T201


def _fill(place, tmp_path, size) -> Counter[str]:
    return check_filled(place, run("fill", place, tmp_path, size))


def _mix(place, tmp_path, size) -> Counter[str]:
    return check_mixed(place, run("mix", place, tmp_path, size))


def test_processes_that_fill_a_catalog_on_disk_lose_nothing(tmp_path):
    _fill((str(tmp_path / "lake"), {}), tmp_path, (4, 25))


def test_threads_that_share_commits_lose_nothing_beside_another_process(tmp_path):
    _fill((str(tmp_path / "lake"), {}), tmp_path, (2, 20, 4))


def test_threads_that_mix_everything_and_share_commits_lose_nothing(tmp_path):
    _mix((str(tmp_path / "lake"), {}), tmp_path, (2, 20, 3))


def test_processes_that_mix_everything_on_disk_lose_nothing(tmp_path):
    _mix((str(tmp_path / "lake"), {}), tmp_path, (3, 40))


@pytest.mark.torture
def test_eight_processes_make_2000_tables_on_disk(tmp_path, capsys):
    outcomes = _fill((str(tmp_path / "lake"), {}), tmp_path, (8, 250))
    _report(capsys, "2,000 on disk", outcomes)


@pytest.mark.torture
def test_eight_processes_make_400_tables_on_moto(tmp_path, capsys, moto, prefix):
    outcomes = _fill((moto.uri(prefix), moto.options), tmp_path, (8, 50))
    _report(capsys, "400 on moto", outcomes)


@pytest.mark.torture
def test_eight_processes_make_60_tables_on_seaweedfs(tmp_path, capsys, seaweedfs, prefix):
    outcomes = _fill((seaweedfs.uri(prefix), seaweedfs.options), tmp_path, (8, 8))
    _report(capsys, "64 on SeaweedFS", outcomes)


@pytest.mark.torture
def test_four_processes_that_mix_everything_on_disk_lose_nothing(tmp_path, capsys):
    _report(capsys, "mixed on disk", _mix((str(tmp_path / "lake"), {}), tmp_path, (4, 400)))


@pytest.mark.torture
def test_four_processes_that_mix_everything_on_moto_lose_nothing(tmp_path, capsys, moto, prefix):
    place = (moto.uri(prefix), moto.options)
    _report(capsys, "mixed on moto", _mix(place, tmp_path, (4, 60)))
