"""A real Spark standalone cluster on loopback: a master, two workers, and drivers that use it.

The workers have a Python environment of their own, with Mooring installed in it as a package is,
made from the tree as it is now. What Mooring needs they take from the main environment; the source
tree is not on their path. A driver is a process of its own, as one process has one Spark.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
import urllib.request
import venv
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tests.servers import _free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["SOURCES", "Cluster", "Driver", "make_environment", "run_cluster", "session"]

Result = TypeVar("Result")

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"
WORKERS = 2
_HOST = "127.0.0.1"
_START_LIMIT_S = 240.0
_RUN_LIMIT_S = 600.0
_STOP_LIMIT_S = 10.0
_POLL_S = 0.1
_CONF = {
    "spark.driver.host": _HOST,
    "spark.driver.bindAddress": _HOST,
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    # One executor on each worker, with room for those of a second driver.
    "spark.executor.cores": "1",
    "spark.cores.max": str(WORKERS),
    "spark.sql.shuffle.partitions": "2",
    # Of a lost worker the master hears at once; there is no reason to wait with the next try.
    "spark.excludeOnFailure.enabled": "false",
}


@dataclass(frozen=True)
class Cluster:
    """A cluster that is up.

    Attributes:
        master: The URL of its master.
        python: The Python of its workers.
        driver: One that is always there.
    """

    master: str
    python: str
    driver: Driver

    @property
    def environment(self) -> Path:
        """Where the workers' Python and its packages lie."""
        return Path(self.python).parents[1]

    def run(self, function: Callable[..., Result], *args: object, **kwargs: object) -> Result:
        """Call a function in the driver; `session()` is the Spark session there."""
        return self.driver.run(function, *args, **kwargs)


class Driver:
    """A process with a Spark session that uses the cluster."""

    @classmethod
    @contextmanager
    def beside(cls, cluster: Cluster, conf: Mapping[str, str]) -> Iterator[Driver]:
        """Run another driver for a while."""
        driver = cls(cluster.master, {**_CONF, "spark.pyspark.python": cluster.python, **conf})
        try:
            yield driver
        finally:
            driver.close()

    def __init__(self, master: str, conf: Mapping[str, str]) -> None:
        self._pool = ProcessPoolExecutor(
            1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_open,
            initargs=(master, dict(conf)),
        )

    def run(self, function: Callable[..., Result], *args: object, **kwargs: object) -> Result:
        """Call a function of a test's module, whose functions travel on to the executors."""
        return self._pool.submit(_call, function, args, kwargs).result(_RUN_LIMIT_S)

    def submit(self, function: Callable[..., Any], *args: object) -> Any:
        """Begin a call; return its future."""
        return self._pool.submit(_call, function, args, {})

    def close(self) -> None:
        """Stop the session and end the process."""
        self._pool.submit(_close).result(_START_LIMIT_S)
        self._pool.shutdown()


_session: SparkSession | None = None


def session() -> SparkSession:
    """Return the session of the driver that this is."""
    assert _session is not None
    return _session


def _open(master: str, conf: dict[str, str]) -> None:
    global _session  # noqa: PLW0603  # one process, one session
    os.environ.pop("PYTHONPATH", None)
    from mooring.spark.session import SparkSettings, open_session

    _session = open_session(SparkSettings(master, conf), quiet=True)


def _close() -> None:
    session().stop()


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    from pyspark import cloudpickle

    # Executors have no tests to import.
    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    return function(*args, **kwargs)


@contextmanager
def run_cluster(directory: Path) -> Iterator[Cluster]:
    """Start a master and two workers; end them by their process ids."""
    python = make_environment(directory / "environment")
    port, page = _free_ports(2)
    master = f"spark://{_HOST}:{port}"
    page_url = f"http://{_HOST}:{page}/json/"
    command = ["org.apache.spark.deploy.master.Master", "--host", _HOST, "--port", str(port)]
    with _daemon([*command, "--webui-port", str(page)], directory / "master"):
        _wait_for(page_url, 0, _log(directory / "master"))
        with _worker(master, directory / "worker-1"), _worker(master, directory / "worker-2"):
            _wait_for(page_url, WORKERS, _log(directory / "worker-1"))
            driver = Driver(master, {**_CONF, "spark.pyspark.python": python})
            try:
                yield Cluster(master, python, driver)
            finally:
                driver.close()


def make_environment(directory: Path, *, package: bool = True) -> str:
    """Make the workers' environment.

    Args:
        directory: Where.
        package: Whether Mooring is installed in it.

    Returns:
        Its Python.
    """
    venv.create(directory, with_pip=False)
    site = next((directory / "lib").glob("python*/site-packages"))
    if package:
        _install(site)
    # A path that is added this way is not searched for .pth files, of which one in the main
    # environment names the source tree.
    others = _without_mooring(directory / "others") if not package else _main_packages()
    (site / "others.pth").write_text(f"{others}\n")
    return str(directory / "bin" / "python")


def _main_packages() -> Path:
    return Path(sysconfig.get_path("purelib"))


def _without_mooring(directory: Path) -> Path:
    """Link all packages of the main environment but this one."""
    directory.mkdir()
    for path in _main_packages().iterdir():
        if "mooring" not in path.name.lower():
            (directory / path.name).symlink_to(path)
    return directory


def _install(site: Path) -> None:
    """Install the package as its wheel would be: files and metadata, no link to the sources.

    A build backend would have to be downloaded.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for name in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, site / source.name, ignore=ignored)
        elif source.exists():
            shutil.copy(source, site)
    version = project["project"]["version"]
    metadata = site / f"mooring-{version}.dist-info"
    metadata.mkdir()
    text = f"Metadata-Version: 2.4\nName: mooring\nVersion: {version}\n"
    (metadata / "METADATA").write_text(text)
    (metadata / "INSTALLER").write_text("tests\n")


def _worker(master: str, directory: Path) -> Any:
    (page,) = _free_ports(1)
    command = ["org.apache.spark.deploy.worker.Worker", "--host", _HOST, "--webui-port", str(page)]
    command += ["--cores", "2", "--memory", "1g", "--work-dir", str(directory / "work"), master]
    return _daemon(command, directory)


@contextmanager
def _daemon(command: list[str], directory: Path) -> Iterator[None]:
    """Run a process of Spark and, once it is over, end it and the executors it started."""
    directory.mkdir()
    spark = Path(find_spec("pyspark").origin).parent
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environ = {
        **kept,
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }
    with _log(directory).open("wb") as log:
        process = subprocess.Popen(
            [str(spark / "bin" / "spark-class"), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=directory,
            env=environ,
            start_new_session=True,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _end_group(process.pid)


def _end_group(leader: int) -> None:
    """End executors that outlived their worker: they are of the group that it led."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return
    time.sleep(_POLL_S)


def _log(directory: Path) -> Path:
    return directory / "log"


def _wait_for(url: str, workers: int, log: Path) -> None:
    """Wait until the master answers and has so many workers."""
    deadline = time.monotonic() + _START_LIMIT_S
    while _alive(url) < workers:
        if time.monotonic() > deadline:
            msg = f"the Spark cluster did not start:\n{log.read_text()[-2000:]}"
            raise RuntimeError(msg)
        time.sleep(_POLL_S)


def _alive(url: str) -> int:
    """Ask the master how many workers it has; -1 while it does not answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  # our own server
            return int(json.load(answer)["aliveworkers"])
    except OSError:
        return -1
