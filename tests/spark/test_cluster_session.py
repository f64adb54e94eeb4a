"""A real cluster: what its workers have, and what is said where they lack it or fail."""

from __future__ import annotations

import pytest

from mooring.errors import MooringError, UnsupportedError
from tests.spark.cluster import SOURCES, Driver, make_environment, session

pytestmark = pytest.mark.interop


def look(_: object) -> tuple[str, list[str], int]:
    import os
    import sys
    import time

    import mooring

    time.sleep(0.5)  # so that no worker does it all
    return mooring.__file__, sys.path, os.getppid()


def fail(_: object) -> None:
    msg = "this part cannot be done"
    raise ValueError(msg)


def run_there(work, items: int) -> list[object]:
    from mooring.spark.runner import SparkRunner

    return SparkRunner(session()).run(work, list(range(items)))


def test_workers_have_the_package_and_not_the_sources(cluster):
    found = cluster.run(run_there, look, 4)
    assert len({parent for _, _, parent in found}) == 2
    for file, path, _ in found:
        assert file.startswith(str(cluster.environment))
        assert not [entry for entry in path if entry.startswith(str(SOURCES))]


def test_a_task_that_always_fails_is_told_by_its_cause(cluster):
    message = "^a task of Spark failed: ValueError: this part cannot be done$"
    with pytest.raises(MooringError, match=message):
        cluster.run(run_there, fail, 1)


def test_workers_without_the_package_are_named(cluster, tmp_path):
    python = make_environment(tmp_path / "bare", package=False)
    with Driver.beside(cluster, {"spark.pyspark.python": python}) as driver:
        message = f"^the worker .* has no mooring .* in its Python {python}: install mooring=="
        with pytest.raises(UnsupportedError, match=message):
            driver.run(run_there, look, 2)
