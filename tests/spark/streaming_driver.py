"""A driver of three streams, which another process kills: started by `test_streaming_kills`.

Its sink is that of `mooring`, stopped where the plan says: a writer that has come to that point
leaves a file and waits for its end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pyspark.sql.datasource import DataSourceStreamArrowWriter

import mooring
from mooring.spark.session import SparkSettings, open_session
from mooring.spark.source import MooringDataSource
from mooring.spark.streaming import stream_table

WAIT_S = 120.0
POLL_S = 0.05
# What Spark says of a Python process that did not start within ten seconds.
TOO_BUSY = "connect back"


class StoppingSource(MooringDataSource):
    """The data source, whose streaming writer stops where it is told."""

    @classmethod
    def name(cls):
        return "stopping"

    def streamWriter(self, schema, overwrite):  # noqa: N802  # Spark's name
        told = {name: self.options.pop(name) for name in ("at", "home") if name in self.options}
        return StoppingWriter(super().streamWriter(schema, overwrite), **told)


class StoppingWriter(DataSourceStreamArrowWriter):
    def __init__(self, inner, at, home):
        self._inner = inner
        self._at = at
        self._home = Path(home)

    def write(self, iterator):
        return self._inner.write(iterator)

    def commit(self, messages, batchId):  # noqa: N803  # Spark's name
        from mooring.tables.runs import Runs

        has_rows = any(message.part.rows for message in messages)
        note = Runs.end

        def end(runs, done):
            self._stop("committed", has_rows=has_rows)
            note(runs, done)

        self._stop("written", has_rows=has_rows)
        Runs.end = end
        try:
            self._inner.commit(messages, batchId)
        finally:
            Runs.end = note
        self._stop("returned", has_rows=has_rows)
        if has_rows:
            self._mark("done")

    def abort(self, messages, batchId):  # noqa: N803  # Spark's name
        self._inner.abort(messages, batchId)

    def _stop(self, point, *, has_rows):
        """Wait for the end, unless this is the first batch: it may be one that is repeated."""
        if point != self._at or not has_rows or not (self._home / "done").exists():
            return
        self._mark("stopped")
        time.sleep(WAIT_S)

    def _mark(self, name):
        (self._home / name).touch()


def start(session, plan):
    source, home = plan["source"], Path(plan["home"])
    if "directory" in source:
        reader = session.readStream.schema("n long")
        if plan["at"] != "end":
            reader = reader.option("maxFilesPerTrigger", "1")
        frame = reader.json(source["directory"])
    else:
        frame = stream_table(session, mooring.connect(source["catalog"]), source["table"])
        if "select" in source:
            frame = frame.selectExpr(*source["select"])
    writer = (
        frame.writeStream.format("stopping")
        .options(**plan["target"], at=plan["at"], home=str(home), query=plan["query"])
        .option("checkpointLocation", str(home / "checkpoint"))
    )
    if plan["at"] == "end":
        writer = writer.trigger(availableNow=True)
    return writer.start()


def main():
    ready, go = Path(sys.argv[1]), Path(sys.argv[2])
    session = open_session(SparkSettings("local[2]", {"spark.sql.shuffle.partitions": "2"}))
    session.dataSource.register(StoppingSource)
    ready.touch()
    while not go.exists():
        time.sleep(POLL_S)
        if os.getppid() == 1:
            return  # nobody is there to tell
    plans = json.loads(go.read_text(encoding="utf-8"))
    running = [(plan, start(session, plan)) for plan in plans]
    while running:
        time.sleep(POLL_S)
        running = [watched for plan, query in running for watched in watch(session, plan, query)]


def watch(session, plan, query):
    """Go on with a query; one that failed as the machine is too busy is started again."""
    if query.isActive:
        return [(plan, query)]
    failure = query.exception()
    if failure is None:
        return []
    if TOO_BUSY not in str(failure):
        raise failure
    return [(plan, start(session, plan))]


if __name__ == "__main__":
    main()
