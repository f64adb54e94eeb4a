"""The Python surface for people: `mooring.connect(uri)`.

What `mooring.connect(uri)` offers to people.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import mooring
from mooring.errors import (
    InvalidInputError,
    InvalidNameError,
    ProtectedError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import ObjectId

ROWS = [{"n": 1, "word": "x"}, {"n": 2, "word": "y"}]
TABLE = pa.Table.from_pylist(ROWS)


@pytest.fixture(params=["with a manifest", "without"])
def catalog(request, tmp_path):
    return mooring.connect(
        tmp_path / "lake", author="alice", manifest_enabled=request.param != "without"
    )


@pytest.fixture
def plain(tmp_path):
    return mooring.connect(tmp_path / "lake", author="alice", manifest_enabled=False)


@pytest.fixture
def default(tmp_path):
    return mooring.connect(tmp_path / "lake", author="alice")


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_pandas(),
        ROWS,
        iter(ROWS),
        iter(TABLE.to_batches(max_chunksize=1)),
        TABLE.to_reader(),
    ],
    ids=["table", "batch", "data frame", "rows", "iterator of rows", "iterator", "reader"],
)
def test_a_table_is_made_from_what_people_have(tmp_path, data):
    catalog = mooring.connect(tmp_path / "lake")
    table = catalog.create_table("t", data)
    assert table.to_arrow().to_pylist() == ROWS
    assert (table.count(), table.version, table.name) == (2, 1, "t")


def test_the_same_surface_is_there_on_every_store(lake):
    catalog = lake.connect()
    catalog.create_table("t", ROWS)
    assert list(catalog) == ["t"]
    assert "t" in catalog
    catalog.drop_table("t", ttl="1h")
    assert "t" not in catalog
    catalog.undrop_table("t")
    assert catalog.table("t").to_arrow().to_pylist() == ROWS


def test_a_table_is_read_as_arrow_in_part_or_whole(catalog):
    table = catalog.create_table("t", ROWS)
    assert table.schema == TABLE.schema
    assert table.to_arrow(columns=["word"], filter="n > 1").to_pylist() == [{"word": "y"}]
    assert table.to_arrow(limit=1).num_rows == 1
    assert table.count("n > 1") == 1


def test_a_table_is_read_at_a_version_or_tag(catalog):
    catalog.create_table("t", ROWS)
    table = catalog.create_table("t", [{"n": 9}], mode="overwrite")
    table.to_lance().tags.create("first", 1)
    assert table.version == 2
    assert table.to_lance(1).count_rows() == 2
    assert table.to_lance("first").count_rows() == 2
    for absent in (7, "absent"):
        with pytest.raises(TableVersionNotFoundError, match=str(absent)):
            table.to_lance(absent)


def test_a_declared_table_has_nothing_to_read(catalog):
    catalog.declare_table("t")
    assert "t" in catalog
    assert catalog.describe_table("t").is_only_declared is True
    assert catalog.list_tables(include_declared=False) == []
    with pytest.raises(TableNotFoundError, match="declared"):
        catalog.table("t").to_arrow()


@pytest.mark.parametrize("name", ["t", ["t"], ("t",), ObjectId.of(["t"])], ids=str)
def test_a_table_is_named_by_a_string_a_list_or_an_identifier(catalog, name):
    catalog.create_table(name, ROWS)
    assert catalog.list_tables() == ["t"]
    assert name in catalog
    assert catalog.table(name).count() == 2


def test_a_string_is_one_name_in_a_plain_directory_whatever_it_holds(plain):
    plain.create_table("a$b", ROWS)
    assert plain.list_tables() == ["a$b"]
    assert plain.identifier("a$b").level == 1


def test_a_string_has_levels_where_there_are_namespaces(default):
    default.create_namespace("a")
    default.create_table("a$b", ROWS)
    assert default.list_tables() == []
    assert default.list_tables("a") == ["b"]
    assert "a$b" in default
    assert ["a", "b"] in default
    assert default.identifier("a$b") == ObjectId.of(["a", "b"])
    assert repr(default.table("a$b")) == "Table('a$b')"


def test_namespaces_have_the_same_words(default):
    """Deliver 1: create, describe, list, exists, drop; descriptions, owners, labels."""
    assert default.create_namespace("a", {"owner": "ann"}) == {"owner": "ann"}
    assert default.create_namespace("a", mode="exist_ok") == {"owner": "ann"}
    assert default.create_namespace(["a", "b"]) == {}
    assert default.list_namespaces() == default.list_namespaces("") == ["a"]
    assert default.list_namespaces("a") == ["b"]
    assert default.namespace_exists("a$b")
    assert not default.namespace_exists("a$c")
    assert default.update_namespace("a", {"owner": None, "label": "x"}) == {"label": "x"}
    assert default.describe_namespace("a") == {"label": "x"}
    assert default.update_namespace("", {"description": "all"}) == {"description": "all"}
    assert default.describe_namespace() == {"description": "all"}
    default.create_table("a$b$t", ROWS, properties={"owner": "bob"})
    assert default.update_table("a$b$t", {"label": "y"}) == {"owner": "bob", "label": "y"}
    assert [str(table) for table in default.list_all_tables()] == ["a$b$t"]
    assert default.drop_namespace("a", cascade=True, ttl="1d") == {"label": "x"}
    assert default.list_all_tables() == []
    assert default.undrop_namespace("a") == 3
    assert default.table("a$b$t").count() == 2


def test_what_is_no_name_is_in_no_catalog(catalog):
    assert 7 not in catalog
    assert None not in catalog
    with pytest.raises(InvalidNameError):
        catalog.table("")


def test_modes_are_words(catalog):
    catalog.create_table("t", ROWS)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("t", ROWS)
    assert catalog.create_table("t", [{"n": 5}], mode="exist_ok").count() == 2
    assert catalog.create_table("t", [{"n": 5}], mode="overwrite").count() == 1
    with pytest.raises(InvalidInputError):
        catalog.create_table("t", ROWS, mode="perhaps")


def test_a_schema_can_be_given(catalog):
    schema = pa.schema([("n", pa.int32()), ("word", pa.large_string())])
    assert catalog.create_table("t", ROWS, schema=schema).schema == schema
    assert catalog.create_table("empty", [], schema=schema).count() == 0


def test_the_index_of_a_data_frame_stays_out(catalog):
    frame = pd.DataFrame({"n": [1, 2, 3]}, index=["x", "y", "z"])
    assert catalog.create_table("t", frame).schema.names == ["n"]


def test_a_drop_can_be_undone_and_told(catalog):
    table = catalog.create_table("t", ROWS)
    catalog.drop_table("t", ttl="never")
    assert isinstance(catalog.table_status("t"), mooring.SoftDeleted)
    with pytest.raises(TableNotFoundError, match="undrop"):
        catalog.table("t")
    catalog.undrop_table("t")
    assert isinstance(catalog.table_status("t"), mooring.Exists)
    told = [(entry.action, entry.by) for entry in table.history()]
    assert told[-2:] == [("drop", "alice"), ("undrop", "alice")]
    with pytest.raises(InvalidInputError, match="duration"):
        catalog.drop_table("t", ttl="a while")
    assert "t" in catalog


def test_the_trash_is_listed_and_emptied(catalog):
    for name in ("a", "b", "c"):
        catalog.create_table(name, ROWS)
        catalog.drop_table(name, ttl="0s" if name == "c" else "1d")
    assert [found.id.name for found in catalog.list_purgable_tables()] == ["a", "b", "c"]
    assert [found.name for found in catalog.purge_tables().purged] == ["c"]
    assert [found.name for found in catalog.purge_tables(["a"]).purged] == ["a"]
    catalog.purge_table("b")
    assert isinstance(catalog.table_status("b"), mooring.NotFound)
    assert catalog.list_purgable_tables() == []


def test_protection_deregistration_and_rename(catalog):
    catalog.create_table("t", ROWS)
    catalog.protect_table("t")
    with pytest.raises(ProtectedError):
        catalog.drop_table("t")
    catalog.protect_table("t", protected=False)
    catalog.deregister_table("t")
    assert "t" not in catalog
    catalog.register_table("t")
    assert "t" in catalog


def test_a_plain_directory_renames_nothing(plain):
    plain.create_table("t", ROWS)
    with pytest.raises(UnsupportedError):
        plain.rename_table("t", "u")
    assert plain.list_tables() == ["t"]


def test_a_table_is_renamed_where_there_is_a_manifest(default):
    default.create_table("t", ROWS)
    default.create_namespace("a")
    for name, new in (("t", "u"), ("u", "a$u"), ("a$u", "v")):
        default.rename_table(name, new)
        assert name not in default
        assert default.table(new).to_arrow().to_pylist() == ROWS


def test_a_plain_directory_registers_no_other_location(plain):
    plain.create_table("t", ROWS)
    plain.deregister_table("t")
    with pytest.raises(InvalidInputError):
        plain.register_table("t", "other.lance")
    assert "t" not in plain


@pytest.mark.parametrize("location", ["", "..", "/etc", "__manifest"])
def test_a_table_is_registered_where_it_lies_or_not_at_all(catalog, location):
    """Must show: an empty location is refused, not taken for none."""
    catalog.create_table("t", ROWS)
    catalog.deregister_table("t")
    with pytest.raises(InvalidInputError):
        catalog.register_table("t", location)
    assert "t" not in catalog
    catalog.register_table("t", "t.lance")
    assert "t" in catalog


def test_the_root_can_be_named_by_nothing(catalog):
    catalog.create_table("t", ROWS)
    assert catalog.list_tables("") == catalog.list_tables([]) == ["t"]


def test_things_show_what_they_are(catalog, tmp_path):
    table = catalog.create_table("t", ROWS)
    assert repr(table) == "Table('t')"
    assert table.location == str(tmp_path / "lake" / "t.lance")
