"""Processes that commit to one metastore at the same time: every acknowledgement counts.

Issue 5, "Must show": counters and deltas of many processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mooring.metastore.metastore import Metastore
from mooring.metastore.model import Namespace, Partition, Stream, Table, TableVersion
from mooring.store import open_store

from .metastore_worker import COUNTER, PARTITION

REPOSITORY = Path(__file__).parents[2]


def _prepare(uri: str, options: dict[str, str]) -> Metastore:
    meta = Metastore(open_store(uri, options), author="test")
    stream = PARTITION.parent
    version = stream.parent
    with meta.transaction() as txn:
        txn.create(COUNTER, Namespace(properties={"count": "0"}))
        txn.create(version.parent.parent, Namespace())
        txn.create(version.parent, Table())
        txn.create(version, TableVersion(version="1"))
        txn.create(stream, Stream(stream_id="s"))
        txn.create(PARTITION, Partition(partition_id="p"))
    return meta


def _run(uri: str, options: dict[str, str], verb: str, processes: int, count: int) -> list[int]:
    """Run processes and return everything that they were acknowledged."""
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.torture.metastore_worker",
                json.dumps(
                    {
                        "uri": uri,
                        "options": options,
                        "author": f"w{number}",
                        "verb": verb,
                        "count": count,
                    }
                ),
            ],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    outputs = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * processes
    return sorted(int(line) for output in outputs for line in output.split())


def _tell(capsys, what: str, started: float) -> None:
    with capsys.disabled():
        print(f"\n{what} in {time.monotonic() - started:.0f} s")  # noqa: T201


def _count(uri: str, options: dict[str, str], processes: int, count: int) -> None:
    meta = _prepare(uri, options)
    told = _run(uri, options, "increment", processes, count)
    assert told == list(range(1, processes * count + 1))
    assert meta.begin().get(COUNTER).value.properties == {"count": str(processes * count)}


def test_processes_that_count_lose_nothing(tmp_path):
    _count(str(tmp_path / "meta"), {}, 3, 10)


@pytest.mark.torture
def test_eight_processes_count_to_800_on_disk(tmp_path, capsys):
    started = time.monotonic()
    _count(str(tmp_path / "meta"), {}, 8, 100)
    _tell(capsys, "8 x 100 increments on disk", started)


@pytest.mark.torture
@pytest.mark.s3
def test_eight_processes_count_to_160_on_moto(moto, prefix, capsys):
    started = time.monotonic()
    _count(moto.uri(prefix), moto.options, 8, 20)
    _tell(capsys, "8 x 20 increments on moto", started)


@pytest.mark.torture
@pytest.mark.s3
def test_four_processes_count_to_20_on_seaweedfs(seaweedfs, prefix, capsys):
    started = time.monotonic()
    _count(seaweedfs.uri(prefix), seaweedfs.options, 4, 5)
    _tell(capsys, "4 x 5 increments on SeaweedFS", started)


@pytest.mark.torture
def test_eight_processes_append_400_deltas(tmp_path, capsys):
    started = time.monotonic()
    uri = str(tmp_path / "meta")
    meta = _prepare(uri, {})
    told = _run(uri, {}, "append", 8, 50)
    assert told == list(range(1, 401))
    found = sorted(int(one.id) for one in meta.begin().children(PARTITION))
    assert found == told
    _tell(capsys, "8 x 50 append deltas on disk", started)
