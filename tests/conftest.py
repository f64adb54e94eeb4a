"""Fixtures for every suite: servers, a clock that stands still, stores, catalogs."""

from __future__ import annotations

import os
import signal
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lakes import FakeClock
from tests.races.summary import pytest_terminal_summary
from tests.servers import run_moto, run_rclone, run_seaweedfs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.servers import S3Server
    from tests.spark.cluster import Cluster


# Here, as a process that only hands tests out to workers does not load what lies deeper.
__all__ = ["pytest_terminal_summary"]


def pytest_configure() -> None:
    """Let Ctrl-C reach the programs that tests start, also where these run in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a file's tests on one worker, where its server runs; races go where there is room."""
    for item in items:
        # One Java is enough: the tests that share a Spark session run on one worker, and so do
        # those that share a cluster.
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("cluster"))
        elif "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif item.path.parent.name != "races":
            item.add_marker(pytest.mark.xdist_group(item.path.name))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin nothing once the time is over that whoever runs the long suites has for them."""
    ends_at_s = os.environ.get("MOORING_TESTS_END_AT")
    if ends_at_s and time.time() > float(ends_at_s):
        pytest.skip(f"not run, the time is over: {item.nodeid}")


@pytest.fixture(scope="session")
def moto() -> Iterator[S3Server]:
    with run_moto() as server:
        yield server


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with run_seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with run_rclone(tmp_path_factory.mktemp("rclone")) as server:
        yield server


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session, started once."""
    from mooring.spark.session import SparkSettings, open_session

    # Workers import functions of tests, wherever the test that started Java stood.
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
    }
    session = open_session(SparkSettings("local[2]", conf))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone cluster, started once."""
    from tests.spark.cluster import run_cluster

    with run_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def prefix() -> str:
    """A place in a shared bucket that no other test uses."""
    return f"{uuid.uuid4().hex}/lake"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
