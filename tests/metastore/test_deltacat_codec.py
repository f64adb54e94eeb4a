"""Dictionaries and paths of deltacat, read and written without a loss."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.errors import UnreadableError
from mooring.metastore.deltacat import codec
from mooring.metastore.deltacat.layout import FileName, file_path, log_dir, parse_file, parse_log
from mooring.metastore.deltacat.locators import read_around
from mooring.metastore.layout import Operation
from mooring.metastore.locator import Kind
from mooring.metastore.model import CommitState, DeltaType, Drop, Lifecycle, PartitionField
from tests.metastore.deltacat_files import NO_SCHEME, START_NS, namespace, table

TXN = f"{START_NS}_20444dca-7e3d-4dd2-af70-23b8bc890966"
NS, TABLE, STREAM, PARTITION = (f"{digit * 8}-1111-4111-8111-111111111111" for digit in "1234")
IDS = (NS, TABLE, "1", STREAM, PARTITION, "7")
UNPARTITIONED = {
    "keys": None,
    "name": "unpartitioned_scheme",
    "id": NO_SCHEME,
    "nativeObject": None,
}
SCHEME = {
    "keys": [
        {
            "key": ["id"],
            "name": "b",
            "fieldId": 3,
            "transform": {
                "name": "bucket",
                "parameters": {"numBuckets": 4, "bucketingStrategy": "iceberg"},
                "return_type": b"arrow",
            },
            "nativeObject": None,
        },
        {"key": [["at", "day"]], "name": None, "fieldId": None, "transform": None},
    ],
    "name": "by id",
    "id": "scheme-1",
    "nativeObject": None,
}
SORTED = {
    "keys": [[["name"], "descending", "at_start", None, None], [["id"], "ascending", "at_end"]],
    "name": "sorted",
    "id": "sort-1",
    "nativeObject": None,
}
META = {
    "record_count": 2,
    "content_length": 577,
    "source_content_length": 16,
    "content_type": "application/parquet",
    "content_encoding": "identity",
    "entry_type": "data",
}


def version_locator(own: str) -> dict:
    names = {"namespaceLocator": {"namespace": own}, "tableName": own}
    return {"tableLocator": names, "tableVersion": "1"}


def stream_locator(own: str) -> dict:
    return {"tableVersionLocator": version_locator(own), "streamId": STREAM, "format": "deltacat"}


def partition_locator(own: str, values) -> dict:
    found = {"streamLocator": stream_locator(own), "partitionValues": values}
    return {**found, "partitionId": PARTITION}


VERSION = {
    "tableVersionLocator": version_locator("1"),
    "schema": b"newer",
    "partitionScheme": SCHEME,
    "description": "tvd",
    "properties": {"x": 2, "y": "z"},
    "contentTypes": ["application/parquet"],
    "sortScheme": SORTED,
    "watermark": 5,
    "state": "active",
    "schemas": [b"older", b"newer"],
    "partitionSchemes": [UNPARTITIONED, SCHEME],
    "sortSchemes": [SORTED],
    "previous_table_version": None,
    "nativeObject": None,
    "ancestor_ids": [NS, TABLE],
}
PLAIN_VERSION = {
    **VERSION,
    "schema": None,
    "partitionScheme": UNPARTITIONED,
    "sortScheme": {**UNPARTITIONED, "name": "unsorted_scheme"},
    "schemas": None,
    "partitionSchemes": [UNPARTITIONED],
    "sortSchemes": [{**UNPARTITIONED, "name": "unsorted_scheme"}],
    "state": None,
}
STREAMED = {
    "streamLocator": stream_locator(STREAM),
    "partitionScheme": UNPARTITIONED,
    "state": "committed",
    "previousStreamId": "earlier",
    "watermark": None,
    "nativeObject": None,
    "ancestor_ids": [NS, TABLE, "1"],
}
PARTED = {
    "partitionLocator": partition_locator(PARTITION, [3, "it's", None, 1.5]),
    "contentTypes": None,
    "state": "committed",
    "previousStreamPosition": None,
    "previousPartitionId": None,
    "streamPosition": 4,
    "partitionSchemeId": "scheme-1",
    "compactionRoundCompletionInfo": {"high_watermark": 4},
    "ancestor_ids": [NS, TABLE, "1", STREAM],
}
ODD_PARTED = {**PARTED, "partitionLocator": partition_locator(PARTITION, [b"\x00", 1])}
DELTA = {
    "deltaLocator": {"partitionLocator": partition_locator("7", None), "streamPosition": 7},
    "type": "upsert",
    "meta": META,
    "properties": {"q": {"deep": [1]}},
    "manifest": {
        "id": "cef9c3f6-5049-4138-897b-6f8e0a250a4f",
        "meta": META,
        "entries": [{"url": "data/p/a.pq", "meta": META, "mandatory": True, "id": "entry"}],
        "author": {"name": "ada", "version": "1.0"},
    },
    "previousStreamPosition": 6,
    "ancestor_ids": list(IDS[:5]),
}
CASES = {
    "namespace": (1, namespace(NS, "sales", {"owner": "ada", "tier": 2})),
    "table": (2, {**table(TABLE, "orders", NS, "d"), "nativeObject": "x", "future": [1]}),
    "table version": (3, VERSION),
    "plain table version": (3, PLAIN_VERSION),
    "stream": (4, STREAMED),
    "partition": (5, PARTED),
    "partition of odd values": (5, ODD_PARTED),
    "delta": (6, DELTA),
}


def decode(level: int, raw: dict) -> codec.Decoded:
    return codec.decode(msgspec.msgpack.encode(raw), IDS[:level], "here")


def encode(level: int, value, raw: dict) -> dict:
    around = read_around(raw, Kind.at(level))
    return msgspec.msgpack.decode(codec.encode(value, IDS[:level], around))


@pytest.mark.parametrize(("level", "raw"), CASES.values(), ids=CASES)
def test_what_was_read_is_written_again_key_for_key(level, raw):
    assert encode(level, decode(level, raw).value, raw) == raw


def test_fields_are_those_of_the_model():
    version = decode(3, VERSION).value
    assert version.state is Lifecycle.ACTIVE
    bucket, day = version.partition_scheme.fields
    assert bucket == PartitionField(columns=("id",), transform="bucket", argument=4, name="b")
    assert day.columns == ("at.day",)
    assert [one.descending for one in version.sort_scheme.fields] == [True, False]
    assert version.properties == {"x": "2", "y": "z"}
    partition = decode(5, PARTED).value
    assert partition.values == (3, "it's", None, 1.5)
    delta = decode(6, DELTA).value
    assert (delta.type, delta.stream_position, delta.previous_position) == (DeltaType.UPSERT, 7, 6)
    (file,) = delta.manifest.files
    assert (file.path, file.rows, file.size_bytes) == ("data/p/a.pq", 2, 577)
    assert (delta.manifest.author, delta.properties) == ("ada", {"q": '{"deep": [1]}'})


def test_a_stream_without_a_scheme_has_none():
    assert decode(4, STREAMED).value.partition_scheme is None
    assert decode(3, PLAIN_VERSION).value.sort_scheme is None


def test_what_the_model_changes_counts_and_the_rest_is_kept():
    raw = CASES["table"][1]
    changed = msgspec.structs.replace(decode(2, raw).value, description="other")
    assert encode(2, changed, raw) == {**raw, "description": "other"}
    raw = CASES["namespace"][1]
    value = decode(1, raw).value
    changed = msgspec.structs.replace(value, properties={**value.properties, "new": "x"})
    assert encode(1, changed, raw)["properties"] == {"owner": "ada", "tier": 2, "new": "x"}
    without = msgspec.structs.replace(value, properties={"owner": "ada"})
    assert encode(1, without, raw)["properties"] == {"owner": "ada"}


def test_a_new_schema_is_listed_after_those_before():
    changed = msgspec.structs.replace(decode(3, VERSION).value, schema=b"newest")
    found = encode(3, changed, VERSION)
    assert (found["schema"], found["schemas"]) == (b"newest", [b"older", b"newer", b"newest"])


def test_a_state_that_was_not_said_stays_so_until_it_is():
    value = decode(3, PLAIN_VERSION).value
    assert encode(3, value, PLAIN_VERSION)["state"] is None
    active = msgspec.structs.replace(value, state=Lifecycle.BETA)
    assert encode(3, active, PLAIN_VERSION)["state"] == "beta"


def test_fields_of_ours_lie_under_one_key():
    raw = table(TABLE, "orders", NS)
    dropped = msgspec.structs.replace(decode(2, raw).value, dropped=Drop(name="orders", seq=3))
    found = encode(2, dropped, raw)
    assert found == {**raw, "mooring": {"dropped": {"name": "orders", "seq": 3}}}
    assert decode(2, found).value == dropped


def test_aliases_are_those_of_committed_streams_and_partitions():
    assert codec.aliases(decode(4, STREAMED).value) == [("deltacat",)]
    partition = decode(5, PARTED).value
    assert codec.aliases(partition) == [('[3, "it\'s", None, 1.5]', "scheme-1")]
    assert codec.aliases(msgspec.structs.replace(partition, state=CommitState.STAGED)) == []
    assert codec.aliases(decode(5, ODD_PARTED).value) == [("[b'\\x00', 1]", "scheme-1")]
    whole = {**PARTED, "partitionLocator": partition_locator(PARTITION, None)}
    whole["partitionSchemeId"] = NO_SCHEME
    assert codec.aliases(decode(5, whole).value) == [("None", NO_SCHEME)]


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", msgspec.msgpack.encode({}), msgspec.msgpack.encode({**DELTA, "type": "chrono"})],
)
def test_what_cannot_be_read_names_its_file(body):
    with pytest.raises(UnreadableError, match="here"):
        codec.decode(body, IDS, "here")


# -- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("revision", "folder"),
    [
        (1, "1000000/1000"),
        (1000, "1000000/1000"),
        (1001, "1000000/2000"),
        (1_000_000, "1000000/1000000"),
        (1_000_001, "2000000/1000"),
        (2_500_000, "3000000/500000"),
    ],
)
def test_revisions_are_spread_over_two_levels(revision, folder):
    name = FileName((NS, TABLE), revision, Operation.UPDATE, TXN)
    path = f"{NS}/{TABLE}/rev/{folder}/{revision:020d}_update_{TXN}.mpk"
    assert file_path(name) == path
    assert parse_file(path) == name
    assert parse_file(f"{NS}/{TABLE}/rev/{revision:020d}_update_{TXN}.mpk") == name


@given(
    ids=st.lists(st.from_regex(r"[0-9a-zA-Z-]{1,9}", fullmatch=True), min_size=1, max_size=6),
    revision=st.integers(1, 10**9),
    operation=st.sampled_from(Operation),
    digest=st.none() | st.from_regex(r"[0-9a-f]{40}", fullmatch=True),
)
def test_every_path_is_read_as_it_was_written(ids, revision, operation, digest):
    name = FileName(tuple(ids), revision, operation, TXN, digest)
    assert parse_file(file_path(name)) == name


def test_a_replacement_is_an_update():
    found = parse_file(f"{NS}/{'a' * 40}/1000000/1000/{2:020d}_replace_{TXN}.{TABLE}")
    assert (found.ids, found.operation, found.digest) == ((NS, TABLE), Operation.UPDATE, "a" * 40)


@pytest.mark.parametrize(
    "path",
    [
        "version/2.0.0.post4.1794784204912199012",
        f"data/{PARTITION}/a.pq",
        f"txn/running/{TXN}",
        f"{NS}/other/{1:020d}_create_{TXN}.mpk",
        f"rev/{1:020d}_create_{TXN}.mpk",
        f"{1:020d}_create_{TXN}.mpk",
        f"{NS}/rev/{1:020d}_merge_{TXN}.mpk",
    ],
)
def test_other_files_are_not_taken_for_revisions(path):
    assert parse_file(path) is None


def test_logs_lie_by_the_minute_in_which_they_began():
    path = f"{log_dir(TXN)}/{START_NS + 5}"
    assert path == f"txn/success/2026/11/15/23/10/{TXN}/{START_NS + 5}"
    assert parse_log(path) == (TXN, START_NS + 5)
    assert parse_log(f"txn/success/{TXN}/{START_NS + 5}") == (TXN, START_NS + 5)
    assert parse_log(f"txn/failed/2026/11/15/23/10/{TXN}") is None
