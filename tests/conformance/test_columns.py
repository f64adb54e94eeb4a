"""Columns and metadata, through requests and through Python.

Spec: lance-rest-openapi, AlterTableAddColumns, AlterTableAlterColumns, AlterTableDropColumns,
AlterTableBackfillColumns, UpdateTableSchemaMetadata, UpdateFieldMetadata.
"""

from __future__ import annotations

import lance
import lance.namespace
import lance_namespace as spec
import pyarrow as pa
import pytest
from lance_namespace.errors import LanceNamespaceError
from lance_namespace_urllib3_client import models

import mooring
from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    ReadOnlyError,
    TableBranchNotFoundError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
    UnsupportedError,
)
from mooring.tables.metadata import FieldMetadata
from mooring.tables.new_columns import EXPRESSION, NewColumn
from mooring.tables.schema import schema_to_json, type_from_json
from tests.conformance.kinds import every_kind

ROWS = pa.table(
    {
        "n": pa.array([1, 2, 3], pa.int64()),
        "word": ["a", None, "c"],
        "place": pa.array([{"x": 1, "y.z": "p"}] * 3),
        "points": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2)),
    }
)
UDF = models.AddVirtualColumnEntry(
    input_columns=["n"], outputs=[], image="i", udf="u", udf_name="f", udf_version="1"
)


@pytest.fixture
def table(plain_lake):
    return plain_lake.connect().create_table("t", ROWS)


def _namespace(lake):
    return mooring.DirectoryNamespace(**lake.properties)


@pytest.fixture
def namespace(plain_lake, table):
    """Requests to the catalog in which `table` is."""
    return _namespace(plain_lake)


def _branch(table, name: str = "b") -> None:
    dataset = table.handle.open()
    dataset.create_branch(name, dataset.version)


def _values(table, column: str, **scan) -> list:
    return table.to_arrow(columns=[column], **scan)[column].to_pylist()


# -- on every kind of catalog ----------------------------------------------------------------------


@every_kind
def test_columns_are_added_filled_altered_and_dropped_by_requests(lake):
    """Spec: lance-rest-openapi, AlterTableAddColumns to UpdateFieldMetadata."""
    table = lake.connect().create_table("t", ROWS)
    namespace = _namespace(lake)
    new = [
        models.AddColumnsEntry(name="twice", expression="n * 2"),
        models.AddColumnsEntry(name="later", computed="n + twice"),
    ]
    with pytest.raises(LanceNamespaceError) as caught:
        namespace.alter_table_add_columns(
            spec.AlterTableAddColumnsRequest(id=["t"], new_columns=new)
        )
    assert caught.value.code == 12  # an expression sees the columns that are there
    for entry, version in zip(new, (2, 3), strict=True):
        request = spec.AlterTableAddColumnsRequest(id=["t"], new_columns=[entry])
        assert namespace.alter_table_add_columns(request).version == version
    assert _values(table, "twice") == [2, 4, 6]
    assert _values(table, "later") == [None] * 3

    filled = namespace.alter_table_backfill_columns(
        spec.AlterTableBackfillColumnsRequest(id=["t"], column="later", where="n > 1")
    )
    assert filled.job_id == table.handle.open().read_transaction(4).uuid
    assert _values(table, "later") == [None, 6, 9]

    altered = namespace.alter_table_alter_columns(
        spec.AlterTableAlterColumnsRequest(
            id=["t"],
            alterations=[
                models.AlterColumnsEntry(path="twice", rename="double"),
                models.AlterColumnsEntry(path="place.x", data_type={"type": "int32"}),
            ],
        )
    )
    assert altered.version == 5
    assert table.schema.field("place").type.field("x").type == pa.int32()

    entry = models.UpdateFieldMetadataEntry(path="`double`", metadata={"unit": "m"})
    noted = namespace.update_field_metadata(
        spec.UpdateFieldMetadataRequest(id=["t"], updates=[entry])
    )
    assert (noted.version, noted.fields) == (6, {"double": {"unit": "m"}})
    for metadata in ({"a": "1"}, {"b": "2"}):
        answer = namespace.update_table_schema_metadata(
            spec.UpdateTableSchemaMetadataRequest(id=["t"], metadata=metadata)
        )
        assert answer.metadata == metadata
        assert answer.transaction_id
    dropped = namespace.alter_table_drop_columns(
        spec.AlterTableDropColumnsRequest(id=["t"], columns=["double", "place.`y.z`"])
    )
    assert dropped.version == 9
    assert table.schema.names == ["n", "word", "place", "points", "later"]
    assert [one.version for one in table.versions()] == [*range(9, 0, -1)]


# -- add -------------------------------------------------------------------------------------------


def test_rows_that_come_later_read_null_in_an_added_column(table):
    """Spec: lance-rest-openapi, AddColumnsEntry: "rows appended later read null"."""
    table.columns.add({"constant": "'x'", "sum": "n + 1"})
    table.insert(ROWS.slice(0, 1))
    assert _values(table, "constant") == ["x", "x", "x", None]
    assert _values(table, "sum") == [2, 3, 4, None]


def test_columns_of_every_kind_are_added_by_one_commit(table):
    table.insert(ROWS)
    table.delete("n = 2")
    version = table.version
    done = table.columns.add_all(
        [
            NewColumn("once", expression="1"),
            NewColumn("nulls", field=pa.field("any", pa.float32(), metadata={"unit": "m"})),
            NewColumn("later", computed="n * 2"),
        ]
    )
    assert done.version == version + 1
    assert _values(table, "once") == [1] * 4
    assert _values(table, "nulls") == _values(table, "later") == [None] * 4
    assert table.columns.metadata("nulls") == {"unit": "m"}
    assert table.columns.metadata("later") == {EXPRESSION: "n * 2"}


def test_columns_of_nulls_come_from_types_and_fields(table):
    table.columns.add({"a": pa.int8()})
    table.columns.add(pa.field("b", pa.list_(pa.float32(), 4)))
    table.columns.add(pa.schema([("c", pa.string()), ("d", pa.date32())]))
    assert table.schema.names[-4:] == ["a", "b", "c", "d"]
    assert _values(table, "b") == [None] * 3


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({}, InvalidInputError),
        ({"": "1"}, InvalidInputError),
        ({"a.b": "1"}, InvalidInputError),
        ({"a`b": "1"}, InvalidInputError),
        ({"_rowid": "1"}, InvalidInputError),
        ({"n": "1"}, TableSchemaValidationError),
        ({"a": "missing + 1"}, TableColumnNotFoundError),
        ({"a": "n +* 1"}, InvalidInputError),
        ({"a": ""}, InvalidInputError),
        ({"a": "nothing(n)"}, InvalidInputError),
        ({"a": "sum(n)"}, InvalidInputError),
        ({"a": "word * 2"}, InvalidInputError),
        ({"a": "1 / (n - 1)"}, InvalidInputError),
        ({"a": "1 / (n - 1)", "constant": "1"}, InvalidInputError),
        ({"a": "cast(word as bigint)"}, InvalidInputError),
        ({"fine": "n", "a": "missing"}, TableColumnNotFoundError),
        (pa.field("a", pa.int8(), nullable=False), InvalidInputError),
        ([pa.field("a", pa.int8()), pa.field("a", pa.int8())], TableSchemaValidationError),
    ],
)
def test_a_column_that_cannot_be_is_refused_and_nothing_is_done(table, columns, error):
    with pytest.raises(error, match=r"'|needs a name|at least one"):
        table.columns.add(columns)
    assert table.version == 1


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"virtual_column": UDF}, 0),
        ({}, 13),
        ({"expression": "n", "computed": "n"}, 13),
        ({"computed": "missing"}, 12),
        ({"computed": "sum(n)"}, 13),
    ],
)
def test_a_request_for_a_column_of_no_or_two_definitions_is_refused(namespace, table, entry, code):
    new = models.AddColumnsEntry(name="a", **entry)
    request = spec.AlterTableAddColumnsRequest(id=["t"], new_columns=[new])
    with pytest.raises(LanceNamespaceError, match="'") as caught:
        namespace.alter_table_add_columns(request)
    assert caught.value.code == code
    assert table.version == 1


# -- alter and drop --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "change", "error"),
    [
        ("missing", {"rename": "a"}, TableColumnNotFoundError),
        ("x", {"rename": "a"}, TableColumnNotFoundError),
        ("place.missing", {"rename": "a"}, TableColumnNotFoundError),
        ("place..x", {"rename": "a"}, InvalidInputError),
        ("", {"rename": "a"}, InvalidInputError),
        ("`n", {"rename": "a"}, InvalidInputError),
        ("n", {}, InvalidInputError),
        ("n", {"rename": ""}, InvalidInputError),
        ("n", {"rename": "a.b"}, InvalidInputError),
        ("n", {"rename": "_rowaddr"}, InvalidInputError),
        ("n", {"rename": "word"}, TableSchemaValidationError),
        ("word", {"nullable": False}, TableSchemaValidationError),
        ("word", {"data_type": pa.int64()}, TableSchemaValidationError),
        ("place", {"data_type": pa.string()}, TableSchemaValidationError),
        ("points", {"data_type": pa.list_(pa.float32(), 3)}, TableSchemaValidationError),
    ],
)
def test_an_alteration_that_cannot_be_is_refused_and_nothing_is_done(table, path, change, error):
    with pytest.raises(error, match=r"table 't'|cannot be the name|not the path"):
        table.columns.alter(path, **change)
    assert table.version == 1


def test_a_value_that_does_not_fit_the_new_type_is_invalid_input(table):
    table.update({"n": "1000"}, "n = 1")
    with pytest.raises(InvalidInputError, match="1000"):
        table.columns.alter("n", data_type=pa.int8())


def test_alterations_of_one_request_are_one_commit_or_none(table):
    done = table.columns.alter("n", rename="m", nullable=False)
    assert (done.version, table.schema.field("m").nullable) == (2, False)
    columns = table.columns
    with pytest.raises(TableColumnNotFoundError, match="'n'"):
        columns.drop("word", "n")
    assert table.version == 2


def test_a_nested_column_is_renamed_and_dropped_by_its_path(table):
    table.columns.alter("place.`y.z`", rename="q.r")
    assert table.schema.field("place").type.names == ["x", "q.r"]
    table.columns.drop("place.`q.r`")
    assert table.schema.field("place").type.names == ["x"]


def test_a_column_keeps_its_metadata_when_its_type_changes(table):
    table.columns.add_computed({"later": "n * 2"})
    table.columns.alter("later", rename="soon", data_type=pa.int32())
    assert table.columns.metadata("soon") == {EXPRESSION: "n * 2"}
    assert table.columns.backfill("soon").rows == 3
    assert _values(table, "soon") == [2, 4, 6]


def test_a_column_with_an_index_keeps_its_type_until_the_index_is_dropped(table):
    table.indexes.create("n")
    with pytest.raises(TableSchemaValidationError, match="n_idx"):
        table.columns.alter("n", data_type=pa.int32())


@pytest.mark.parametrize(
    "name", ["with space", "order", "UPPER", "\N{LATIN SMALL LETTER U WITH DIAERESIS}-1"]
)
def test_a_column_of_any_name_is_changed_by_it(table, name):
    columns = table.columns
    columns.add_computed({name: "n * 2"})
    assert columns.backfill(name).rows == 3
    assert columns.update_metadata(f"`{name}`", {EXPRESSION: None}).fields == {name: {}}
    table.indexes.create(name)
    assert table.indexes.get(f"{name}_idx").columns == (name,)
    columns.alter(name, rename="plain")
    assert _values(table, "plain") == [2, 4, 6]


def test_the_last_column_cannot_be_dropped(table):
    with pytest.raises(TableSchemaValidationError, match="all columns"):
        table.columns.drop(*ROWS.schema.names)
    with pytest.raises(InvalidInputError, match="at least one"):
        table.columns.drop()


def test_a_request_to_alter_a_function_is_unsupported(namespace):
    entry = models.AlterColumnsEntry(path="n", virtual_column=models.AlterVirtualColumnEntry())
    request = spec.AlterTableAlterColumnsRequest(id=["t"], alterations=[entry])
    with pytest.raises(LanceNamespaceError, match="runs nothing") as caught:
        namespace.alter_table_alter_columns(request)
    assert caught.value.code == 0


# -- backfill --------------------------------------------------------------------------------------


def test_a_backfill_computes_rows_without_a_value_and_indexes_keep_their_rows(table):
    table.indexes.create("n")
    table.columns.add_computed({"later": "n * 2"})
    table.insert(ROWS)
    table.delete("n = 2")
    assert table.columns.backfill("later", where="n = 1").rows == 2
    assert table.columns.backfill("later").rows == 2
    assert _values(table, "later") == [2, 6, 2, 6]
    assert table.indexes.get("n_idx").rows_indexed == 2
    nothing = table.columns.backfill("later")
    assert (nothing.rows, nothing.commit.version) == (0, table.version)


def test_a_backfill_takes_another_expression_and_fits_it_to_the_type(table):
    table.columns.backfill("word", expression="'new'")
    assert _values(table, "word") == ["a", "new", "c"]
    table.columns.backfill("word", where="true", expression="n")
    assert _values(table, "word") == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("column", "how", "error"),
    [
        ("n", {}, InvalidInputError),
        ("missing", {}, TableColumnNotFoundError),
        ("place.x", {"expression": "n"}, UnsupportedError),
        ("n", {"expression": "missing", "where": "true"}, TableColumnNotFoundError),
        ("n", {"expression": "word", "where": "true"}, InvalidInputError),
        ("n", {"expression": "n", "where": "missing"}, TableColumnNotFoundError),
        ("n", {"expression": "n", "where": "n"}, InvalidInputError),
        ("n", {"expression": "1 / (n - 1)", "where": "true"}, InvalidInputError),
    ],
)
def test_a_backfill_that_cannot_be_is_refused(table, column, how, error):
    with pytest.raises(error, match="table 't'"):
        table.columns.backfill(column, **how)
    assert table.version == 1


@pytest.mark.parametrize("times", [1, 9])
def test_a_backfill_that_lost_a_race_is_done_again_but_not_for_ever(table, monkeypatch, times):
    table.columns.add_computed({"later": "n * 2"})
    commit, lost = lance.LanceDataset.commit, []

    def delayed(*args, **kwargs):
        if len(lost) < times:
            lost.append(table.update({"word": f"'{len(lost)}'"}))
        return commit(*args, **kwargs)

    monkeypatch.setattr(lance.LanceDataset, "commit", delayed)
    if times > 1:
        with pytest.raises(ConcurrentModificationError):
            table.columns.backfill("later")
        return
    table.columns.backfill("later")
    assert sorted(_values(table, "later")) == [2, 4, 6]
    assert _values(table, "word") == ["0"] * 3


@pytest.mark.parametrize(
    "tuning",
    [
        {"concurrency": 2},
        {"intra_applier_concurrency": 2},
        {"min_checkpoint_size": 2},
        {"max_checkpoint_size": 2},
        {"batch_checkpoint_flush_interval_seconds": 1.5},
        {"read_version": 1},
        {"task_size": 2},
        {"num_frags": 2},
        {"checkpoint_size": 2},
        {"commit_granularity": 2},
        {"cluster": "c"},
        {"manifest": "m"},
    ],
    ids=lambda tuning: next(iter(tuning)),
)
def test_what_steers_a_service_is_refused_and_not_ignored(namespace, tuning):
    (name,) = tuning
    request = spec.AlterTableBackfillColumnsRequest(id=["t"], column="n", **tuning)
    with pytest.raises(LanceNamespaceError, match=name) as caught:
        namespace.alter_table_backfill_columns(request)
    assert caught.value.code == 0


# -- metadata --------------------------------------------------------------------------------------


def test_metadata_of_fields_is_merged_or_replaced_by_one_commit(table):
    columns = table.columns
    columns.update_metadata("n", {"a": "1", "b": "2"})
    columns.update_metadata("place.x", {"k": "v"})
    assert columns.update_metadata("n", {"a": None, "c": "3", "no": None}).fields == {
        "n": {"b": "2", "c": "3"}
    }
    done = columns.update_all_metadata(
        [
            FieldMetadata("n", {"d": "4", "b": None}),
            FieldMetadata("place.x", {"new": "1", "gone": None}, replace=True),
        ]
    )
    assert done.fields == {"n": {"c": "3", "d": "4"}, "place.x": {"new": "1"}}
    assert done.commit.version == 5
    assert columns.update_metadata("n", {}, replace=True).fields == {"n": {}}


@pytest.mark.parametrize(
    ("updates", "error"),
    [
        ([], InvalidInputError),
        ([FieldMetadata("missing", {"a": "1"})], TableColumnNotFoundError),
        (
            [FieldMetadata("n", {"a": "1"}), FieldMetadata("`n`", {"b": "2"})],
            InvalidInputError,
        ),
    ],
)
def test_metadata_of_no_field_or_one_twice_is_refused(table, updates, error):
    with pytest.raises(error, match=r"'n'|'missing'|at least one"):
        table.columns.update_all_metadata(updates)
    assert table.version == 1


def test_metadata_of_the_schema_is_replaced_and_must_be_given(namespace, table):
    """Spec: lance-rest-openapi, UpdateTableSchemaMetadata: "Replace the schema metadata"."""
    table.columns.replace_schema_metadata({"a": "1"})
    assert table.columns.replace_schema_metadata({"b": "2"}).metadata == {"b": "2"}
    request = spec.UpdateTableSchemaMetadataRequest(id=["t"])
    with pytest.raises(LanceNamespaceError) as caught:
        namespace.update_table_schema_metadata(request)
    assert caught.value.code == 13
    assert table.schema.metadata == {b"b": b"2"}
    assert table.columns.replace_schema_metadata({}).metadata == {}


# -- branches, and who may not ---------------------------------------------------------------------


def test_every_change_of_columns_goes_to_the_branch_that_is_named(table):
    _branch(table)
    columns = table.columns
    columns.add({"a": "n + 1", "once": "1"}, branch="b")
    columns.add_computed({"later": "n * 2"}, branch="b")
    columns.backfill("later", branch="b")
    columns.alter("a", rename="z", branch="b")
    columns.drop("word", branch="b")
    columns.update_metadata("z", {"k": "v"}, branch="b")
    done = columns.replace_schema_metadata({"k": "v"}, branch="b")
    on_branch = table.to_lance(branch="b")
    assert done.commit.version == on_branch.version
    assert done.commit.transaction_id == on_branch.read_transaction(on_branch.version).uuid
    assert on_branch.schema.names == ["n", "place", "points", "z", "once", "later"]
    assert on_branch.to_table(columns=["later"])["later"].to_pylist() == [2, 4, 6]
    assert (table.version, table.schema.names) == (1, ROWS.schema.names)
    with pytest.raises(TableBranchNotFoundError, match="'other'"):
        columns.drop("n", branch="other")


def test_a_backfill_is_committed_through_the_catalog(table, monkeypatch):
    table.columns.add_computed({"later": "n * 2"})
    asked = []
    create = table._backend.create_table_version

    def watched(name, version, *args, **kwargs):
        asked.append(version)
        return create(name, version, *args, **kwargs)

    monkeypatch.setattr(table._backend, "create_table_version", watched)
    assert table.columns.backfill("later").commit.version == 3
    assert asked == [3]


def test_a_read_only_catalog_changes_no_column(plain_lake, table):
    columns = plain_lake.connect(read_only=True).table("t").columns
    for change in (
        lambda: columns.add({"a": "1"}),
        lambda: columns.alter("n", rename="m"),
        lambda: columns.drop("n"),
        lambda: columns.backfill("n", expression="1"),
        lambda: columns.update_metadata("n", {"a": "1"}),
        lambda: columns.replace_schema_metadata({"a": "1"}),
    ):
        with pytest.raises(ReadOnlyError):
            change()
    assert table.version == 1


# -- types in JSON ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        pa.null(),
        pa.bool_(),
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.binary(4),
        pa.date32(),
        pa.date64(),
        pa.timestamp("us"),
        pa.duration("us"),
        pa.time32("ms"),
        pa.time64("us"),
        pa.decimal128(38, 10),
        pa.decimal256(60, 3),
        pa.list_(pa.string()),
        pa.large_list(pa.field("item", pa.int8(), nullable=False)),
        pa.list_(pa.float32(), 8),
        pa.struct([pa.field("a", pa.int8()), pa.field("b", pa.list_(pa.bool_()))]),
        pa.map_(pa.string(), pa.int64()),
    ],
    ids=str,
)
def test_a_type_is_read_back_from_the_json_that_a_schema_is_told_in(kind):
    (field,) = schema_to_json(pa.schema([pa.field("a", kind)]))["fields"]
    assert type_from_json(field["type"]) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Int32", pa.int32()),
        ("boolean", pa.bool_()),
        ("timestamp[ms]", pa.timestamp("ms")),
        ("timestamp[ns, tz=Europe/Berlin]", pa.timestamp("ns", "Europe/Berlin")),
        ("timestamp:us:UTC", pa.timestamp("us", "UTC")),
        ("timestamp:s:-", pa.timestamp("s")),
        ("duration:ns", pa.duration("ns")),
    ],
)
def test_a_type_is_read_in_more_than_one_writing(name, kind):
    assert type_from_json({"type": name}) == kind


@pytest.mark.parametrize(
    "document",
    [
        {},
        "int64",
        {"type": 3},
        {"type": "wat"},
        {"type": "list"},
        {"type": "fixed_size_binary"},
        {"type": "fixed_size_list", "fields": [{"name": "item", "type": {"type": "int8"}}]},
        {"type": "struct", "fields": [{"name": "a", "type": {"type": "wat"}}]},
        {"type": "struct", "fields": [{"name": "a"}]},
        {"type": "map", "fields": [{"name": "a", "type": {"type": "int8"}}]},
        {"type": "decimal128", "length": 999_000},
    ],
    ids=str,
)
def test_what_is_no_type_is_invalid_input(document):
    with pytest.raises(InvalidInputError, match="data type"):
        type_from_json(document)


# -- beside pylance --------------------------------------------------------------------------------


def test_pylance_answers_the_same_to_the_same_changes(plain_lake, table):
    """Metadata aside: pylance merges the schema's and has no fields'."""
    other = plain_lake.connect().create_table("u", ROWS)
    theirs = lance.namespace.DirectoryNamespace(**plain_lake.properties)
    ours = _namespace(plain_lake)
    new = [models.AddColumnsEntry(name="a", expression="n + 1")]
    change = [models.AlterColumnsEntry(path="place.x", rename="w", nullable=True)]
    for namespace, name in ((ours, "t"), (theirs, "u")):
        added = namespace.alter_table_add_columns(
            spec.AlterTableAddColumnsRequest(id=[name], new_columns=new)
        )
        altered = namespace.alter_table_alter_columns(
            spec.AlterTableAlterColumnsRequest(id=[name], alterations=change)
        )
        dropped = namespace.alter_table_drop_columns(
            spec.AlterTableDropColumnsRequest(id=[name], columns=["word"])
        )
        assert [added.version, altered.version, dropped.version] == [2, 3, 4]
    assert table.schema == other.schema
    assert table.to_arrow() == other.to_arrow()
