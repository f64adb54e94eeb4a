"""Spark for a command: who does a job, with which settings, and what is said without Spark."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mooring.cli.session import Flags, Session
from mooring.cli.spark import choose_runner, spark_settings
from mooring.errors import InvalidInputError, UnsupportedError
from mooring.jobs.runner import Threads
from mooring.spark.java import find_java
from mooring.spark.runner import SparkRunner
from tests.spark import program

PROGRAM = str(Path(program.__file__))


def run_job(*args, **environ):
    return subprocess.run(
        [sys.executable, PROGRAM, "job", *args],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environ},
    )


def choose(environ=None, **how):
    asked = {"spark": None, "master": None, "conf": None, "fits": True, **how}
    with choose_runner(Session(Flags(), environ or {}), **asked) as runner:
        return type(runner)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ({}, Threads),
        ({"fits": False}, SparkRunner),
        ({"fits": False, "spark": False}, Threads),
        ({"spark": True}, SparkRunner),
        ({"master": "local[2]"}, SparkRunner),
        ({"conf": ["spark.task.maxFailures=1"]}, SparkRunner),
    ],
)
def test_size_decides_unless_somebody_does(asked, kind):
    assert choose(**asked) is kind


def test_a_job_too_large_runs_here_where_there_is_no_spark(monkeypatch):
    monkeypatch.setattr("mooring.cli.spark._is_installed", lambda: False)
    assert choose(fits=False) is Threads


def test_a_master_in_the_settings_does_not_ask_for_spark():
    assert choose({"MOORING_SPARK_MASTER": "local[2]"}) is Threads


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"spark": False, "master": "local"}, "--no-spark says not to use Spark"),
        ({"conf": ["spark.task.maxFailures"]}, "a setting of Spark is KEY=VALUE"),
        ({"conf": ["task.maxFailures=1"]}, "'task.maxFailures' is no setting of Spark"),
        ({"master": "mesos://x"}, "'mesos://x' is no master of Spark: it is local"),
    ],
)
def test_nonsense_is_refused_before_anything_starts(asked, message):
    with pytest.raises(InvalidInputError, match=message):
        choose(**asked)


def test_flag_beats_environment_beats_profile(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(
        '[profiles.default.spark]\nmaster = "spark://profile:7077"\n'
        "[profiles.default.spark.conf]\n"
        'spark.executor.memory = "1g"\n"spark.executor.cores" = 2\nspark.speculation = true\n'
    )
    environ = {"MOORING_CONFIG": str(config)}
    from_profile = spark_settings(Session(Flags(), environ))
    assert from_profile.master == "spark://profile:7077"
    assert from_profile.conf == {
        "spark.executor.memory": "1g",
        "spark.executor.cores": "2",
        "spark.speculation": "true",
    }
    environ |= {
        "MOORING_SPARK_MASTER": "local[3]",
        "MOORING_SPARK_CONF__spark__executor__memory": "2g",
        "MOORING_SPARK_CONF__spark.driver.extraJavaOptions": "-Xss4m",
    }
    session = Session(Flags(catalog="elsewhere"), environ)
    from_environment = spark_settings(session)
    assert from_environment.master == "local[3]"
    assert from_environment.conf["spark.executor.memory"] == "2g"
    assert from_environment.conf["spark.driver.extraJavaOptions"] == "-Xss4m"
    assert from_environment.conf["spark.executor.cores"] == "2"
    given = spark_settings(session, master="local[1]", conf=["spark.executor.memory=3g"])
    assert (given.master, given.conf["spark.executor.memory"]) == ("local[1]", "3g")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[profiles.p]\nspark = "x"\n', "must be a table, and its conf one too"),
        ("[profiles.p.spark]\nconf = 1\n", "must be a table, and its conf one too"),
        ("[profiles.p.spark]\nmastr = 1\n", "unknown key 'mastr'; known are conf, master"),
    ],
)
def test_a_wrong_table_of_spark_is_named(run, tmp_path, text, message):
    config = tmp_path / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(text)
    result = run("profile", "list")
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_profile_keeps_settings_of_spark_and_shows_no_secret(run, tmp_path):
    run("profile", "set", "p", "lake", "--master", "sc://me:secret@host:15002/;token=hidden")
    run("profile", "set", "p", "--conf", "spark.hadoop.fs.s3a.secret.key=hidden")
    run("profile", "set", "p", "--conf", "spark.executor.memory=2g", "--storage", "aws_region=eu")
    text = (tmp_path / "config" / "config.toml").read_text()
    assert '"spark.hadoop.fs.s3a.secret.key" = "hidden"' in text
    for shown in (run("profile", "show", "p"), run("profile", "list"), run("doctor")):
        assert "hidden" not in shown.stdout
        assert "secret@" not in shown.stdout
    row = json.loads(run("profile", "show", "p", "-o", "json").stdout)
    assert row["spark_conf"] == {
        "spark.hadoop.fs.s3a.secret.key": "****",
        "spark.executor.memory": "2g",
    }
    assert row["storage"] == {"aws_region": "eu"}
    shown = json.loads(run("doctor", "--profile", "p", "-o", "json").stdout)
    found = {row["name"]: (row["value"], row["note"]) for row in shown}
    assert found["spark_conf.spark.executor.memory"] == ("2g", "profile 'p'")

    run("profile", "set", "p", "--unset", "spark.executor.memory", "--unset", "spark_master")
    row = json.loads(run("profile", "show", "p", "-o", "json").stdout)
    assert row["spark_master"] is None
    assert list(row["spark_conf"]) == ["spark.hadoop.fs.s3a.secret.key"]
    run("profile", "set", "p", "--unset", "spark.hadoop.fs.s3a.secret.key")
    assert "spark" not in (tmp_path / "config" / "config.toml").read_text()


def test_a_profile_takes_no_nonsense_about_spark(run):
    assert "no master of Spark" in run("profile", "set", "p", "lake", "--master", "x").stderr
    assert "no setting of Spark" in run("profile", "set", "p", "lake", "--conf", "a=1").stderr
    assert run("profile", "show", "p").exit_code == 3


def test_doctor_tells_of_spark_and_java_without_starting_them(run, lake, monkeypatch, tmp_path):
    def found():
        rows = json.loads(run("doctor", str(lake), "-o", "json").stdout)
        return {row["name"]: row for row in rows if row["section"] == "version"}

    assert found()["pyspark"]["value"].startswith("4.1.")
    assert found()["java"]["status"] == "ok"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert found()["java"]["status"] == "warning"
    assert "has no bin/java" in found()["java"]["note"]


def make_java(home, *said):
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n" + "".join(f"echo '{line}' >&2\n" for line in said) + "exit 1\n")
    java.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda home: {"PATH": str(home)}, "Spark needs Java 17 or newer, and no java is to be"),
        (lambda home: {"JAVA_HOME": str(home)}, "which has no bin/java; Spark needs Java 17"),
        (
            lambda home: {"JAVA_HOME": str(make_java(home, 'openjdk version "11.0.2" 2019-01-15'))},
            "is Java 11: install it",
        ),
        (
            lambda home: {"JAVA_HOME": str(make_java(home, 'java version "1.8.0_202"'))},
            "is Java 8: install it",
        ),
        (lambda home: {"JAVA_HOME": str(make_java(home, "no runtime"))}, "is no Java; Spark needs"),
    ],
    ids=["none", "no java in it", "11", "8", "not one"],
)
def test_a_java_that_does_not_do_is_told(make, message, tmp_path, monkeypatch):
    for name, value in {"JAVA_HOME": "", **make(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UnsupportedError, match=message):
        find_java()


def test_a_job_without_java_ends_in_one_line(tmp_path):
    result = run_job("--spark", JAVA_HOME="", PATH=str(tmp_path))
    assert (result.returncode, result.stdout) == (5, "")
    assert "Spark needs Java 17 or newer, and no java is to be found" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("master", ["spark://127.0.0.1:1", "sc://127.0.0.1:1/;token=x"])
def test_a_server_that_does_not_answer_is_told_at_once(master):
    result = run_job("--master", master)
    assert result.returncode == 1
    assert result.stderr.endswith("does not answer: Connection refused\n")
    assert "token=x" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_what_spark_connect_lacks_is_named(free_server):
    result = run_job("--master", f"sc://127.0.0.1:{free_server}")
    assert "pip install 'pyspark[connect]'" in result.stderr
    assert (result.returncode, len(result.stderr.splitlines())) == (5, 1)


@pytest.fixture
def free_server():
    """A port on which somebody listens."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_job_that_stays_here_starts_no_java():
    assert '["A", "B"]' in run_job(PATH="", JAVA_HOME="").stdout
