"""``mooring serve`` as a process of its own."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest
from starlette.testclient import TestClient

import mooring
from mooring.cli.served_catalogs import DEFAULT_NAME, wanted_catalogs
from mooring.cli.session import Flags, Session
from mooring.errors import InvalidInputError
from mooring.server.access_log import Access, write_access
from mooring.server.app import create_app
from mooring.server.asked import enter
from mooring.server.logs import LogFormat, formatter_of
from mooring.server.metrics import Metrics
from mooring.server.running import address_of, bind, is_loopback
from tests.lakes import rows
from tests.program import invoke

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LIMIT_S = 60
# Options of the programs that the examples of the server call beside it.
_OF_OTHERS = {
    "--format",
    "--no-cache-dir",
    "--system",
    "--uid",
    "--home-dir",
    "--create-home",
    "--from",
} | {
    "--interval",
    "--timeout",
    "--start-period",
    "--now",
    "--file",
}


@pytest.fixture
def lake(tmp_path):
    root = tmp_path / "lake"
    mooring.connect(root).create_table("t", rows([1]))
    return root


def _command() -> list[str]:
    return [str(Path(sys.executable).with_name("mooring"))]


@contextmanager
def _serving(
    *words: object, stream: str = "stderr", by: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve on a free port; give the process, and the address that it tells."""
    process = subprocess.Popen(
        [*(by or _command()), "serve", *map(str, words), "--port", "0"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MOORING_USER": "ada"},
    )
    try:
        told = ""
        while not (match := re.search(r"http://\S+/iceberg", told)):
            line = getattr(process, stream).readline()
            assert line, told
            told += line
        yield process, match[0]
    finally:
        process.kill()
        process.communicate()


def test_secrets_are_not_handed_to_anybody(lake):
    words = ["--vend-credentials", "--vend-role", "arn:aws:iam::123456789012:role/lake"]
    done = invoke("serve", lake, *words, "--port", "0")
    assert done.exit_code == 2
    assert "--allow-anonymous" in done.output


def test_catalog_is_served_logged_and_stopped(lake):
    with _serving(lake) as (process, address):
        found = httpx2.get(f"{address}/v1/namespaces/root/tables?secret=x")
        assert [one["name"] for one in found.json()["identifiers"]] == ["t"]
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
        assert process.wait(_LIMIT_S) == 0
    lines = told.splitlines()
    assert f'  catalog = RestCatalog("mooring", uri="{address}")' in lines
    line = json.loads(lines[-1])
    assert (line["method"], line["status"]) == ("GET", 200)
    assert line["path"] == "/iceberg/v1/namespaces/root/tables"
    assert "secret" not in told
    assert "Traceback" not in told


def test_programs_are_told_the_address_on_standard_output(lake):
    with _serving(lake, "-q", "-o", "ndjson", stream="stdout") as (process, address):
        assert httpx2.get(f"{address}/v1/config").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.stderr.read() == ""
        assert process.wait(_LIMIT_S) == 0


_FAILING = """
import sys
from mooring.cli.app import main
from mooring.server.iceberg import names

def fail(*_):
    raise RuntimeError("what nobody foresaw")

names.Names.show = names.Names.namespace = fail
sys.argv = ["mooring", *sys.argv[1:]]
main()
"""


def test_log_tells_what_nobody_foresaw_under_the_number_that_clients_get(lake):
    command = [sys.executable, "-c", _FAILING]
    with _serving(lake, "-q", "-o", "ndjson", stream="stdout", by=command) as (process, address):
        failed = httpx2.get(f"{address}/v1/namespaces/a")
        assert failed.status_code == 500
        (number,) = re.findall(r"under ([0-9a-f]+)", failed.text)
        process.send_signal(signal.SIGTERM)
        told = process.stderr.read()
    assert number in told
    assert "what nobody foresaw" in told
    assert "what nobody foresaw" not in failed.text


def _fails(*words: object) -> str:
    done = invoke("serve", *words)
    assert done.exit_code in {2, 3, 5}
    (line,) = done.stderr.strip().splitlines()
    return line


def test_what_is_wrong_is_told_in_one_line(lake, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert "is in use: choose another" in _fails(lake, "--port", other.getsockname()[1])
    assert "--allow-anonymous" in _fails(lake, "--host", "0.0.0.0", "--port", 0)  # noqa: S104  # refused
    assert "no credentials file" in _fails(lake, "--credentials", tmp_path / "absent")
    mooring.connect(lake).create_namespace("root")
    assert "--root-namespace" in _fails(lake, "--port", 0)


def test_what_is_wrong_with_several_catalogs_is_told(lake):
    assert "two catalogs without a name" in _fails(lake, "--catalog", "/elsewhere")
    assert "two catalogs are named 'default'" in _fails(lake, "--catalog", f"default={lake}")
    assert "cannot be opened" in _fails("impl+nothing?root=x", "--port", 0)
    assert "cannot be opened" in _fails("impl+dir?root", "--port", 0)
    assert "--read-only cannot be kept" in _fails("impl+dir?root=x", "--read-only", "--port", 0)
    assert "profile 'absent'" in _fails("--catalog", "a=@absent", "--port", 0)
    assert "names no catalog" in _fails("--catalog", "a=", "--port", 0)
    assert "--name x is of no use" in _fails("--catalog", f"a={lake}", "--name", "x", "--port", 0)


def test_options_that_contradict_each_other_are_refused(lake):
    assert "--read-only forbids it" in _fails(lake, "--read-only", "--purge-every", "1h")
    assert "without --webhook" in _fails(lake, "--webhook-secret-file", "secret.txt")


def test_catalogs_are_wanted_by_name(lake, monkeypatch):
    def names(*given: str, uri: str | None = None, name: str = "x") -> dict[str, str]:
        wanted = wanted_catalogs(Session(Flags()), uri, given, name)
        return {one.name: one.shown for one in wanted}

    monkeypatch.setenv("MOORING_CATALOG", "/of/the/environment")
    assert names() == {"x": "/of/the/environment"}
    two = {"a": "/one", "b": "metastore+/two"}
    assert names("a=/one", "b=metastore+/two", name=DEFAULT_NAME) == two
    with pytest.raises(InvalidInputError, match="--name x is of no use"):
        names("a=/one", "b=metastore+/two")
    assert names("a=/one", uri="/main") == {"x": "/main", "a": "/one"}
    assert names("./a=/one", "a=s3://u:p@b/c?d=e") == {"x": "./a=/one", "a": "s3://****@b/c?d=e"}
    assert names("/main", uri="/main") == {"x": "/main"}


def test_request_has_the_id_that_was_sent_or_a_new_one(lake):
    with TestClient(create_app(mooring.connect(lake))) as client:
        sent = client.post("/lance/v1/table/t/exists", headers={"x-request-id": "Trace-1.2:3_4"})
        assert sent.headers["x-request-id"] == "Trace-1.2:3_4"
        failed = client.post("/lance/v1/table/absent/exists", headers={"x-request-id": "abc"})
        assert failed.json()["instance"] == failed.headers["x-request-id"] == "abc"
        made = {client.get("/health/live").headers["x-request-id"] for _ in range(3)}
        assert len(made) == 3
        for bad in ("two words", "x" * 129, 'quote"', ""):
            found = client.get("/health/live", headers={"x-request-id": bad})
            assert re.fullmatch("[0-9a-f]{16}-[0-9a-f]+", found.headers["x-request-id"])


@pytest.mark.parametrize("form", LogFormat)
def test_lines_of_the_log_have_the_request_and_are_masked(form):
    enter({"state": {"request_id": "abc"}})
    try:
        bind("s3://ada:hush@b", 0)
    except InvalidInputError:
        failure = sys.exc_info()
    message = "no way to https://h/?token=hush"
    record = logging.LogRecord("mooring.x", logging.ERROR, "", 1, message, None, failure)
    text = formatter_of(form).format(record)
    assert "hush" not in text
    if form is LogFormat.TEXT:
        assert " ERROR mooring.x [abc]: no way to https://h/?token=" in text
        assert "Traceback" in text
        return
    line = json.loads(text)
    assert (line["level"], line["logger"], line["request_id"]) == ("error", "mooring.x", "abc")
    assert "InvalidInputError" in line["traceback"]


def test_missing_package_is_told_with_how_to_install_it(lake, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "mooring.server.running")
    assert "pip install 'mooring[server]'" in _fails(lake, "--port", 0)


def test_examples_use_what_there_is():
    examples = Path(__file__).parents[2] / "examples" / "serve"
    known = invoke("serve", "--help", env={"COLUMNS": "200"}).output
    for name in ("mooring.service", "Containerfile", "compose.yaml"):
        used = re.findall(r"(?<=[ \"])--[a-z-]+", (examples / name).read_text())
        missing = [one for one in set(used) - _OF_OTHERS if one not in known]
        assert used
        assert not missing
    shown = Metrics().render("")[0].decode()
    alerts = (examples / "alerts.yml").read_text()
    for metric in re.findall(r"mooring_[a-z_]+", alerts):
        assert re.search(rf"^# HELP {metric.removesuffix('_bucket')} ", shown, re.MULTILINE)


def test_socket_tells_who_can_reach_it():
    with bind("127.0.0.1", 0) as taken:
        assert is_loopback(taken)
        assert address_of(taken) == f"127.0.0.1:{taken.getsockname()[1]}"
    with bind("localhost", 0) as taken:
        assert is_loopback(taken)
    with bind("0.0.0.0", 0) as taken:  # noqa: S104  # nobody is let in
        assert not is_loopback(taken)
    with pytest.raises(InvalidInputError, match="no address"):
        bind("no such host.invalid", 0)


def test_access_is_a_line_to_read_on_a_terminal():
    class Terminal:
        def __init__(self) -> None:
            self.text = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None:
            pass

    terminal = Terminal()
    access = Access("2026-01-01T00:00:00.000+00:00", "GET", "/iceberg/v1", 200, 1.5, None, "::1")
    write_access(access, terminal)
    assert terminal.text == "2026-01-01T00:00:00.000+00:00 ::1 GET /iceberg/v1 200 1.5 ms -\n"
