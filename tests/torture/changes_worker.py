"""Processes that write, compact and read one change table, and note what they were told.

A writer notes each batch before it sends it and again once it is acknowledged, with its position.
One that was killed goes on where its notes end, and sends what was not acknowledged under the same
name of a run. A batch follows from its name.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from itertools import cycle
from pathlib import Path

import mooring
from mooring.changes import ChangeTable
from mooring.changes.compaction_policy import CompactionPolicy
from tests.changes.model import SCHEMA, Row, canonical, has_key, random_batch, to_table

NAME = "shop$orders"
_POLICIES = [
    CompactionPolicy(deltas=2, level=1),
    CompactionPolicy(deltas=2),
    CompactionPolicy(deltas=2, level=2),
]


def batch_of(run: str) -> tuple[str, list[Row]]:
    """Return the batch of a run; each run has one, the same at every attempt."""
    random_ = random.Random(run)
    while True:
        type_, rows = random_batch(random_)
        rows = [row for row in rows if has_key(row)]
        if rows:
            return type_, rows


def digest(rows: list[Row]) -> str:
    """Return what tells rows apart, in whatever order they are."""
    return hashlib.sha1(repr(canonical(rows)).encode(), usedforsecurity=False).hexdigest()


def notes(path: Path) -> list[list[object]]:
    """Read what a process noted; a line that it was killed at counts for nothing."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")
    return [json.loads(line) for line in lines[:-1]]


def write(uri: str, home: str, writer: str) -> None:
    """Write batches until the process is ended, or told to."""
    table, path = _open(uri), Path(home, f"{writer}.log")
    known = notes(path)
    number = max((one for kind, one, _ in known if kind == "acknowledged"), default=0)
    with path.open("a") as log:
        if path.stat().st_size and not path.read_text().endswith("\n"):
            log.write("\n")  # it never ended this line
        while not _is_over(home):
            number += 1
            run = f"{writer}-{number}"
            type_, rows = batch_of(run)
            _note(log, ["sent", number, None])
            landed = table._write(to_table(rows, SCHEMA), type_, run, None)
            _note(log, ["acknowledged", number, landed.position])


def compact(uri: str, home: str, name: str) -> None:
    """Compact until the process is ended, or told to."""
    table = _open(uri)
    with Path(home, f"{name}.log").open("a") as log:
        for policy in cycle(_POLICIES):
            if _is_over(home):
                return
            for done in table.compact(policy).rounds:
                _note(log, [done.level, done.rewritten, done.kept])


def read(uri: str, home: str, name: str) -> None:
    """Read until told to end, sometimes as one who opens the table for it, and note what it was."""
    kept, random_ = _open(uri), random.Random(name)
    newest = 0
    with Path(home, f"{name}.log").open("a") as log:
        while not _is_over(home):
            table = random_.choice([kept, _open(uri)])
            moment = table.at()
            assert moment.position >= newest, f"{moment.position} came after {newest}"
            newest = moment.position
            for position in (newest, random_.randint(0, newest)):
                rows = table.to_arrow(position=position).to_pylist()
                _note(log, [position, digest(rows), len(rows)])


def _open(uri: str) -> ChangeTable:
    os.fsync = lambda _: None  # processes die here, the machine does not
    return ChangeTable(mooring.connect(uri), NAME)


def _is_over(home: str) -> bool:
    return Path(home, "over").exists()


def _note(log, line: list[object]) -> None:
    log.write(json.dumps(line) + "\n")
    log.flush()
