"""Credentials that a catalog vends reach the store and Lance, and are renewed before their end."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import lance
import lance_namespace
import pyarrow as pa
import pytest

import mooring
from tests.iceberg.passing import Answer, passing
from tests.own_irc import run_own

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

    from tests.servers import S3Server


class Vending:
    """Gives each that loads a table a key of its own, which holds for some time."""

    def __init__(self, life_s: float) -> None:
        self._life_ms = int(life_s * 1000)
        self._numbers = count(1)
        self._ends_at_ms: dict[str, int] = {}
        self.used: set[str] = set()
        self.endpoint = ""

    def hand_out(self, answer: Answer) -> Answer:
        told = json.loads(answer.content) if answer.content[:1] == b"{" else {}
        if "metadata" not in told:
            return answer
        key = f"KEY{next(self._numbers)}"
        self._ends_at_ms[key] = time.time_ns() // 1_000_000 + self._life_ms
        credential = {
            "s3.access-key-id": key,
            "s3.secret-access-key": f"secret of {key}",
            "s3.session-token": f"session-{key}",
            "s3.session-token-expires-at-ms": str(self._ends_at_ms[key]),
        }
        told["config"] = {"client.region": "us-east-1", "s3.endpoint": self.endpoint}
        told["storage-credentials"] = [{"prefix": "s3://", "config": credential}]
        return replace(answer, content=json.dumps(told).encode())

    def check(self, headers: Message) -> Answer | None:
        key = headers["Authorization"].partition("Credential=")[2].partition("/")[0]
        self.used.add(key)
        is_whole = headers["x-amz-security-token"] == f"session-{key}"
        if is_whole and self._ends_at_ms.get(key, 0) > time.time_ns() // 1_000_000:
            return None
        return Answer(403, b"<Error><Code>ExpiredToken</Code><Message>old</Message></Error>")


@contextmanager
def run_vending(scheme: str, moto: S3Server, prefix: str, life_s: float) -> Iterator[str]:
    vending = Vending(life_s)
    behind = mooring.connect(f"{scheme}{moto.uri(prefix)}", storage_options=moto.options)
    with (
        run_own(behind) as uri,
        passing(moto.endpoint, refuse=vending.check) as vending.endpoint,
        passing(uri, change=vending.hand_out) as address,
    ):
        yield address


def rows(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


@pytest.mark.parametrize("scheme", ["metastore+", ""])
# Lance renews what ends within a minute: the shorter life is renewed with each use.
@pytest.mark.parametrize("life_s", [3, 3600])
def test_a_table_is_used_with_vended_credentials_alone(scheme, life_s, moto):
    with run_vending(scheme, moto, f"vended{scheme}{life_s}", life_s) as uri:
        catalog = mooring.connect(f"iceberg+{uri}")
        catalog.create_namespace("a")
        held = catalog.create_table("a$t", rows(1))
        client = lance_namespace.connect("mooring.IcebergNamespace", {"uri": uri})
        name = {"namespace_client": client, "table_id": ["a", "t"]}
        opened = lance.write_dataset(rows(2), mode="append", **name)
        if life_s < 60:
            time.sleep(life_s)
        assert opened.to_table().num_rows == 2
        held.insert(rows(3))
        assert sorted(held.to_arrow()["n"].to_pylist()) == [1, 2, 3]
        assert [one.version for one in held.versions()] == [3, 2, 1]


def test_no_session_of_the_catalog_with_a_key_of_the_user(moto, tmp_path):
    with run_vending("metastore+", moto, "ownkeys", 3600) as uri:
        # What is there has several names: a store takes each once.
        own = {key.removeprefix("aws_"): value for key, value in moto.options.items()}
        catalog = mooring.connect(f"iceberg+{uri}", storage_options=own)
        catalog.create_namespace("a")
        table = catalog.create_table("a$t", rows(1))
        assert table.to_arrow()["n"].to_pylist() == [1]
        assert set(table.info.storage_options) - set(own) <= {"aws_region"}
