"""lance-spark, where its jars and a Spark that it runs in can be had."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.interop.java_peers import NotHereError, find_jar, find_jars
from tests.interop.lance_peer import CONNECTORS
from tests.interop.peer import NotBuiltError, Peer, PeerError, find_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.interop.lance_peer import Connector

__all__ = ["LanceSpark", "open_lance_spark"]

_DRIVER = Path(__file__).with_name("lance_spark_peer.py")


@dataclass(frozen=True)
class LanceSpark:
    """A release of lance-spark.

    Attributes:
        name: With its version and that of its Spark.
        peer: A process with it; None where there is none.
        missing: Why there is none.
    """

    name: str
    peer: Peer | None
    missing: str = ""


@contextmanager
def open_lance_spark(home: Path) -> Iterator[LanceSpark]:
    """Start the release for the newest Spark that can be had, or tell why there is none.

    Args:
        home: Where it runs, and may leave things.
    """
    home.mkdir()
    reasons = []
    for spark, connector in CONNECTORS.items():
        name = f"lance-spark {connector.artifact.rpartition(':')[2]}, {spark}"
        try:
            jars, python = _find(connector)
        except (NotHereError, NotBuiltError) as exc:
            reasons.append(f"{name}: {exc}")
            continue
        env = {"PYTHONPATH": "", "SPARK_LOCAL_IP": "127.0.0.1"}
        peer = Peer(python, _DRIVER, env, cwd=home)
        try:
            failure = _start(peer, jars, is_first=not connector.is_bundle)
            yield LanceSpark(name, None if failure else peer, failure)
        finally:
            peer.close()
        return
    yield LanceSpark("lance-spark", None, "; ".join(reasons))


def _find(connector: Connector) -> tuple[list[str], Path | str]:
    """Find the jars of a release and a Python with its Spark."""
    found = [find_jar(connector.artifact)] if connector.is_bundle else find_jars(connector.artifact)
    jars = [str(jar) for jar in found]
    if connector.requirements is None:
        return jars, sys.executable
    wanted = connector.requirements
    return jars, find_environment("spark35", sys.executable, wanted, "import pyspark")


def _start(peer: Peer, jars: list[str], *, is_first: bool) -> str:
    """Start Spark; return why it does not, or nothing."""
    try:
        peer("start", jars=jars, is_first=is_first)
    except PeerError as exc:
        return str(exc)
    return ""
