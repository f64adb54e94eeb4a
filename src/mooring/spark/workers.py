"""Whether the workers of a cluster have what the parts of a job need.

A part runs in a Python of another machine, where Mooring has to be installed at this version. What
is not is told before the job begins: a task that fails to import would only be tried again.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mooring.errors import UnsupportedError
from mooring.spark.failures import telling_failures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

__all__ = ["check_workers"]

# Parts travel as pickles of these, so that another version may not understand them.
_PACKAGES = ("mooring", "pylance", "pyarrow")
_CONNECT_TASKS = 8
_MOST_TASKS = 64


def check_workers(session: SparkSession) -> None:
    """Ask the workers of a cluster what they have; local ones are this very installation.

    Raises:
        UnsupportedError: a worker lacks a package or has another version of it.
        MooringError: the workers could not be asked.
    """
    context = getattr(session, "_sc", None)  # a session of Spark Connect has none
    if context is not None and context.master.startswith("local"):
        return
    tasks = _CONNECT_TASKS if context is None else 2 * int(context.defaultParallelism)
    tasks = max(2, min(tasks, _MOST_TASKS))
    from pyspark.sql.functions import col, udf

    look = udf(_looking(_PACKAGES), "string", useArrow=False)
    with telling_failures():
        rows = session.range(0, tasks, 1, tasks).select(look(col("id")).alias("said")).collect()
    here = {name: version(name) for name in _PACKAGES}
    for said in sorted({row["said"] for row in rows}):
        _compare(here, json.loads(said))


def _looking(packages: tuple[str, ...]) -> Callable[[Any], str]:
    """Make a function that travels as what it does, for workers that could not import it."""

    def look(_: object) -> str:
        import json
        import platform
        import sys
        from importlib.metadata import PackageNotFoundError, version

        found: dict[str, str | None] = {}
        for name in packages:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = None
        where = {"host": platform.node(), "python": sys.executable}
        return json.dumps(where | {"packages": found}, sort_keys=True)

    return look


def _compare(here: Mapping[str, str], said: Mapping[str, Any]) -> None:
    other = {name: there for name, there in said["packages"].items() if there != here[name]}
    if not other:
        return
    has = ", ".join(
        f"{name} {there} instead of {here[name]}" if there else f"no {name} {here[name]}"
        for name, there in other.items()
    )
    wanted = " ".join(f"{name}=={here[name]}" for name in other)
    msg = (
        f"the worker {said['host']} has {has} in its Python {said['python']}: install {wanted}"
        " there, or name another Python with PYSPARK_PYTHON or --conf spark.pyspark.python=..."
    )
    raise UnsupportedError(msg)
