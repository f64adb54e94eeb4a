"""The Spark session that jobs use: one that is there, or one that is started for them."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from typing import IO, TYPE_CHECKING, Self

from mooring.config import is_secret, mask_uris
from mooring.errors import (
    InvalidInputError,
    MissingExtraError,
    ServiceUnavailableError,
    UnsupportedError,
)
from mooring.spark.failures import telling_failures
from mooring.spark.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from pyspark import SparkConf
    from pyspark.sql import SparkSession

__all__ = ["SessionKeeper", "SparkSettings", "open_session"]

_LOCAL = "local"
_LOOPBACK = "127.0.0.1"
_CONNECT = "sc://"
# The ports that servers have unless one is given.
_PORTS = {"spark://": 7077, _CONNECT: 15002}
_PYTHON = "spark.pyspark.python"
_PATIENCE_S = 10
_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|(spark|k8s|sc)://.+|yarn")
# What Mooring's own sessions set; --conf says otherwise.
_DEFAULTS = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Rows of a vector column are large; batches of Spark's default size would not fit.
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
}


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How to reach Spark.

    Attributes:
        master: A master as Spark names it, `local[*]` unless given, or `sc://HOST:PORT` for Spark
            Connect.
        conf: Settings of Spark.
        app_name: What the application is called.
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    app_name: str = "mooring"

    @property
    def is_connect(self) -> bool:
        """Whether it is a server of Spark Connect."""
        return (self.master or "").startswith(_CONNECT)

    @property
    def is_local(self) -> bool:
        """Whether everything runs on this machine, in one process of Java."""
        return (self.master or _LOCAL).startswith(_LOCAL)

    def check(self) -> None:
        """Refuse what makes no sense.

        Raises:
            InvalidInputError: the master is none, or a setting not one of Spark's.
        """
        if self.master is not None and not _MASTER.fullmatch(self.master):
            msg = (
                f"'{mask_uris(self.master)}' is no master of Spark: it is local[4],"
                " spark://host:7077, yarn, k8s://https://host:443, or sc://host:15002 for Spark"
                " Connect"
            )
            raise InvalidInputError(msg)
        for key in self.conf:
            if not key.startswith("spark."):
                msg = f"'{key}' is no setting of Spark: they all begin with spark."
                raise InvalidInputError(msg)


class SessionKeeper:
    """A session that starts when it is first asked for and stops at the end.

    One that ran before is used, and left running.
    """

    def __init__(self, settings: SparkSettings | None = None, *, quiet: bool = False) -> None:
        """Check the settings; start nothing.

        Args:
            settings: How to reach Spark.
            quiet: Whether to keep what Java writes from standard error.

        Raises:
            InvalidInputError: the settings make no sense.
        """
        self._settings = settings or SparkSettings()
        self._settings.check()
        self._quiet = quiet
        self._session: SparkSession | None = None
        self._is_ours = False

    def session(self) -> SparkSession:
        """Return the session; the first call may start it.

        Raises:
            MooringError: as `open_session` does.
        """
        if self._session is None:
            self._is_ours = _find_active() is None
            with _keeping_interrupts():
                self._session = open_session(self._settings, quiet=self._quiet)
        return self._session

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is None or not self._is_ours:
            return
        # In a thread, which has a connection of its own: an interrupt may have left this one's in
        # the middle of an answer.
        stopping = threading.Thread(target=_stop, args=(self._session,), daemon=True)
        stopping.start()
        stopping.join(_PATIENCE_S)
        self._session = None


def _stop(session: SparkSession) -> None:
    """End a session and its jobs; a Java that is gone has nothing to end."""
    with suppress(Exception):
        session.stop()


@contextmanager
def _keeping_interrupts() -> Iterator[None]:
    """Have Ctrl-C do what it did before.

    PySpark would ask Java to cancel all jobs, on the very connection that waits for one of them,
    and fail. Ending the session ends its jobs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def open_session(settings: SparkSettings | None = None, *, quiet: bool = False) -> SparkSession:
    """Return the active session, or start one.

    Args:
        settings: How to reach Spark. Where a session is active they must not ask for another
            master.
        quiet: Whether to keep what the Java that is started writes from standard error.

    Raises:
        UnsupportedError: PySpark is not installed, or Java is missing.
        InvalidInputError: another master is active, or the settings make no sense.
        ServiceUnavailableError: the master does not answer.
        MooringError: Spark did not start, for the reason that is told.
    """
    settings = settings or SparkSettings()
    settings.check()
    active = _find_active()
    if active is not None:
        return _fit(active, settings)
    with telling_failures():
        if settings.is_connect or ("SPARK_REMOTE" in os.environ and settings.master is None):
            return _connect(settings)
        return _start(settings, quiet=quiet)


def _find_active() -> SparkSession | None:
    """Return the session of this thread, or else of this process.

    Raises:
        MissingExtraError: PySpark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as exc:
        msg = "this needs Spark, which is not installed: pip install 'mooring[spark]'"
        raise MissingExtraError(msg) from exc
    found = _find_connected() or SparkSession.getActiveSession()
    if found is None:
        found = SparkSession._instantiatedSession  # noqa: SLF001  # as SparkSession.active() does
    return None if found is None or _is_stopped(found) else found


def _is_stopped(session: SparkSession) -> bool:
    """Whether it is one that was stopped, which PySpark may still hold."""
    return not _is_connected(session) and session._sc._jsc is None  # noqa: SLF001


def _find_connected() -> SparkSession | None:
    """Return the session of Spark Connect that is active, if that was ever used."""
    module = sys.modules.get("pyspark.sql.connect.session")
    return None if module is None else module.SparkSession.getActiveSession()


def _is_connected(session: SparkSession) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")


def _fit(active: SparkSession, settings: SparkSettings) -> SparkSession:
    """Use a session that is there: it was made for a reason, and has one master for life."""
    if settings.master is not None and not _is_at(active, settings.master):
        kind = "of Spark Connect" if _is_connected(active) else "with master"
        master = active.conf.get("spark.master", None)
        msg = (
            f"a Spark session {kind} {master} is active, and {mask_uris(settings.master)} is asked"
            " for: stop the session first, or leave the master out"
        )
        raise InvalidInputError(msg)
    for key, value in settings.conf.items():
        if active.conf.isModifiable(key):
            active.conf.set(key, value)
    return active


def _is_at(active: SparkSession, master: str) -> bool:
    """Whether a session has a master, as far as it tells: one of a server only knows that."""
    if master.startswith(_CONNECT) or _is_connected(active):
        return master.startswith(_CONNECT) and _is_connected(active)
    return bool(active.conf.get("spark.master", None) == master)


def _connect(settings: SparkSettings) -> SparkSession:
    """Open a session of a server, which has settings of its own."""
    from pyspark.sql import SparkSession

    _require_master(settings)
    builder = SparkSession.builder
    if settings.is_connect:
        builder = builder.remote(settings.master or "")
    for key, value in settings.conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _start(settings: SparkSettings, *, quiet: bool) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    java = find_java()
    _require_master(settings)
    conf = {**_DEFAULTS, **_log_settings(), **_network(settings), **settings.conf}
    # Whoever was started by spark-submit has its master.
    if settings.master is not None or "PYSPARK_GATEWAY_PORT" not in os.environ:
        conf["spark.master"] = settings.master or f"{_LOCAL}[*]"
    conf["spark.app.name"] = settings.app_name
    spark_conf = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    if quiet:
        _hush()
    with _pythons(settings), warnings.catch_warnings():
        # PySpark forks to start Java, of which Lance warns; nothing of Lance runs in the child.
        warnings.simplefilter("ignore")
        if SparkContext._gateway is None:  # noqa: SLF001  # a Java that runs is used again
            _launch(spark_conf, java=str(java.path), quiet=quiet)
        return SparkSession.builder.config(conf=spark_conf).getOrCreate()


def _launch(conf: SparkConf, *, java: str, quiet: bool) -> None:
    """Start the Java of this process.

    Raises:
        UnsupportedError: it ended at once; what it said last is told.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    # A command line is for everybody to see; the session gets the secrets without it.
    shown = SparkConf(loadDefaults=False)
    shown.setAll([(key, value) for key, value in conf.getAll() if not is_secret(key)])
    with tempfile.TemporaryFile() as said:
        try:
            streams = {"stdout": said, "stderr": said} if quiet else {}
            gateway = launch_gateway(shown, streams)  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as exc:
            msg = f"the Java of Spark ({java}) did not start{_reason(said)}"
            raise UnsupportedError(msg) from exc
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001  # the one way to give it


def _hush() -> None:
    """Keep PySpark from writing to standard error what is raised anyway."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_py4j)  # which writes to the root, too


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def _reason(said: IO[bytes]) -> str:
    """Find the line of what Java wrote that says why it ended."""
    said.seek(0)
    lines = [line.strip() for line in said.read().decode(errors="replace").splitlines()]
    telling = [line for line in lines if re.search(r"Error|Exception|Invalid|error", line)]
    found = (telling or [line for line in lines if line])[:1]
    return f": {found[0]}" if found else ""


@contextmanager
def _pythons(settings: SparkSettings) -> Iterator[None]:
    """Name the Python of the workers, which PySpark looks up in the environment as it starts.

    On this machine it is the one that runs this, unless somebody chose another.
    """
    before = {name: os.environ.get(name) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    if _PYTHON in settings.conf:
        os.environ["PYSPARK_PYTHON"] = settings.conf[_PYTHON]
    elif settings.is_local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _require_master(settings: SparkSettings) -> None:
    """Refuse a server that does not answer at all; Spark itself would try for minutes.

    Raises:
        ServiceUnavailableError: it does not, nor does one of those beside it.
    """
    scheme, separator, rest = (settings.master or "").partition("://")
    if not separator or f"{scheme}://" not in _PORTS:
        return
    reasons = []
    for place in re.split(r"[/;]", rest)[0].split(","):
        host, port = _split(place, _PORTS[f"{scheme}://"])
        try:
            with socket.create_connection((host, port), _PATIENCE_S):
                return
        except OSError as exc:
            reasons.append(exc.strerror or str(exc))
    msg = f"Spark at {mask_uris(settings.master or '')} does not answer: {reasons[0]}"
    raise ServiceUnavailableError(msg)


def _split(place: str, default: int) -> tuple[str, int]:
    """Read HOST:PORT, of which the port may be missing."""
    found = re.fullmatch(r"(\[.+\]|[^:\[\]]+)(?::(\d+))?", place)
    if found is None:
        msg = f"'{place}' is no place of a Spark server: HOST:PORT is one"
        raise InvalidInputError(msg)
    return found[1].strip("[]"), int(found[2] or default)


def _network(settings: SparkSettings) -> dict[str, str]:
    """On one machine nobody else needs to reach the driver."""
    if not settings.is_local:
        return {}
    return {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}


def _log_settings() -> dict[str, str]:
    quiet = files("mooring.spark") / "log4j2.properties"
    return {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{quiet}"}
