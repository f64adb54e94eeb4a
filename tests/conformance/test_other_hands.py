"""Tables and files that other programs, or hands, have changed behind the catalog's back."""

from __future__ import annotations

import io
import shutil

import lance_namespace
import pyarrow as pa
import pytest

import mooring
from mooring.errors import (
    InvalidTableStateError,
    TableAlreadyExistsError,
    TableNotFoundError,
)

ROWS = pa.table({"n": [1, 2, 3]})


@pytest.fixture
def root(tmp_path):
    return tmp_path / "lake"


@pytest.fixture(params=["with a manifest", "without"])
def lake(request, root):
    return mooring.connect(root, manifest_enabled=request.param != "without")


@pytest.fixture
def listed(lake):
    """The part of the catalog that decides about `<name>.lance` directories."""
    return getattr(lake.backend, "_listed", lake.backend)


@pytest.fixture
def pylance(root):
    """Drop, then create, with pylance: it heeds no marker when it drops."""
    client = lance_namespace.connect("dir", {"root": str(root), "manifest_enabled": "false"})

    def replace(name: str) -> None:
        client.drop_table(lance_namespace.DropTableRequest(id=[name]))
        body = io.BytesIO()
        with pa.ipc.new_stream(body, pa.schema({"theirs": pa.string()})) as stream:
            stream.write_table(pa.table({"theirs": ["x"]}))
        client.create_table(lance_namespace.CreateTableRequest(id=[name]), body.getvalue())

    return replace


def test_a_table_in_the_place_of_a_dropped_one_is_not_purged(lake, pylance):
    """Spec: soft-delete, "Purge only ever acts on already-soft-deleted tables"."""
    lake.create_table("t", ROWS)
    lake.drop_table("t", ttl="0s")
    pylance("t")
    report = lake.purge_tables()
    assert [type(problem) for problem in report.failed.values()] == [InvalidTableStateError]
    with pytest.raises(InvalidTableStateError, match="undrop"):
        lake.create_table("t", ROWS)
    lake.undrop_table("t")
    assert lake.table("t").to_arrow().to_pydict() == {"theirs": ["x"]}


def test_a_table_in_the_place_of_a_purged_one_is_not_overwritten(lake, pylance):
    lake.create_table("t", ROWS)
    lake.drop_table("t")
    lake.purge_table("t")
    pylance("t")
    with pytest.raises(InvalidTableStateError, match="register"):
        lake.create_table("t", ROWS)
    with pytest.raises(InvalidTableStateError):
        lake.purge_table("t")
    lake.register_table("t")
    assert lake.table("t").count() == 1


def test_what_was_deleted_by_hand_is_not_undropped(lake, root):
    lake.create_table("t", ROWS)
    lake.drop_table("t")
    shutil.rmtree(root / "t.lance")
    with pytest.raises(TableNotFoundError, match="gone"):
        lake.undrop_table("t")
    lake.purge_table("t")
    lake.create_table("t", ROWS)
    assert lake.table("t").count() == 3


def test_a_purge_that_was_cut_off_is_finished_with_the_expired(lake, listed):
    lake.create_table("t", ROWS)
    lake.drop_table("t", ttl="never")
    listed._purge._announce_purge(listed.view("t"))
    assert [str(table) for table in lake.purge_tables().purged] == ["t"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"state": '])
def test_a_damaged_decision_hides_its_own_table_only(lake, root, body):
    lake.create_table("good", ROWS)
    lake.create_table("bad", ROWS)
    (root / "bad.lance-state.00000000000000000001").write_bytes(body)
    assert lake.list_tables() == ["good"]
    with pytest.raises(mooring.errors.UnreadableError, match=r"bad\.lance-state"):
        lake.table("bad")


def test_an_undrop_of_a_version_that_was_cleaned_up_is_refused_before_anything_changes(
    lake, listed
):
    lake.create_table("t", ROWS)
    lake.drop_table("t")
    listed._creation._announce_creation(listed.view("t"))
    listed.store.delete(["t.lance/_versions/18446744073709551614.manifest"])
    before = len(listed._chains.history("t"))
    with pytest.raises(TableNotFoundError, match="cleaned up"):
        lake.undrop_table("t")
    assert len(listed._chains.history("t")) == before
    lake.create_table("t", ROWS)


def test_a_file_in_the_way_is_named(lake, root):
    root.mkdir()
    (root / "t.lance").write_text("in the way")
    with pytest.raises(TableAlreadyExistsError, match="in the way"):
        lake.create_table("t", ROWS)
    with pytest.raises(TableAlreadyExistsError, match="in the way"):
        lake.declare_table("t")


def test_settings_of_others_count_at_once(root):
    one, other = mooring.connect(root), mooring.connect(root)
    one.create_table("t", ROWS)
    other.backend.initialize(default_ttl=mooring.namespace.api.Ttl(5_000))
    one.drop_table("t")
    status = one.table_status("t")
    assert status.expires_at_ms - status.deleted_at_ms == 5_000


def test_an_overwrite_beside_a_change_that_hides_nothing_is_a_success(lake, listed):
    """Protecting a table while it is written is no conflict."""
    lake.create_table("t", ROWS)
    commit = listed._commits.commit_next

    def interrupted(staged, end, action):
        version = commit(staged, end, action)
        lake.protect_table("t")
        return version

    listed._commits.commit_next = interrupted
    table = lake.create_table("t", pa.table({"n": [9]}), mode="overwrite")
    assert table.to_arrow()["n"].to_pylist() == [9]
