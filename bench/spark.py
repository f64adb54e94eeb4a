"""What Spark does with tables, beside Spark with Parquet, in one session of this machine."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet

import mooring
from bench.curves import OURS, Curve, Line
from bench.figures import Figure
from bench.groups import ALL, Groups
from bench.lakes import workspace
from bench.lance_spark import open_lance_spark
from bench.rows import mixed_rows
from bench.sections import Section
from bench.timing import time_once, time_rounds
from mooring.ingest import ingest
from mooring.jobs.runner import Threads
from mooring.spark import read_table, write_table
from mooring.spark.runner import SparkRunner
from mooring.spark.session import SparkSettings, open_session
from mooring.upkeep.compaction import compact

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from mooring.catalog import Catalog

__all__ = ["SIZES", "run"]

# Rows of mixed columns, sizes of the curve, rows of vectors, rounds; by whether it is quick.
SIZES = {
    True: (600_000, (100_000, 300_000, 600_000), 20_000, 1),
    False: (6_000_000, (1_000_000, 3_000_000, 6_000_000), 200_000, 3),
}
_DIMENSIONS = 128
_RANGE = 10_000
_FILES = 12
_FRAGMENTS = 60


def run(*, quick: bool, groups: Groups = ALL) -> Section:
    """Measure ingestion, scans, vectors and compaction."""
    rows, curve, vectors, rounds = SIZES[quick]
    session = open_session(SparkSettings("local[*]"))
    try:
        with workspace() as space:
            bench = _Bench(space, session, rounds)
            bench.prepare(rows, vectors)
            found = [
                *groups.measure("ingest", lambda: [bench.ingest(rows)]),
                *groups.measure("scan", lambda: bench.scan(rows)),
                *groups.measure("lance-spark", lambda: [bench.scan_beside_lance_spark(rows)]),
                *groups.measure("vectors", lambda: [bench.write_vectors(vectors)]),
                *groups.measure("compaction", lambda: [bench.compact(rows)]),
                *groups.measure("growth", lambda: bench.grow(curve)),
            ]
    finally:
        session.stop()
    return Section(
        f"Spark on {rows:,} mixed rows of 8 columns, {vectors:,} vectors of {_DIMENSIONS}",
        found,
        [
            "a full scan takes a sum, count or maximum of each column",
            "where rows are only passed on, Spark's own reader does even less",
            "lance-spark has a process and a Spark of its own, of the version beside its name",
        ],
    )


class _Bench:
    """A lake and a session to measure in."""

    def __init__(self, space: Path, session: SparkSession, rounds: int) -> None:
        self._space = space
        self._session = session
        self._rounds = rounds
        self._lake: Catalog = mooring.connect(space / "lake")

    def prepare(self, rows: int, vectors: int) -> None:
        """Write the sources, and tables to scan."""
        _write_parquet(self._space / "mixed", mixed_rows(rows))
        _write_parquet(self._space / "vectors", _vectors(vectors))
        ingest(self._lake, str(self._space / "mixed"), "scanned", runner=Threads())
        # A first task of each kind, unmeasured: Java has compiled, Python workers are there.
        self._noop(self._session.read.parquet(str(self._space / "mixed")).limit(1000))
        self._noop(read_table(self._session, self._lake, "scanned").limit(1000))

    def _noop(self, frame: DataFrame) -> None:
        frame.write.format("noop").mode("overwrite").save()

    def _beside(
        self, ours: Callable[[], object], theirs: Callable[[], object]
    ) -> tuple[list[float], list[float]]:
        taken = time_rounds({"ours": ours, "theirs": theirs}, self._rounds)
        return taken["ours"], taken["theirs"]

    def _copy(self, source: str) -> None:
        out = self._space / "out.parquet"
        shutil.rmtree(out, ignore_errors=True)
        self._session.read.parquet(str(self._space / source)).write.parquet(str(out))

    def ingest(self, rows: int) -> Figure:
        """Parquet to a table beside Parquet to Parquet."""
        runner = SparkRunner(self._session)
        source = str(self._space / "mixed")
        ours, theirs = self._beside(
            lambda: ingest(self._lake, source, "ingested", mode="overwrite", runner=runner),
            partial(self._copy, "mixed"),
        )
        assert self._lake.table("ingested").count() == rows
        return Figure(
            f"Parquet to a table, {rows:,} rows",
            ours,
            beside="Spark, Parquet to Parquet",
            theirs=theirs,
            at_least=2,
            is_telling=True,
        )

    def scan(self, rows: int) -> list[Figure]:
        """A full scan, and a range with push-down and without."""
        table = partial(read_table, self._session, self._lake, "scanned")
        parquet = self._session.read.parquet(str(self._space / "mixed"))
        whole = self._beside(lambda: _use(table()), lambda: _use(parquet))
        passed = self._beside(lambda: self._noop(table()), lambda: self._noop(parquet))
        start = rows // 2
        wanted = f"id >= {start} AND id < {start + _RANGE}"

        def count(*, is_pushed: bool) -> None:
            frame = table(pushdown=str(is_pushed).lower())
            assert frame.where(wanted).count() == _RANGE

        part = self._beside(partial(count, is_pushed=True), partial(count, is_pushed=False))
        return [
            Figure(
                f"scan {rows:,} rows, every column used",
                whole[0],
                beside="Spark, Parquet",
                theirs=whole[1],
                within=1.4,
                is_telling=True,
            ),
            Figure(
                f"scan {rows:,} rows into Spark's noop sink",
                passed[0],
                beside="Spark, Parquet",
                theirs=passed[1],
            ),
            Figure(
                f"a range of {_RANGE:,} rows, pushed down",
                part[0],
                beside="the same, not pushed down",
                theirs=part[1],
                at_least=2,
            ),
        ]

    def scan_beside_lance_spark(self, rows: int) -> Figure:
        """The same full scan by lance-spark, which has a Spark of its own."""
        location = self._lake.table("scanned").location
        ours: list[float] = []
        theirs: list[float] = []
        with open_lance_spark(self._space / "lance-spark") as other:
            for turn in range(self._rounds + 1):
                table = read_table(self._session, self._lake, "scanned")
                ours.append(time_once(partial(_use, table)))
                if other.peer:
                    theirs.append(other.peer("scan", location=location)["seconds"])
                if turn == 0:  # for warmth
                    ours, theirs = [], []
        return Figure(
            f"scan {rows:,} rows, all columns",
            ours,
            beside=other.name,
            theirs=theirs or None,
            missing=other.missing,
        )

    def write_vectors(self, count: int) -> Figure:
        """Vectors from a data frame into a table beside a Parquet file."""
        frame = self._session.read.parquet(str(self._space / "vectors")).cache()
        assert frame.count() == count
        out = self._space / "vectors.out"

        def theirs() -> None:
            frame.write.mode("overwrite").parquet(str(out))

        ours, beside = self._beside(
            lambda: write_table(frame, self._lake, "vectors", mode="overwrite"), theirs
        )
        assert self._lake.table("vectors").count() == count
        frame.unpersist()
        return Figure(
            f"write {count:,} vectors", ours, beside="Spark, Parquet", theirs=beside, at_least=2
        )

    def compact(self, rows: int) -> Figure:
        """Compaction of small fragments by copying pages beside one that writes rows anew."""
        seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
        mixed = mixed_rows(rows)
        step = -(-mixed.num_rows // _FRAGMENTS)
        for turn in range(self._rounds):
            for side, taken in seconds.items():
                name = f"small-{side}-{turn}"
                self._lake.create_table(name, mixed.slice(0, step))
                for at in range(step, mixed.num_rows, step):
                    self._lake.table(name).insert(mixed.slice(at, step))
                table = self._lake.table(name)
                work = {
                    "ours": partial(compact, self._lake, name, runner=Threads()),
                    "theirs": partial(_rewrite, table.location),
                }[side]
                taken.append(time_once(work))
                assert len(self._lake.table(name).to_lance().get_fragments()) < _FRAGMENTS
                assert self._lake.table(name).count() == mixed.num_rows
        return Figure(
            f"compact {_FRAGMENTS} fragments",
            seconds["ours"],
            beside="Lance, writing rows anew",
            theirs=seconds["theirs"],
            at_least=4,
            is_telling=True,
        )

    def grow(self, sizes: tuple[int, ...]) -> list[Curve]:
        """Ingest and scan more and more rows."""
        runner = SparkRunner(self._session)
        ingested, scanned = [], []
        for rows in sizes:
            source = f"part-{rows}"
            place = str(self._space / source)
            _write_parquet(self._space / source, mixed_rows(rows))
            load = partial(ingest, self._lake, place, "curve", mode="overwrite", runner=runner)
            ingested.append((rows, self._beside(load, partial(self._copy, source))))
            table = partial(read_table, self._session, self._lake, "curve")
            parquet = self._session.read.parquet(place)
            both = self._beside(lambda: _use(table()), lambda: _use(parquet))  # noqa: B023  # at once
            scanned.append((rows, both))
        return [
            _curve("Parquet into a table by Spark", ingested),
            _curve("Scan a table by Spark, every column used", scanned),
        ]


def _curve(title: str, taken: list[tuple[int, tuple[list[float], list[float]]]]) -> Curve:
    lines = tuple(
        Line(name, tuple((rows, both[side]) for rows, both in taken))
        for side, name in enumerate((OURS, "Spark, Parquet"))
    )
    return Curve(title, "data size", "rows", lines)


def _use(frame: DataFrame) -> None:
    """Read every value of every column."""
    from pyspark.sql import functions as f

    sums = [f.sum(name) for name in ("id", "kind", "price", "share")]
    others = [f.max("word"), f.max("code"), f.count("is_new"), f.max("at")]
    assert frame.agg(*sums, *others).collect()


def _rewrite(location: str) -> None:
    lance.dataset(location).optimize.compact_files(compaction_mode="reencode")


def _vectors(count: int) -> pa.Table:
    chance = np.random.default_rng(8)
    numbers = pa.array(chance.random(count * _DIMENSIONS, dtype=np.float32))
    return pa.table(
        {
            "id": np.arange(count, dtype=np.int64),
            "vector": pa.FixedSizeListArray.from_arrays(numbers, _DIMENSIONS).cast(
                pa.list_(pa.float32())
            ),
        }
    )


def _write_parquet(folder: Path, rows: pa.Table) -> None:
    folder.mkdir()
    step = -(-rows.num_rows // _FILES)
    for number, at in enumerate(range(0, rows.num_rows, step)):
        pyarrow.parquet.write_table(rows.slice(at, step), folder / f"part-{number:02}.parquet")
