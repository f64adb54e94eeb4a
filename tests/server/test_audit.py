"""Every change that was asked for is a line: who, what, when, from where, and what came of it."""

from __future__ import annotations

import json
import logging
import os
import threading
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import mooring
from mooring.errors import InvalidInputError
from mooring.identifiers import ObjectId
from mooring.server.app import create_app
from mooring.server.audit import AuditLog, Change, outcome_of
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.lakes import FakeClock
from tests.server.lance_served import ARROW, stream_of

TABLE = ObjectId(("a", "t"))
DONE = Change("ada", "lake", "lance.DropTable", [TABLE], 200, "done", None, "::1", "r1")
IN_A = Grant(Role.WRITER, None, ObjectId(("a",)))


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_line_tells_all_of_a_change(tmp_path):
    log = AuditLog(tmp_path / "audit.log", clock=FakeClock(1_700_000_000_123))
    log.record(DONE)
    log.close()
    assert _lines(tmp_path / "audit.log") == [
        {
            "at": "2023-11-14T22:13:20.123+00:00",
            "subject": "ada",
            "operation": "lance.DropTable",
            "catalog": "lake",
            "objects": [["a", "t"]],
            "outcome": "done",
            "status": 200,
            "message": None,
            "address": "::1",
            "request_id": "r1",
        }
    ]
    assert (tmp_path / "audit.log").stat().st_mode & 0o007 == 0


def test_secrets_are_masked_and_no_line_is_forged(tmp_path):
    log = AuditLog(tmp_path / "audit.log")
    message = 'failed at s3://key:hush@bucket/x?token=hush\n{"subject": "root"}'
    log.record(Change("a\nb", "lake", "x", [ObjectId(("n\n",))], 500, "failed", message))
    log.close()
    (line,) = _lines(tmp_path / "audit.log")
    assert "hush" not in json.dumps(line)
    assert line["subject"] == "a\nb"


def test_file_is_appended_to_and_begun_anew_after_it_was_moved(tmp_path):
    path = tmp_path / "audit.log"
    path.write_text("{}\n")
    log = AuditLog(path)
    log.record(DONE)
    log.close()
    assert len(_lines(path)) == 2
    log = AuditLog(path)
    path.rename(tmp_path / "audit.log.1")
    log.record(DONE)
    log.close()
    assert len(_lines(tmp_path / "audit.log.1")) == 2
    assert len(_lines(path)) == 1


def test_two_servers_write_one_file(tmp_path):
    path = tmp_path / "audit.log"
    logs = [AuditLog(path), AuditLog(path)]
    for _ in range(500):
        for log in logs:
            log.record(DONE)
    for log in logs:
        log.close()
    assert len(_lines(path)) == 1000


def test_full_disk_is_told_loudly_and_nothing_waits(tmp_path, caplog):
    log = AuditLog(Path("/dev/full"))
    with caplog.at_level(logging.CRITICAL):
        log.record(DONE)
        log.close()
    (told,) = [one for one in caplog.records if one.levelno == logging.CRITICAL]
    assert "No space left" in told.getMessage()
    assert '"subject":"ada"' in told.getMessage()  # the line itself is not lost


def test_disk_that_does_not_keep_up_has_nobody_wait(tmp_path, caplog):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    log = AuditLog(pipe, most_waiting=5)
    with caplog.at_level(logging.CRITICAL):
        for _ in range(3000):  # more than a pipe holds
            log.record(DONE)
    assert "does not keep up" in caplog.text
    os.set_blocking(reader, True)
    drained = threading.Thread(target=lambda: [*iter(lambda: os.read(reader, 65536), b"")])
    drained.start()
    log.close()
    drained.join()
    os.close(reader)


def test_file_that_cannot_be_written_is_refused_at_once(tmp_path):
    with pytest.raises(InvalidInputError, match="audit log"):
        AuditLog(tmp_path / "absent" / "audit.log")


def test_outcomes():
    assert [outcome_of(status) for status in (200, 204, 304, 401, 403, 409, 500, 503)] == [
        *(["done"] * 3),
        *(["refused"] * 3),
        *(["failed"] * 2),
    ]


@pytest.fixture
def audited(tmp_path):
    catalog = mooring.connect(tmp_path / "lake")
    catalog.create_namespace("a")
    catalog.create_namespace("b")
    settings = ServerSettings(
        clients=(Client.of("will", "hush-hush", IN_A), Client.of("rita", "hush-hush")),
        audit_log=tmp_path / "audit.log",
    )
    path = tmp_path / "audit.log"
    with TestClient(create_app(catalog, settings), base_url="http://x") as client:
        yield client, lambda: (client.__exit__(None, None, None), _lines(path))[1]


WILL, RITA = ({"x-api-key": f"{name}:hush-hush"} for name in ("will", "rita"))


def test_changes_by_every_protocol_are_told_and_reads_are_not(audited):
    client, lines = audited
    rows = stream_of(pa.table({"n": [1]}))
    sent = {"content": rows, "headers": {**WILL, "content-type": ARROW}}
    assert client.post("/lance/v1/table/a$t/create", **sent).status_code == 200
    assert client.post("/lance/v1/table/a$t/describe", headers=WILL).status_code == 200
    assert client.get("/iceberg/v1/namespaces", headers=WILL).status_code == 200
    renaming = {"new_table_name": "u", "new_namespace_id": ["b"]}
    path = "/lance/v1/table/a$t/rename"
    assert client.post(path, json=renaming, headers=WILL).status_code == 403
    path = "/iceberg/v1/namespaces/a/tables/t"
    assert client.delete(path, headers=RITA).status_code == 403
    assert client.delete(path).status_code == 401
    tagged = {**WILL, "x-request-id": "r-1"}
    assert client.delete(path, headers=tagged).status_code == 204
    assert client.delete(path, headers=WILL).status_code == 404
    found = lines()
    assert [(one["operation"], one["subject"], one["status"]) for one in found] == [
        ("lance.CreateTable", "will", 200),
        ("lance.RenameTable", "will", 403),
        ("iceberg.drop_table", "rita", 403),
        ("iceberg.drop_table", None, 401),
        ("iceberg.drop_table", "will", 204),
        ("iceberg.drop_table", "will", 404),
    ]
    assert found[0]["objects"] == [["a", "t"]]
    assert found[1]["objects"] == [["a", "t"], ["b", "u"]]
    assert [one["objects"] for one in found[2:]] == [[["a", "t"]], [], [["a", "t"]], [["a", "t"]]]
    assert found[1]["message"] is not None
    assert [one["outcome"] for one in found] == ["done", *["refused"] * 3, "done", "refused"]
    assert found[4]["request_id"] == "r-1"
    assert all(one["address"] == "testclient" for one in found)
    assert all(datetime.fromisoformat(one["at"]).tzinfo for one in found)
    assert "hush" not in json.dumps(found)


def test_what_is_refused_for_the_role_is_named(audited):
    client, lines = audited
    client.post("/lance/v1/table/a$t/drop", headers=RITA)
    client.post("/mooring/v1/table/a$t/purge", headers=WILL)
    found = [(one["operation"], one["objects"], one["message"]) for one in lines()]
    assert [one[:2] for one in found] == [
        ("lance.DropTable", [["a", "t"]]),
        ("mooring.PurgeTable", [["a", "t"]]),
    ]
    assert "their role there is reader" in found[0][2]
    assert "their role there is writer" in found[1][2]
