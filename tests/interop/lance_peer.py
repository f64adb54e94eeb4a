"""Clients of Lance's REST protocol as peers: lancedb, lance-spark, and PyIceberg beside them.

Each runs in a process of its own. lancedb and PyIceberg have environments that are built for them.
lance-spark runs in the project's Spark where its bundle can be had, and its older release for an
older Spark in an environment with that.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.interop import iceberg_peer
from tests.interop.java_peers import NotHereError, find_jar, find_jars
from tests.interop.peer import NotBuiltError, Peer, PeerError, find_environment, find_python

__all__ = [
    "CONNECTORS",
    "LanceClient",
    "NotBuiltError",
    "NotHereError",
    "PeerError",
    "find_lancedb",
    "start_impls",
    "start_lancedb",
    "start_pyiceberg",
    "start_spark",
]

HERE = Path(__file__).parent
DRIVER = HERE / "lance_client_driver.py"
SUPPORTED = "import sys; sys.exit(sys.version_info < (3, 11))"


@dataclass(frozen=True)
class Connector:
    """A release of lance-spark.

    Attributes:
        artifact: Its jar.
        is_bundle: Whether all that it needs is in that jar, under names of its own.
        requirements: Of the environment with its Spark; None for the project's.
    """

    artifact: str
    is_bundle: bool
    requirements: Path | None = None


CONNECTORS = {
    "spark-4.1": Connector("org.lance:lance-spark-bundle-4.1_2.13:0.7.1", is_bundle=True),
    "spark-3.5": Connector(
        "org.lance:lance-spark-3.5_2.12:0.4.0",
        is_bundle=False,
        requirements=HERE / "spark35_requirements.txt",
    ),
}


class LanceClient(Peer):
    """A process that does with one of the clients what it is told."""

    def __init__(self, python: Path | str, home: Path) -> None:
        """Start it; `start` names the client and the catalog.

        Args:
            python: Of the client's environment.
            home: Where it runs, and may leave things.
        """
        env = {"DO_NOT_TRACK": "true", "PYTHONPATH": "", "SPARK_LOCAL_IP": "127.0.0.1"}
        super().__init__(python, DRIVER, env, cwd=home)


def start_lancedb(home: Path, **how: object) -> LanceClient:
    """Start lancedb.

    Raises:
        NotBuiltError: its environment cannot be built.
    """
    return _start(find_lancedb(), home, "lancedb", how)


def find_lancedb() -> Path:
    """Return the interpreter of lancedb's environment, which is built where it is missing.

    Raises:
        NotBuiltError: it cannot be.
    """
    python = find_python("lancedb", [sys.executable], SUPPORTED)
    requirements = HERE / "lancedb_requirements.txt"
    return find_environment("lancedb", python, requirements, "import lancedb")


def start_spark(connector: str, home: Path, **how: object) -> LanceClient:
    """Start Spark with one of the `CONNECTORS`.

    Raises:
        NotHereError: its jars cannot be had.
        NotBuiltError: its Spark's environment cannot be built.
    """
    chosen = CONNECTORS[connector]
    jars = [find_jar(chosen.artifact)] if chosen.is_bundle else find_jars(chosen.artifact)
    python: Path | str = sys.executable
    if chosen.requirements is not None:
        found = find_python("an older Spark", [sys.executable], SUPPORTED)
        python = find_environment("spark35", found, chosen.requirements, "import pyspark")
    how |= {"jars": [str(jar) for jar in jars], "first": not chosen.is_bundle}
    return _start(python, home, "spark", how)


def start_impls(home: Path, **how: object) -> LanceClient:
    """Start lance-namespace-impls.

    Raises:
        NotBuiltError: its environment cannot be built.
    """
    return _start(iceberg_peer.find_interpreter(), home, "impls", how)


def start_pyiceberg(home: Path, **how: object) -> LanceClient:
    """Start PyIceberg.

    Raises:
        NotBuiltError: its environment cannot be built.
    """
    return _start(iceberg_peer.find_interpreter(), home, "pyiceberg", how)


def _start(python: Path | str, home: Path, client: str, how: dict[str, object]) -> LanceClient:
    started = LanceClient(python, home)
    try:
        started("start", client=client, **how)
    except PeerError:
        started.close()
        raise
    return started
