"""The session: found or started, quiet, and ended; its failures told in a line."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError

from mooring.errors import InvalidInputError, MooringError, TableNotFoundError
from mooring.spark.failures import telling_failures
from mooring.spark.runner import SparkRunner
from mooring.spark.session import SessionKeeper, SparkSettings, _hush, open_session
from mooring.spark.workers import check_workers
from tests.spark import program

PROGRAM = str(Path(program.__file__))
# Makes its input the terminal that interrupts come from, and becomes the program.
ON_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def fail(part: int) -> int:
    if part == 2:
        msg = "this part cannot be done,\nfor two reasons"
        raise ValueError(msg)
    return part


def crash(part: int) -> int:
    os._exit(3)


def test_an_active_session_is_used_from_any_thread_and_left_running(spark):
    found = []

    def use() -> None:
        with SessionKeeper(SparkSettings("local[2]", {"spark.sql.ansi.enabled": "true"})) as keeper:
            found.append(keeper.session())

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    use()
    assert found == [spark, spark]
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("master", ["local[7]", "spark://host:7077", "sc://host:15002"])
def test_an_active_session_keeps_its_master(spark, master):
    message = "a Spark session with master local.2. is active, and .* is asked for"
    with pytest.raises(InvalidInputError, match=message):
        open_session(SparkSettings(master))


def test_a_failed_task_is_told_by_its_cause(spark):
    message = "^a task of Spark failed: ValueError: this part cannot be done,$"
    with pytest.raises(MooringError, match=message) as failure:
        SparkRunner(spark).run(fail, [1, 2])
    assert "for two reasons" in str(failure.value.__cause__)


def test_a_worker_that_ends_is_told(spark):
    message = "^a task of Spark failed: its Python ended all of a sudden"
    with pytest.raises(MooringError, match=message):
        SparkRunner(spark).run(crash, [1])


def test_an_error_of_ours_in_a_worker_is_raised_as_what_it_is(spark):
    def look(batches):
        for _ in batches:
            raise TableNotFoundError("table 'x' not found")
        yield from ()

    with pytest.raises(TableNotFoundError, match=r"^table 'x' not found$"), telling_failures():
        spark.range(1).mapInArrow(look, "n long").collect()


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ("selekt 1", InvalidInputError, "Syntax error at or near 'selekt'"),
        ("select * from nowhere", InvalidInputError, "TABLE_OR_VIEW_NOT_FOUND"),
        ("select raise_error('bad luck')", MooringError, "bad luck"),
    ],
)
def test_what_spark_says_of_a_query_is_one_line(spark, query, kind, message):
    with pytest.raises(kind, match=message) as failure, telling_failures():
        spark.sql(query).collect()
    assert len(str(failure.value).splitlines()) == 1


def test_what_is_not_of_spark_stays_what_it_is():
    with pytest.raises(ConnectionResetError), telling_failures():
        raise ConnectionResetError


def interrupted_call() -> None:
    """Do as PySpark, which calls Java once more after Ctrl-C; that may have ended Java before."""
    try:
        raise KeyboardInterrupt
    finally:
        raise Py4JNetworkError("Answer from Java side is empty")


def test_what_fails_on_the_way_out_of_an_interrupt_is_the_interrupt():
    with pytest.raises(KeyboardInterrupt), telling_failures():
        interrupted_call()


class OfAServer:
    """A session reduced to what one of Spark Connect has, too."""

    def __init__(self, session) -> None:
        self.createDataFrame = session.createDataFrame
        self.range = session.range
        self.handlers: list[object] = []

    def registerProgressHandler(self, handler) -> None:  # noqa: N802  # PySpark's name
        self.handlers.append(handler)

    def removeProgressHandler(self, handler) -> None:  # noqa: N802  # PySpark's name
        self.handlers.remove(handler)


def test_a_runner_needs_only_what_spark_connect_has(spark):
    heard = []
    session = OfAServer(spark)
    runner = SparkRunner(session, lambda *progress: heard.append(progress))
    assert runner.run(str.upper, ["a", "b"], label="shouting") == ["A", "B"]
    assert (heard[0], heard[-1]) == (("shouting", 0, 2), ("shouting", 2, 2))
    assert session.handlers == []


def test_a_meter_hears_of_a_job(spark):
    heard = []
    runner = SparkRunner(lambda: spark, lambda *progress: heard.append(progress))
    runner.run(str.upper, ["a", "b", "c"], label="shouting")
    assert (heard[0], heard[-1]) == (("shouting", 0, 3), ("shouting", 3, 3))
    assert [done for _, done, _ in heard] == sorted(done for _, done, _ in heard)


def test_workers_of_other_versions_are_refused(spark, monkeypatch):
    here = {"mooring": "9.9.9"}
    monkeypatch.setattr(
        "mooring.spark.workers.version", lambda name: here.get(name) or version(name)
    )
    with pytest.raises(MooringError, match=r"has mooring \S+ instead of 9.9.9 in its Python /"):
        check_workers(OfAServer(spark))


def run_job(*args, cwd, **environ):
    return subprocess.run(
        [sys.executable, PROGRAM, *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, **environ},
    )


def test_a_query_that_is_refused_is_not_logged_as_well(spark, capfd):
    _hush()
    with pytest.raises(InvalidInputError, match="nope"), telling_failures():
        spark.sql("SELECT nope FROM range(3)")
    assert "UNRESOLVED_COLUMN" not in capfd.readouterr().err


@pytest.mark.interop
def test_spark_writes_nothing_of_its_own(tmp_path):
    done = run_job("job", "--spark", "-o", "json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"done": ["A", "B"]}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.interop
def test_a_failure_is_one_line_and_all_of_it_with_verbose(tmp_path):
    failed = run_job("job", "a", "fail", "--master", "local[1,3]", cwd=tmp_path)
    assert failed.returncode == 1
    expected = "error: a task of Spark failed: ValueError: this part cannot be done,\n"
    assert failed.stderr == expected
    told = run_job("-v", "job", "crash", "--master", "local[1]", cwd=tmp_path)
    assert "Traceback" in told.stderr
    assert told.stderr.endswith("its Python ended all of a sudden; it may have run out of memory\n")


@pytest.mark.interop
def test_a_java_that_ends_at_once_says_why(tmp_path):
    failed = run_job("job", "--conf", "spark.driver.memory=lots", cwd=tmp_path)
    assert failed.returncode == 5
    assert re.fullmatch(r"error: the Java of Spark \(.*java\) did not start: .*\n", failed.stderr)
    assert "lots" in failed.stderr


@pytest.mark.interop
def test_a_terminal_shows_stages_and_an_interrupt_ends_them(tmp_path):
    """Ctrl-C reaches every process of the terminal, as it does from a keyboard."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_TERMINAL, PROGRAM, "job", "a", "sleep", "--master", "local[2]"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        start_new_session=True,
    )
    os.close(theirs)
    shown = ""
    while "1/2" not in shown:
        shown += os.read(ours, 65536).decode()
    assert "spark: shouting" in shown
    java = children_of(process.pid)
    assert java
    os.write(ours, b"\x03")
    shown = read_all(ours)
    os.close(ours)
    assert process.wait(timeout=60) == 130
    assert "Traceback" not in shown
    assert "Exception" not in shown
    for pid in java:
        wait_for_end(pid)


def read_all(descriptor: int) -> str:
    shown = b""
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # the terminal closes with its last process
            return shown.decode()
        if not chunk:
            return shown.decode()
        shown += chunk


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
