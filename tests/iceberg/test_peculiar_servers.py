"""Servers that say less than others, or what does not hold; and what must not be lost there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import lance
import lance_namespace
import pyarrow as pa
import pytest

import mooring
from mooring.clock import SystemClock
from mooring.errors import TableNotFoundError, UnknownOutcomeError
from mooring.iceberg.client import RestClient
from mooring.iceberg.opening import open_iceberg
from mooring.iceberg.settings import ClientSettings
from mooring.identifiers import ObjectId
from mooring.namespace.located import insert_into
from mooring.tables.records import VersionRecords
from tests.iceberg.passing import Answer, passing
from tests.iceberg.scripted_server import error, run_scripted
from tests.own_irc import run_own

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = ["metastore+", ""]


def rows(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def telling(change: Callable[[dict[str, Any]], None]) -> Callable[[Answer], Answer]:
    """Change the metadata of tables in answers."""

    def changed(answer: Answer) -> Answer:
        told = json.loads(answer.content) if answer.content[:1] == b"{" else {}
        if "metadata" not in told:
            return answer
        change(told["metadata"])
        return replace(answer, content=json.dumps(told).encode())

    return changed


def only_the_number(metadata: dict[str, Any]) -> None:
    for key in ("snapshots", "refs", "snapshot-log"):
        metadata.pop(key, None)


def no_snapshots(metadata: dict[str, Any]) -> None:
    metadata.pop("refs", None)
    metadata["snapshots"] = []


def too_high(metadata: dict[str, Any]) -> None:
    metadata["properties"]["managed_by"] = "STORAGE"
    metadata["current-snapshot-id"] = 99
    metadata["refs"] = {"main": {"type": "branch", "snapshot-id": 99}}


def too_low(metadata: dict[str, Any]) -> None:
    metadata["properties"].pop("managed_by")
    metadata["current-snapshot-id"] = 1
    metadata["refs"] = {"main": {"type": "branch", "snapshot-id": 1}}


@pytest.mark.parametrize("change", [only_the_number, no_snapshots, too_high, too_low])
def test_the_newest_version_is_what_the_document_says(change, tmp_path):
    with run_own(mooring.connect(f"metastore+{tmp_path / 'lake'}")) as served:
        first = mooring.connect(f"iceberg+{served}")
        first.create_namespace("a")
        first.create_table("a$t", rows(1)).insert(rows(2))
        with passing(served, change=telling(change)) as uri:
            table = mooring.connect(f"iceberg+{uri}").table("a$t")
            assert table.to_arrow()["n"].to_pylist() == [1, 2]
            assert table.insert(rows(3)).version == 3
            client = lance_namespace.connect("mooring.IcebergNamespace", {"uri": uri})
            name = {"namespace_client": client, "table_id": ["a", "t"]}
            assert lance.write_dataset(rows(4), mode="append", **name).version == 4
            assert lance.dataset(**name).to_table()["n"].to_pylist() == [1, 2, 3, 4]
            assert [one.version for one in table.versions()] == [4, 3, 2, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_deregistered_through_a_server_of_ours_stays(kind, tmp_path):
    lake = mooring.connect(f"{kind}{tmp_path / 'lake'}")
    with run_own(lake) as served:
        catalog = mooring.connect(f"iceberg+{served}")
        catalog.create_namespace("a")
        location = catalog.create_table("a$t", rows(1)).location
        assert catalog.deregister_table("a$t").location == location
        for dropped in lake.list_purgable_tables():
            lake.purge_table(dropped.id)
        assert lance.dataset(location).count_rows() == 1
        catalog.register_table("a$again", location)
        assert catalog.table("a$again").to_arrow()["n"].to_pylist() == [1]


class LaterClock(SystemClock):
    later_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.later_ms


def test_a_version_of_which_nobody_heard_can_be_read_some_time_later(tmp_path, monkeypatch):
    clock = LaterClock()
    with run_own(mooring.connect(f"metastore+{tmp_path / 'lake'}")) as served:
        backend = open_iceberg({"uri": served}, {}, author="me", clock=clock)
        mooring.connect(f"iceberg+{served}").create_namespace("a")
        table = ObjectId(("a", "t"))
        backend.create_table(table, rows(1).to_reader())
        other = mooring.connect(f"iceberg+{served}").table("a$t")
        with monkeypatch.context() as patched:

            def land(*_: object) -> None:
                raise UnknownOutcomeError("nobody heard")

            patched.setattr("mooring.iceberg.versions.land", land)
            with pytest.raises(UnknownOutcomeError):
                insert_into(backend, table, rows(2).to_reader())
        other.insert(rows(3))
        with pytest.raises(UnknownOutcomeError):
            backend.describe_table_version(table, 2)
        clock.later_ms = 1_000_000
        assert backend.describe_table_version(table, 2).version == 2


def test_no_table_where_there_is_no_namespace_and_no_head():
    with run_scripted() as server:
        client = RestClient(ClientSettings(server.uri))
        server.answer(error(405, ""), error(404, "NoSuchNamespaceException"))
        assert not client.table_exists(("a",), "t")
        client.close()


def test_rows_that_may_be_in_a_table_that_went_are_told(tmp_path, monkeypatch):
    with run_own(mooring.connect(f"{tmp_path / 'lake'}")) as served:
        catalog = mooring.connect(f"iceberg+{served}")
        catalog.create_namespace("a")
        catalog.create_table("a$t", rows(1))
        create = VersionRecords.create

        def create_then_rename(*given: object) -> object:
            record = create(*given)
            mooring.connect(f"iceberg+{served}").rename_table("a$t", "a$u")
            return record

        with monkeypatch.context() as patched:
            patched.setattr(VersionRecords, "create", create_then_rename)
            with pytest.raises(TableNotFoundError, match="may be in it when it comes back"):
                catalog.table("a$t").insert(rows(2))
        assert catalog.table("a$u").to_arrow()["n"].to_pylist() == [1, 2]


def test_a_catalog_is_shown_without_what_is_secret():
    secret = "?token=hush&credential=id:hush&header.X-Api-Key=hush&warehouse=lake"  # told to nobody
    catalog = mooring.connect(f"iceberg+http://user:hush@127.0.0.1:1/iceberg{secret}")
    assert "hush" not in repr(catalog)
    assert "warehouse=lake" in repr(catalog)


@pytest.mark.parametrize("kind", KINDS)
def test_what_something_between_sends_twice_is_told_as_done(kind, tmp_path, monkeypatch):
    lake = mooring.connect(f"{kind}{tmp_path / 'lake'}")
    with run_own(lake) as served:
        catalog = mooring.connect(f"iceberg+{served}")
        catalog.create_namespace("a")

        def twice(name: str) -> None:
            once = getattr(RestClient, name)

            def send(*given: object, **more: object) -> object:
                once(*given, **more)
                return once(*given, **more)

            monkeypatch.setattr(RestClient, name, send)

        twice("create_table")
        twice("rename_table")
        assert catalog.create_table("a$t", rows(1)).to_arrow()["n"].to_pylist() == [1]
        location = catalog.drop_table("a$t").location
        monkeypatch.undo()
        assert catalog.undrop_table("a$t").location == location
        twice("rename_table")
        assert catalog.deregister_table("a$t").location == location
        assert lance.dataset(location).count_rows() == 1


def naming_oddly(answer: Answer) -> Answer:
    """Add to every listing what others may have named, and no identifier can hold."""
    told = json.loads(answer.content) if answer.content[:1] == b"{" else {}
    for key, item in (("namespaces", list), ("identifiers", dict)):
        for name in ("a/b", "..", "a\\b", "a\x1fb") if key in told else ():
            told[key].append([name] if item is list else {"namespace": ["a"], "name": name})
    return replace(answer, content=json.dumps(told).encode()) if told else answer


def test_names_that_cannot_be_addressed_do_not_hide_the_others(tmp_path):
    with run_own(mooring.connect(f"metastore+{tmp_path / 'lake'}")) as served:
        first = mooring.connect(f"iceberg+{served}")
        first.create_namespace("a")
        first.create_table("a$t", rows(1))
        with passing(served, change=naming_oddly) as uri:
            catalog = mooring.connect(f"iceberg+{uri}")
            assert catalog.list_namespaces() == ["a"]
            assert catalog.list_tables("a") == ["t"]
            assert catalog.list_all_tables() == [ObjectId(("a", "t"))]
