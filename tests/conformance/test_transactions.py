"""Transactions: what made a version, and what is noted about it.

Spec: lance-rest-openapi, DescribeTransaction, AlterTransaction.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance.namespace import DirectoryNamespace
from lance_namespace_urllib3_client import models

from mooring.errors import (
    InvalidInputError,
    ReadOnlyError,
    TableNotFoundError,
    TransactionNotFoundError,
    UnreadableError,
)
from mooring.tables.transactions import SetProperty, alter_transaction
from tests.conformance.content import ask, fails_with, fill, speak, watch
from tests.conformance.meanwhile import Meanwhile
from tests.lakes import MOTO, Lake


@pytest.fixture
def table(plain_lake):
    return fill(plain_lake)


def _describe(lake, key: str, table: str = "t") -> dict[str, str]:
    found = ask(lake, "describe_transaction", id=[*lake.path(table), key])
    assert found.status == "Succeeded"
    return found.properties


def _alter(lake, key: str, *actions: dict[str, dict[str, str]]) -> dict[str, str]:
    made = [models.AlterTransactionAction.model_validate(action) for action in actions]
    return ask(lake, "alter_transaction", id=[*lake.path("t"), key], actions=made).properties


def _set(key: str | None = None, value: str | None = None, mode: str | None = None):
    return {"setPropertyAction": {"key": key, "value": value, "mode": mode}}


def _unset(key: str | None = None, mode: str | None = None):
    return {"unsetPropertyAction": {"key": key, "mode": mode}}


def _status(status: str):
    return {"setStatusAction": {"status": status}}


# -- on every kind of catalog ----------------------------------------------------------------------


def test_a_transaction_is_described_and_gets_properties_by_requests(any_lake):
    """Spec: DescribeTransaction, AlterTransaction."""
    table = fill(any_lake)
    uuid = table.transaction(2).uuid
    found = _describe(any_lake, uuid)
    facts = {"uuid": uuid, "version": "2", "read_version": "1", "operation": "Append"}
    assert found.items() >= facts.items()
    assert found["mooring.by"] == "alice"
    assert _describe(any_lake, "2") == found
    altered = _alter(any_lake, uuid, _set("ticket", "7"), _unset("mooring.at_ms"))
    assert _describe(any_lake, uuid) == altered
    assert altered["ticket"] == "7"
    assert "mooring.at_ms" not in altered
    assert _alter(any_lake, uuid, _set("ticket", "8"))["ticket"] == "8"
    with fails_with(10):
        _describe(any_lake, "nope")


# -- variety, on disk ------------------------------------------------------------------------------


def test_pylance_describes_the_same(plain_lake, table):
    table.delete("n = 1")
    table.update({"n": "n + 1"})
    table.compact()
    pylance = DirectoryNamespace(root=plain_lake.uri)
    for version in range(1, table.version + 1):
        asked = models.DescribeTransactionRequest(id=["t", str(version)])
        assert _describe(plain_lake, str(version)) == pylance.describe_transaction(asked).properties
    _alter(plain_lake, "2", _set("a", "b"), _unset("mooring.by"))
    asked = models.DescribeTransactionRequest(id=["t", "2"])
    assert _describe(plain_lake, "2") == pylance.describe_transaction(asked).properties


def test_transactions_are_described_that_lances_classes_cannot_hold(table):
    """Rewritten indexes make pylance raise, and reserved fragments have no class."""
    table.to_lance().create_scalar_index("n", "BTREE")
    table.compact()
    found = [table.transaction(version).operation for version in (4, 5, 6)]
    assert found == ["CreateIndex", "ReserveFragments", "Rewrite"]
    with pytest.raises(TypeError):
        table.to_lance().read_transaction(6)


def test_a_transaction_that_was_overtaken_is_found_by_its_identifier(plain_lake, table):
    stale = table.to_lance()
    table.insert(pa.table({"n": [7]}))
    stale.insert(pa.table({"n": [8]}))
    made = table.transaction(5)
    assert made.read_version == 3
    assert table.transaction(made.uuid) == made


def test_a_transaction_is_found_without_its_file(plain_lake, table):
    made = table.transaction(2)
    plain_lake.store.delete_prefix("t.lance/_transactions")
    assert table.transaction(made.uuid) == made


def test_a_transaction_of_a_branch_is_found_there(table):
    table.branches.create("dev", version=1)
    table.insert(pa.table({"n": [7]}), branch="dev")
    made = table.transaction(2, branch="dev")
    assert made.operation == "Append"
    assert table.transaction(1, branch="dev").operation == "Clone"
    assert table.transaction(made.uuid, branch="dev") == made
    with pytest.raises(TransactionNotFoundError):
        table.transaction(made.uuid)


@pytest.mark.parametrize("key", ["nope", "99", "0", "-1", "../x", "", "9" * 30, "²"])
def test_an_unknown_transaction_is_not_found(plain_lake, table, key):
    with fails_with(10):
        _describe(plain_lake, key)
    with fails_with(10):
        _alter(plain_lake, key, _set("a", "b"))
    with pytest.raises(TransactionNotFoundError):
        table.transaction(key)


@pytest.mark.parametrize("names", [["t"], [], None])
def test_an_identifier_needs_a_table_and_a_transaction(plain_lake, table, names):
    del table
    with fails_with(13):
        ask(plain_lake, "describe_transaction", id=names)


def test_a_transaction_of_a_table_that_is_not_there_is_an_error(plain_lake, table):
    del table
    with fails_with(4):
        _describe(plain_lake, "1", table="nope")


def test_a_transaction_that_succeeded_stays_so(plain_lake, table):
    before = _describe(plain_lake, "2")
    assert _alter(plain_lake, "2", _status("SUCCEEDED")) == before
    for status in ("Queued", "running", "Failed", "Canceled"):
        with fails_with(19):
            _alter(plain_lake, "2", _set("a", "b"), _status(status))
    with fails_with(13):
        _alter(plain_lake, "2", _status("bogus"))
    assert _describe(plain_lake, "2") == before
    assert table.version == 3


def test_modes_say_what_becomes_of_properties_that_are_there_or_not(plain_lake, table):
    del table
    assert _alter(plain_lake, "2", _set("a", "1", "Fail"))["a"] == "1"
    assert _alter(plain_lake, "2", _set("a", "2", "skip"))["a"] == "1"
    assert _alter(plain_lake, "2", _set("a", "3", "Overwrite"))["a"] == "3"
    with fails_with(13):
        _alter(plain_lake, "2", _set("a", "4", "Fail"))
    assert "a" not in _alter(plain_lake, "2", _unset("a", "Fail"))
    assert "a" not in _alter(plain_lake, "2", _unset("a"))
    with fails_with(13):
        _alter(plain_lake, "2", _unset("a", "Fail"))
    assert (
        _alter(plain_lake, "2", _unset("mooring.by"), _set("mooring.by", "bob"))["mooring.by"]
        == "bob"
    )


def test_actions_are_all_done_or_none(plain_lake, table):
    """Spec: "either succeed and apply all actions, or fail and apply no action"."""
    del table
    before = _describe(plain_lake, "2")
    with fails_with(13):
        _alter(plain_lake, "2", _set("a", "1"), _unset("absent", "Fail"))
    assert _describe(plain_lake, "2") == before


@pytest.mark.parametrize(
    "action",
    [
        {},
        _set("uuid", "x"),
        _unset("version"),
        _set("", "x"),
        _set(None, "x"),
        _set("a"),
        _set("a", "b", "bogus"),
        _unset("a", "overwrite"),
        {**_set("a", "b"), **_unset("c")},
    ],
)
def test_an_action_that_makes_no_sense_is_refused(plain_lake, table, action):
    before = _describe(plain_lake, "2")
    with fails_with(13):
        _alter(plain_lake, "2", action)
    assert _describe(plain_lake, "2") == before
    assert table.transaction(2).properties["mooring.by"] == "alice"


def test_altering_needs_an_action(plain_lake, table):
    del table
    request = models.AlterTransactionRequest.model_construct(id=["t", "2"], actions=[])
    with fails_with(13):
        speak(plain_lake).alter_transaction(request)


def test_a_read_only_catalog_refuses_to_alter(plain_lake, table):
    del table
    reading = plain_lake.connect(read_only=True).table("t")
    with pytest.raises(ReadOnlyError):
        alter_transaction(reading.handle, "2", [SetProperty("a", "b")])


def test_of_two_that_alter_at_the_same_time_none_is_lost(moto_lake):
    table = fill(moto_lake)
    for value in "12":  # where there is no file yet, and where there is one
        rival = Meanwhile(
            lambda value=value: alter_transaction(table.handle, "2", [SetProperty("b", value)]),
            "put_new" if value == "1" else "put_if",
            "_alter_transactions",
        )
        handle = watch(table.handle, rival)
        alter_transaction(handle, "2", [SetProperty("a", value)])
        assert rival.done
        found = table.transaction(2).properties
        assert (found["a"], found["b"]) == (value, value)


def test_altering_in_a_table_that_is_dropped_meanwhile_is_not_acknowledged(plain_lake, table):
    drop = Meanwhile(
        lambda: plain_lake.connect().drop_table("t"), "put_new", "_alter_transactions", after=True
    )
    with pytest.raises(TableNotFoundError):
        alter_transaction(watch(table.handle, drop), "2", [SetProperty("a", "b")])


def test_damaged_notes_are_named(plain_lake, table):
    uuid = table.transaction(2).uuid
    plain_lake.store.put(f"t.lance/_alter_transactions/{uuid}.json", b"{")
    with pytest.raises(UnreadableError, match="damaged"):
        table.transaction(2)


# -- the log ---------------------------------------------------------------------------------------


def test_the_log_tells_what_made_each_version(any_lake):
    table = fill(any_lake)
    table.delete("n < 3")
    table.tags.create("v1", 2)
    found = table.log()
    assert [entry.version for entry in found] == [4, 3, 2, 1]
    assert [entry.operation for entry in found] == ["Delete", "Append", "Append", "Overwrite"]
    assert [entry.rows for entry in found] == [3, 6, 4, 2]
    assert [entry.tags for entry in found] == [(), (), ("v1",), ()]
    assert [entry.by for entry in found[1:]] == ["alice"] * 3
    assert all(entry.at is not None and entry.size_bytes > 0 for entry in found)
    assert table.transaction(found[1].transaction_id).version == 3


def test_the_log_gives_the_newest_of_a_branch(table):
    table.branches.create("dev", version=2)
    table.insert(pa.table({"n": [7]}), branch="dev")
    table.tags.create("on-dev", 3, branch="dev")
    assert [entry.version for entry in table.log(2)] == [3, 2]
    found = table.log(branch="dev")
    assert [(entry.version, entry.operation) for entry in found] == [(3, "Append"), (2, "Clone")]
    assert [entry.tags for entry in found] == [("on-dev",), ()]
    assert [entry.tags for entry in table.log(1)] == [()]
    with pytest.raises(InvalidInputError):
        table.log(0)


def test_the_log_of_a_table_without_data_is_empty(plain_lake):
    plain_lake.connect().declare_table("t")
    assert plain_lake.connect().table("t").log() == []


@pytest.mark.s3
def test_the_newest_of_the_log_cost_the_same_however_long_the_past(moto, prefix, clock):
    table = fill(Lake(MOTO, moto.uri(prefix), moto.options, clock), versions=3, rows=1)

    def count() -> int:
        table.log(2)
        moto.requests.clear()
        table.log(2)
        return sum(moto.requests.values())

    short = count()
    for value in range(8):
        table.insert(pa.table({"n": [value]}))
    assert count() == short
