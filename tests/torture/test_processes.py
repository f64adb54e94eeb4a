"""Processes that create, drop, undrop and purge the same few tables at random.

Afterwards every acknowledgement must be found as a decision, and the tables must hold the rows
that the decisions say.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mooring.directory.decisions import State
from mooring.identifiers import ROOT
from mooring.opening import open_directory
from mooring.tables.opening import open_at

from .worker import NAMES, ROWS

ALLOWED = {"ok", "ConcurrentModificationError", "TableNotFoundError", "TableAlreadyExistsError"}
REPOSITORY = Path(__file__).parents[2]


def torture(uri: str, options: dict[str, str], tmp_path: Path, count: int) -> Counter[str]:
    """Run four processes and check what they leave; return how often each outcome came."""
    open_directory(uri, options, manifest_enabled=False).initialize()
    logs = [tmp_path / f"{seed}.log" for seed in range(1, 5)]
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.torture.worker",
                json.dumps(
                    {"uri": uri, "options": options, "seed": seed, "count": count, "log": str(log)}
                ),
            ],
            cwd=REPOSITORY,
        )
        for seed, log in enumerate(logs, 1)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    entries = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    assert len(entries) == 4 * count
    unexpected = [entry for entry in entries if entry[3] not in ALLOWED]
    assert not unexpected, unexpected[0]
    backend = open_directory(uri, options, manifest_enabled=False)
    for name in NAMES:
        mine = [(author, verb) for author, verb, of, outcome in entries if of == name]
        acknowledged = {
            author: verb for author, verb, of, outcome in entries if of == name and outcome == "ok"
        }
        check_name(backend, name, acknowledged, dict(mine))
    return Counter(f"{verb} {outcome}" for _, verb, _, outcome in entries)


def check_name(backend, name: str, acknowledged: dict[str, str], asked: dict[str, str]) -> None:
    """Compare acknowledgements with decisions, and decisions with rows."""
    chain = [link.decision for link in backend._chains.history(name)]
    decided = {
        "create": {said.by for said in chain if said.action == "create" and said.state == "live"},
        "drop": {said.by for said in chain if said.state == "deleted"},
        "undrop": {said.by for said in chain if said.action == "undrop" and said.state == "live"},
    }
    for author, verb in acknowledged.items():
        if verb == "purge":
            continue  # a purge may be finished by another one
        is_first = verb == "create" and author not in decided["create"]
        assert is_first or author in decided[verb], f"{verb} by {author} was lost"
    firsts = [
        author
        for author, verb in acknowledged.items()
        if verb == "create" and author not in decided["create"]
    ]
    assert len(firsts) <= 1, f"two first creations of {name} were acknowledged: {firsts}"
    purges = sum(verb == "purge" for verb in acknowledged.values())
    assert purges >= sum(said.state == "purged" for said in chain) - purge_helps(asked)
    check_rows(backend, name, expected_author(chain, firsts))


def purge_helps(asked: dict[str, str]) -> int:
    """A purge that is answered with a lost race may still have ended another's."""
    return sum(verb == "purge" for verb in asked.values())


def expected_author(chain: list, firsts: list[str]) -> tuple[str, str | None]:
    """Follow the decisions to the state and the author of the rows they leave."""
    state, rows = ("live", firsts[0]) if firsts else ("absent", None)
    for said in chain:
        if said.state is State.LIVE and said.action == "create":
            state, rows = "live", said.by
        elif said.state is State.LIVE:
            state = "live"
        elif said.state is State.DELETED:
            state = "dropped"
        elif said.state is State.PURGED:
            state, rows = "absent", None
    return state, rows


def check_rows(backend, name: str, expected: tuple[str, str | None]) -> None:
    state, author = expected
    table = ROOT.child(name)
    if state == "absent":
        assert backend._life.view(name).state in {None, State.PURGED}
        return
    if state == "dropped":
        backend.undrop_table(table)
    info = backend.describe_table(table)
    found = open_at(info.location, info.storage_options).to_table()["author"].to_pylist()
    assert found == [author] * ROWS


def _report(capsys, where: str, outcomes: Counter[str]) -> None:
    with capsys.disabled():
        total = sum(outcomes.values())
        print(f"\n{where}: {total} calls: {dict(sorted(outcomes.items()))}")  # noqa: T201


def test_processes_on_disk_lose_nothing(tmp_path):
    torture(str(tmp_path / "lake"), {}, tmp_path, 60)


@pytest.mark.torture
def test_many_processes_on_disk_lose_nothing(tmp_path, capsys):
    _report(capsys, "disk", torture(str(tmp_path / "lake"), {}, tmp_path, 500))


@pytest.mark.torture
def test_processes_on_moto_lose_nothing(tmp_path, capsys, moto, prefix):
    _report(capsys, "moto", torture(moto.uri(prefix), moto.options, tmp_path, 200))


@pytest.mark.torture
def test_processes_on_seaweedfs_lose_nothing(tmp_path, capsys, seaweedfs, prefix):
    _report(capsys, "SeaweedFS", torture(seaweedfs.uri(prefix), seaweedfs.options, tmp_path, 30))
