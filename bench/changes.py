"""Change tables: merge-on-read and compaction beside Spark's window function on plain Parquet.

Both sides have the same rows: a base, and upserts that came after it. Spark puts all of it together
and keeps the last row of each key, which is how it is done where no catalog knows about changes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.interop.deltacat_peer import NotBuiltError, find_interpreter

import mooring
from bench.curves import OURS, Curve, Line
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import workspace
from bench.rows import mixed_rows
from bench.sections import Section
from bench.timing import time_once, time_rounds
from mooring.changes import create_change_table
from mooring.changes.compaction import compact, policy_of
from mooring.changes.hashing import bucket_of, hash_rows
from mooring.spark import read_table
from mooring.spark.runner import SparkRunner
from mooring.spark.session import SparkSettings, open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mooring.changes import ChangeTable

__all__ = ["SIZES", "run"]

# Rows of the base, rows of an upsert, how many upserts, rounds; by whether it is quick.
SIZES = {True: (200_000, 10_000, 3, 1), False: (4_000_000, 100_000, 5, 3)}
_BUCKETS = 40
_CHANGED = 2  # of the buckets, that is 5 %
_GROWTH = {True: (10, 30, 100), False: (10, 100, 1_000)}
_BATCHES = {True: 5, False: 100}
_BATCH_ROWS = 20
_NO_PLANS = "deltacat has no call that plans a read without doing it"
_PEER = Path(__file__).with_name("deltacat_upserts.py")


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Measure reads, compaction, planning and small batches."""
    rows, changed, upserts, rounds = SIZES[quick]
    with workspace() as space:
        planned = groups.measure("planning", lambda: _growth(space, _GROWTH[quick]))
        batches = groups.measure("small batches", lambda: _small_batches(space, _BATCHES[quick]))
        merged = []
        if groups.wants("merge-on-read", "compaction"):
            session = open_session(SparkSettings("local[*]"))
            try:
                bench = _Bench(space, session, rounds)
                bench.prepare(rows, changed, upserts)
                merged += groups.measure("merge-on-read", bench.read)
                merged += groups.measure("compaction", bench.compact)
            finally:
                session.stop()
    return Section(
        f"Change tables: {rows:,} rows of 8 columns, {upserts} upserts of {changed:,}",
        [*merged, *planned, *batches],
        [
            "Spark's side: the same rows as plain Parquet, the last of each key by row_number()",
            f"{_CHANGED} of {_BUCKETS} buckets changed: Spark cannot know, and merges all of it",
            "planning: a process that has the catalog open, one delta after the other",
            "deltacat's merges are its own write calls, timed in a process of its own after ours",
            "a compaction is done once, after Spark's rounds",
        ],
    )


class _Bench:
    """A lake, plain Parquet beside it, and a session to measure in."""

    def __init__(self, space: Path, session: SparkSession, rounds: int) -> None:
        self._space = space
        self._session = session
        self._rounds = rounds
        self._lake = mooring.connect(f"metastore+{space / 'lake'}")
        self._lake.create_namespace("bench")

    def prepare(self, rows: int, changed: int, upserts: int) -> None:
        """Write the same changes to both sides: one where all buckets change, one where few do."""
        base = mixed_rows(rows)
        chance = np.random.default_rng(5)
        few = _keys_of_few_buckets(base)
        for name, keys in (("all", base["id"].to_numpy()), ("few", few)):
            table = self._make(name, base)
            for number in range(upserts):
                chosen = chance.choice(keys, min(changed, len(keys)), replace=False)
                table.upsert(_changed(base, chosen, number))
                _write_parquet(self._plain(name) / f"{number + 1}.parquet", chosen, base, number)
        # A first task of each kind, unmeasured: Java has compiled, Python workers are there.
        self._noop(self._ours("all").limit(1000))
        self._noop(self._theirs("few").limit(1000))

    def _make(self, name: str, base: pa.Table) -> ChangeTable:
        table = create_change_table(
            self._lake, f"bench${name}", base.schema, keys=["id"], buckets=_BUCKETS
        )
        table.upsert(base)
        compact(table, policy_of(table, force=True))
        self._plain(name).mkdir(parents=True)
        whole = base.append_column("position", pa.repeat(pa.scalar(0), base.num_rows))
        step = -(-base.num_rows // 8)
        for number in range(8):
            pq.write_table(
                whole.slice(number * step, step), self._plain(name) / f"0-{number}.parquet"
            )
        return table

    def _plain(self, name: str) -> Path:
        return self._space / "plain" / name

    def _ours(self, name: str) -> DataFrame:
        return read_table(self._session, self._lake, f"bench${name}")

    def _theirs(self, name: str) -> DataFrame:
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        rows = self._session.read.parquet(str(self._plain(name)))
        last = Window.partitionBy("id").orderBy(f.col("position").desc())
        numbered = rows.withColumn("number", f.row_number().over(last))
        return numbered.where("number = 1").drop("number", "position")

    def _noop(self, frame: DataFrame) -> None:
        frame.write.format("noop").mode("overwrite").save()

    def read(self) -> list[Figure]:
        """Read merged rows, every column used."""
        figures = []
        for name, what, times in (("all", "all buckets", 1.0), ("few", "5 % of buckets", 3.0)):
            ours, theirs = (_use(self._ours(name)), _use(self._theirs(name)))
            assert ours == theirs, (ours, theirs)
            taken = time_rounds(
                {
                    "ours": lambda name=name: _use(self._ours(name)),
                    "theirs": lambda name=name: _use(self._theirs(name)),
                },
                self._rounds,
            )
            figures.append(
                Figure(
                    f"merge-on-read, {what} changed",
                    taken["ours"],
                    beside="Spark, window on Parquet",
                    theirs=taken["theirs"],
                    at_least=times,
                    is_telling=True,
                )
            )
        return figures

    def compact(self) -> list[Figure]:
        """Compact, beside writing the merged rows anew."""
        figures = []
        runner = SparkRunner(self._session)
        for name, what, times in (("all", "all buckets", 1.0), ("few", "5 % of buckets", 3.0)):
            out = self._space / "out.parquet"

            def theirs(name: str = name, out: Path = out) -> None:
                shutil.rmtree(out, ignore_errors=True)
                self._theirs(name).write.parquet(str(out))

            spark_s = [time_once(theirs) for _ in range(self._rounds)]
            table = mooring_table(self._lake, name)
            policy = policy_of(table, deltas=1, level=2)
            ours_s = time_once(partial(compact, table, policy, runner=runner))
            figures.append(
                Figure(
                    f"compaction, {what} changed",
                    ours_s,
                    beside="Spark, window, Parquet to Parquet",
                    theirs=spark_s,
                    at_least=times,
                    is_telling=True,
                )
            )
        return figures


def mooring_table(lake: mooring.Catalog, name: str) -> ChangeTable:
    """Return one of the tables."""
    from mooring.changes import ChangeTable

    return ChangeTable(lake, f"bench${name}")


def _growth(space: Path, sizes: tuple[int, ...]) -> list[Figure | Curve]:
    """Time the plan of a read after so many deltas, each time with a fresh one."""
    lake = mooring.connect(f"metastore+{space / 'growth'}")
    lake.create_namespace("bench")
    schema = pa.schema([("id", pa.int64()), ("value", pa.int64())])
    table = create_change_table(lake, "bench$grown", schema, keys=["id"], buckets=8)
    taken: dict[int, list[float]] = {}
    for size in sizes:
        while table.position < size:
            table.upsert([{"id": table.position, "value": 1}])
        taken[size] = []
        for turn in range(20):
            table.upsert([{"id": turn, "value": 2}])
            taken[size].append(time_once(table.plan))
    first, *others = sizes
    beside = {"beside": f"after {first}", "theirs": taken[first], "within": 2}
    cold = [time_once(lambda: _plan_anew(space)) for _ in range(3)]
    line = Line(OURS, tuple(taken.items()))
    return [
        Figure(f"plan a read after {first:,} deltas", taken[first]),
        *(Figure(f"plan a read after {size:,} deltas", taken[size], **beside) for size in others),
        Figure(f"the same in a process that opens the catalog, {sizes[-1]:,}", cold),
        Curve("Plan a read of changes", "history length", "deltas", (line,), missing=_NO_PLANS),
    ]


def _plan_anew(space: Path) -> None:
    from mooring.changes import ChangeTable

    ChangeTable(mooring.connect(f"metastore+{space / 'growth'}"), "bench$grown").plan()


def _small_batches(space: Path, count: int) -> list[Figure | Curve]:
    """Upsert small batches one after the other, beside deltacat's merges of the same."""
    lake = mooring.connect(f"metastore+{space / 'small'}")
    lake.create_namespace("bench")
    schema = pa.schema([("id", pa.int64()), ("value", pa.int64()), ("text", pa.string())])
    table = create_change_table(lake, "bench$small", schema, keys=["id"], buckets=4)
    batches = [_small(number) for number in range(count)]
    ours = [time_once(partial(table.upsert, batch)) for batch in batches]
    expected = {row["id"]: row["value"] for batch in batches for row in batch.to_pylist()}
    found = {row["id"]: row["value"] for row in table.to_arrow().to_pylist()}
    assert found == expected
    name, theirs, missing = _peer_batches(space / "peer", count)
    lines = [Line(OURS, _in_tenths(ours)), *([Line(name, _in_tenths(theirs))] if theirs else [])]
    what = f"each of {count} upserts of {_BATCH_ROWS} rows"
    sides = {"ours": ours, "beside": name, "theirs": theirs or None, "missing": missing}
    return [
        Figure(what, **sides, at_least=5, is_telling=True),
        Figure(f"{what}, mean", **sides, average="mean"),
        Curve(
            f"Upsert {_BATCH_ROWS} rows",
            "history length",
            "upserts so far",
            tuple(lines),
            missing=missing,
        ),
    ]


def _in_tenths(seconds: list[float]) -> tuple[tuple[float, list[float]], ...]:
    """Put what followed each other together."""
    step = max(1, len(seconds) // 10)
    return tuple(
        (start + len(some), some)
        for start in range(0, len(seconds), step)
        if (some := seconds[start : start + step])
    )


def _small(number: int) -> pa.Table:
    ids = [(number * 7 + step * 3) % 500 for step in range(_BATCH_ROWS)]
    text = [f"row {one} of batch {number}" for one in ids]
    return pa.table({"id": ids, "value": [number] * len(ids), "text": text})


def _peer_batches(root: Path, count: int) -> tuple[str, list[float], str]:
    """Return the peer's name, the seconds of each of its merges, or why there are none."""
    try:
        python = find_interpreter()
    except NotBuiltError as exc:
        return "deltacat", [], f"deltacat: {exc}"
    done = subprocess.run(
        # Isolated: modules of this folder have the names of others that deltacat imports.
        [python, "-I", _PEER, str(root), str(count), str(_BATCH_ROWS)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "RAY_DISABLE_IMPORT_WARNING": "1"},
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return "deltacat", [], f"deltacat ended with {done.returncode}: {last[:300]}"
    told = json.loads(done.stdout.strip().splitlines()[-1])
    return f"deltacat {told['version']}", told["seconds"], ""


def _use(frame: DataFrame) -> tuple[object, ...]:
    """Read every value of every column."""
    from pyspark.sql import functions as f

    sums = [f.sum(name) for name in ("id", "kind")]
    others = [f.max("word"), f.max("code"), f.count("is_new"), f.max("at"), f.max("price")]
    (row,) = frame.agg(f.count("*"), *sums, *others, f.max("share")).collect()
    return tuple(row)


def _changed(base: pa.Table, keys: np.ndarray, number: int) -> pa.Table:
    rows = base.take(pa.array(keys))
    place = rows.schema.get_field_index("kind")
    kinds = pc.add(rows["kind"], pa.scalar(1000 * (number + 1), pa.int32()))
    return rows.set_column(place, "kind", kinds)


def _write_parquet(path: Path, keys: np.ndarray, base: pa.Table, number: int) -> None:
    rows = _changed(base, keys, number)
    position = pa.repeat(pa.scalar(number + 1), rows.num_rows)
    pq.write_table(rows.append_column("position", position), path)


def _keys_of_few_buckets(base: pa.Table) -> np.ndarray:
    buckets = bucket_of(hash_rows([base["id"]]), _BUCKETS)
    return base["id"].to_numpy()[buckets < _CHANGED]
