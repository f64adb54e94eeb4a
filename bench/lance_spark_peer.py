"""The other side of `bench.spark`: lance-spark scans a table, in a Spark of its own.

It reads one order a line and answers each, as drivers of the interop tests do. Nothing here imports
Mooring, and the Spark is an older one.
"""

from __future__ import annotations

import json
import os
import sys
import time

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

from pyspark.sql import SparkSession  # noqa: E402  # after Java has nothing to write answers to
from pyspark.sql import functions as f  # noqa: E402


class Scanner:
    """Spark with lance-spark."""

    def __init__(self) -> None:
        self._session: SparkSession | None = None

    def start(self, jars: list[str], *, is_first: bool) -> str:
        """Start Spark and return its version; jars may have to come before its own."""
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "4g",
            "spark.driver.extraJavaOptions": "--add-opens=java.base/java.nio=ALL-UNNAMED",
        }
        if is_first:  # its Arrow is newer than Spark's, and both have the same names
            settings["spark.driver.extraClassPath"] = ":".join(jars)
        else:
            settings["spark.jars"] = ",".join(jars)
        building = SparkSession.builder.master("local[*]").appName("lance-spark")
        for key, value in settings.items():
            building = building.config(key, value)
        self._session = building.getOrCreate()
        self._session.sparkContext.setLogLevel("OFF")
        return str(self._session.version)

    def scan(self, location: str) -> dict[str, object]:
        """Use every column; return the seconds and what was found."""
        started = time.perf_counter()
        frame = self._session.read.format("lance").load(location)
        sums = [f.sum(name) for name in ("id", "kind", "price", "share")]
        others = [f.max("word"), f.max("code"), f.count("is_new"), f.max("at")]
        (row,) = frame.agg(*sums, *others).collect()
        return {"seconds": time.perf_counter() - started, "ids": row[0]}


def main() -> None:
    """Answer orders until there are no more."""
    scanner = Scanner()
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = {"result": getattr(scanner, order.pop("do"))(**order)}
        except Exception as exc:  # noqa: BLE001  # who asked is told
            first = (str(exc).strip().splitlines() or [""])[0]
            answer = {"error": f"{type(exc).__name__}: {first}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
