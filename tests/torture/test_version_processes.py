"""Processes that append to one table through pylance, which commits through the catalog.

Every acknowledged row is there exactly once, versions have no gap, and no staged file is left,
also where writers are killed between writing a manifest and registering it.

Spec: objects-and-relationships, "External Manifest Store".
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import mooring
from mooring.opening import open_directory
from tests.lakes import COMPAT_DISK, DISK, MANIFEST_DISK, SEAWEEDFS, table_id

from .killing import KillingStore, fast_processes, run_to_its_end
from .version_worker import TABLE, die_between

REPOSITORY = Path(__file__).parents[2]
T = table_id(TABLE)
pytestmark = pytest.mark.torture


def _properties(kind, uri: str, options: dict[str, str]) -> dict[str, str]:
    flags = {key: str(value).lower() for key, value in kind.flags.items()}
    storage = {f"storage.{key}": value for key, value in options.items()}
    return {"root": uri, "table_version_tracking_enabled": "true", **flags, **storage}


def _connect(kind, uri: str, options: dict[str, str]):
    return mooring.connect(uri, storage_options=options, **kind.flags)


def _start(properties: dict[str, str], writers: int, count: int, logs: Path) -> list:
    return [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.torture.version_worker",
                json.dumps(
                    {
                        "properties": properties,
                        "seed": seed,
                        "count": count,
                        "log": str(logs / f"{seed}.log"),
                    }
                ),
            ],
            cwd=REPOSITORY,
        )
        for seed in range(1, writers + 1)
    ]


def _outcomes(logs: Path) -> dict[int, str]:
    lines = [line for log in logs.glob("*.log") for line in log.read_text().splitlines()]
    return dict(json.loads(line) for line in lines)


def _check(catalog, outcomes: dict[int, str]) -> None:
    table = catalog.table(TABLE)
    found = Counter(table.to_arrow()["token"].to_pylist())
    assert max(found.values()) == 1, "a row is there twice"
    missing = [token for token, outcome in outcomes.items() if outcome == "ok" and not found[token]]
    assert not missing, f"acknowledged and not there: {missing}"
    versions = [one.version for one in table.versions()]
    assert versions == list(range(len(versions), 0, -1))
    backend = catalog.backend
    directory = table.location.removeprefix(backend.store.location("")).strip("/")
    names = backend.store.list_dir(f"{directory}/_versions").files
    assert [name for name in names if ".manifest-" in name] == []


def _torture(kind, uri, options, tmp_path, writers: int, count: int) -> Counter[str]:
    catalog = _connect(kind, uri, options)
    catalog.create_table(TABLE, pa.table({"token": [0]}))
    processes = _start(_properties(kind, uri, options), writers, count, tmp_path)
    assert [process.wait() for process in processes] == [0] * writers
    outcomes = _outcomes(tmp_path)
    assert len(outcomes) == writers * count
    unexpected = [outcome for outcome in outcomes.values() if outcome != "ok"]
    assert not unexpected, unexpected[0]
    _check(_connect(kind, uri, options), outcomes)
    return Counter(outcomes.values())


def _tell(capsys, what: str, started: float, outcomes: Counter[str]) -> None:
    with capsys.disabled():
        took = time.monotonic() - started
        print(f"\n{what}: {outcomes['ok']} acknowledged in {took:.0f} s")  # noqa: T201


@pytest.mark.parametrize("kind", [DISK, COMPAT_DISK, MANIFEST_DISK], ids=lambda kind: kind.name)
def test_eight_processes_append_on_disk(kind, tmp_path, capsys):
    started = time.monotonic()
    outcomes = _torture(kind, str(tmp_path / "lake"), {}, tmp_path, writers=8, count=25)
    _tell(capsys, f"8 x 25 appends, {kind.name}", started, outcomes)


@pytest.mark.s3
def test_four_processes_append_on_seaweedfs(seaweedfs, prefix, tmp_path, capsys):
    started = time.monotonic()
    uri, options = seaweedfs.uri(prefix), seaweedfs.options
    outcomes = _torture(SEAWEEDFS, uri, options, tmp_path, writers=4, count=10)
    _tell(capsys, "4 x 10 appends, SeaweedFS", started, outcomes)


def test_writers_that_are_killed_between_manifest_and_registration_harm_nobody(tmp_path):
    kind, uri = COMPAT_DISK, str(tmp_path / "lake")
    catalog = _connect(kind, uri, {})
    catalog.create_table(TABLE, pa.table({"token": [0]}))
    properties = _properties(kind, uri, {})
    processes = fast_processes("tests.torture.version_worker")
    running = _start(properties, 3, 10, tmp_path)
    for token in range(900_000, 900_005):
        assert run_to_its_end(processes, die_between, properties, token)
    assert [process.wait() for process in running] == [0] * 3
    # The last one killed may have been later than every other writer.
    assert run_to_its_end(processes, die_between, properties, 900_005)
    catalog.table(TABLE).insert(pa.table({"token": [1]}))
    outcomes = _outcomes(tmp_path)
    assert set(outcomes.values()) == {"ok"}
    _check(catalog, outcomes)
    assert not [n for n in catalog.table(TABLE).to_arrow()["token"].to_pylist() if n >= 900_000]


def _insert(uri: str, step: int) -> None:
    """Insert a row through the catalog's own API, to die at a step that changes the store."""
    backend = open_directory(uri, {})
    backend.home.store = KillingStore(backend.home.store, step)
    mooring.Table(backend, backend.describe_table(T)).insert(pa.table({"token": [7]}))


def test_kill_at_every_step_of_a_commit_leaves_it_whole_or_undone(tmp_path):
    processes = fast_processes("tests.torture.version_worker")
    step, killed = 0, True
    while killed:
        uri = str(tmp_path / f"lake{step}")
        catalog = mooring.connect(uri)
        catalog.create_table(TABLE, pa.table({"token": [0]}))
        killed = run_to_its_end(processes, _insert, uri, step)
        found = mooring.connect(uri).table(TABLE).to_arrow()["token"].to_pylist()
        assert found in ([0], [0, 7])
        mooring.connect(uri).table(TABLE).insert(pa.table({"token": [8]}))
        _check(mooring.connect(uri), {8: "ok"})
        step += 1
    assert step > 2
