"""Arrow schemas as Iceberg's: every one has one, and it loses nothing.

Spec: iceberg-namespace, "Using Lance Table in IRC with Iceberg Tooling", 1.
"""

from __future__ import annotations

import json
import string

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance.arrow import BFloat16Type

from mooring.errors import InvalidInputError
from mooring.iceberg.arrow_names import format_field, parse_field
from mooring.iceberg.types import last_column_id, same_fields, to_arrow, to_iceberg
from mooring.tables.field_ids import FieldIds, field_ids

UNREGISTERED = {b"ARROW:extension:name": b"acme.money", b"ARROW:extension:metadata": b"EUR"}

# Arrow type, Iceberg type, and how the doc writes it.
PLAIN = [
    (pa.null(), "string", "null"),
    (pa.bool_(), "boolean", "bool"),
    (pa.int8(), "int", "int8"),
    (pa.int16(), "int", "int16"),
    (pa.int32(), "int", "int32"),
    (pa.int64(), "long", "int64"),
    (pa.uint8(), "int", "uint8"),
    (pa.uint16(), "int", "uint16"),
    (pa.uint32(), "long", "uint32"),
    (pa.uint64(), "decimal(20,0)", "uint64"),
    (pa.float16(), "float", "float16"),
    (pa.float32(), "float", "float32"),
    (pa.float64(), "double", "float64"),
    (pa.string(), "string", "string"),
    (pa.large_string(), "string", "large_string"),
    (pa.string_view(), "string", "string_view"),
    (pa.binary(), "binary", "binary"),
    (pa.large_binary(), "binary", "large_binary"),
    (pa.binary_view(), "binary", "binary_view"),
    (pa.binary(7), "fixed[7]", "fixed_size_binary[7]"),
    (pa.binary(0), "binary", "fixed_size_binary[0]"),
    (pa.date32(), "date", "date32"),
    (pa.date64(), "date", "date64"),
    (pa.time32("s"), "time", "time32[s]"),
    (pa.time32("ms"), "time", "time32[ms]"),
    (pa.time64("us"), "time", "time64[us]"),
    (pa.time64("ns"), "time", "time64[ns] | shown in microseconds"),
    (pa.timestamp("s"), "timestamp", "timestamp[s]"),
    (pa.timestamp("ms"), "timestamp", "timestamp[ms]"),
    (pa.timestamp("us"), "timestamp", "timestamp[us]"),
    (pa.timestamp("ns"), "timestamp", "timestamp[ns] | shown in microseconds"),
    (pa.timestamp("us", "UTC"), "timestamptz", "timestamp[us, tz=UTC]"),
    (pa.timestamp("s", "+02:30"), "timestamptz", "timestamp[s, tz=+02:30]"),
    (
        pa.timestamp("ns", "Europe/Berlin"),
        "timestamptz",
        "timestamp[ns, tz=Europe/Berlin] | shown in microseconds",
    ),
    (pa.duration("s"), "long", "duration[s]"),
    (pa.duration("ns"), "long", "duration[ns]"),
    (pa.month_day_nano_interval(), "string", "month_day_nano_interval"),
    (pa.decimal32(9, 2), "decimal(9,2)", "decimal32(9, 2)"),
    (pa.decimal64(18, 0), "decimal(18,0)", "decimal64(18, 0)"),
    (pa.decimal128(38, 10), "decimal(38,10)", "decimal128(38, 10)"),
    (pa.decimal128(5, -3), "decimal(8,0)", "decimal128(5, -3)"),
    (pa.decimal128(3, 5), "decimal(5,5)", "decimal128(3, 5)"),
    (pa.decimal128(38, -3), "string", "decimal128(38, -3)"),
    (pa.decimal256(20, 4), "decimal(20,4)", "decimal256(20, 4)"),
    (pa.decimal256(60, 4), "string", "decimal256(60, 4)"),
    (pa.dictionary(pa.int8(), pa.string()), "string", "dictionary<int8, string>"),
    (
        pa.dictionary(pa.int32(), pa.uint64(), ordered=True),
        "decimal(20,0)",
        "dictionary<int32, uint64, ordered>",
    ),
    (
        pa.run_end_encoded(pa.int32(), pa.large_string()),
        "string",
        "run_end_encoded<int32, large_string>",
    ),
    (pa.json_(), "string", "extension<arrow.json, string>"),
    (pa.json_(pa.large_string()), "string", "extension<arrow.json, large_string>"),
    (pa.uuid(), "uuid", "extension<arrow.uuid, fixed_size_binary[16]>"),
    (pa.bool8(), "boolean", "extension<arrow.bool8, int8>"),
    (BFloat16Type(), "float", "extension<lance.bfloat16, fixed_size_binary[2]>"),
    (
        pa.opaque(pa.int16(), "cash", "acme"),
        "int",
        (
            'extension<arrow.opaque, int16, "{\\"type_name\\": \\"cash\\", \\"vendor_name\\":'
            ' \\"acme\\"}">'
        ),
    ),
    (
        lance.blob_field("b").type,
        "binary",
        (
            "extension<lance.blob.v2, struct<data: large_binary, uri: string, position: uint64,"
            " size: uint64>>"
        ),
    ),
]
# Arrow type, what is in Iceberg's list, and how the doc writes it.
LISTS = [
    (pa.list_(pa.int8()), "int", "list<int8>"),
    (pa.list_(pa.field("item", pa.int8(), nullable=False)), "int", "list<int8 not null>"),
    (pa.large_list(pa.uint32()), "long", "large_list<uint32>"),
    (pa.list_view(pa.string()), "string", "list_view<string>"),
    (pa.large_list_view(pa.date64()), "date", "large_list_view<date64>"),
    (pa.list_(pa.float32(), 1536), "float", "fixed_size_list<float32>[1536]"),
    (
        pa.list_(pa.timestamp("ns")),
        "timestamp",
        "list<timestamp[ns]> | shown in microseconds",
    ),
    (
        pa.fixed_shape_tensor(pa.float32(), [2, 3], dim_names=["h", "w"], permutation=[1, 0]),
        "float",
        (
            'extension<arrow.fixed_shape_tensor, fixed_size_list<float32>[6], "{\\"shape\\": [2,'
            ' 3], \\"dim_names\\": [\\"h\\", \\"w\\"], \\"permutation\\": [1, 0]}">'
        ),
    ),
]
UNIONS = [
    pa.sparse_union([pa.field("a", pa.int8()), pa.field("b", pa.string())]),
    pa.dense_union([pa.field("a", pa.int8()), pa.field("", pa.list_(pa.int8()))]),
]


def _one(kind, **options):
    """Return the Iceberg field of a type."""
    return to_iceberg(pa.schema([pa.field("c", kind, **options)]))["fields"][0]


@pytest.mark.parametrize(("arrow", "iceberg", "written"), PLAIN, ids=lambda one: str(one)[:40])
def test_each_type_without_others_in_it(arrow, iceberg, written):
    assert _one(arrow) == {
        "id": 1,
        "name": "c",
        "required": False,
        "type": iceberg,
        "doc": f"arrow: {written}",
    }
    assert to_arrow(to_iceberg(pa.schema([("c", arrow)]))) == pa.schema([("c", arrow)])


@pytest.mark.parametrize(("arrow", "element", "written"), LISTS, ids=lambda one: str(one)[:40])
def test_each_type_of_list(arrow, element, written):
    found = _one(arrow)
    assert found["type"] == {
        "type": "list",
        "element-id": 2,
        "element-required": "not null" in written,
        "element": element,
    }
    assert found["doc"] == f"arrow: {written}"
    back = to_arrow(to_iceberg(pa.schema([("c", arrow)])))
    assert back.field(0).type == arrow
    assert str(back.field(0).type) == str(arrow)


@pytest.mark.parametrize("arrow", UNIONS, ids=str)
def test_what_iceberg_cannot_hold_is_shown_as_text(arrow):
    assert _one(arrow)["type"] == "string"
    assert str(arrow) in _one(arrow)["doc"]
    assert to_arrow(to_iceberg(pa.schema([("c", arrow)]))).field(0).type == pa.string()


def test_a_map_has_keys_that_are_required():
    kind = pa.map_(pa.uint32(), pa.field("value", pa.struct([("x", pa.int8())]), nullable=False))
    assert _one(kind)["type"] == {
        "type": "map",
        "key-id": 2,
        "key": "long",
        "value-id": 3,
        "value-required": True,
        "value": {
            "type": "struct",
            "fields": [
                {"id": 4, "name": "x", "required": False, "type": "int", "doc": "arrow: int8"}
            ],
        },
    }
    assert to_arrow(to_iceberg(pa.schema([("c", kind)]))).field(0).type == kind


def test_only_what_cannot_be_null_is_required():
    assert _one(pa.int8(), nullable=False)["required"] is True
    schema = pa.schema([pa.field("c", pa.struct([pa.field("x", pa.int8(), nullable=False)]))])
    outer = to_iceberg(schema)["fields"][0]
    assert outer["required"] is False
    assert outer["type"]["fields"][0]["required"] is True
    assert to_arrow(to_iceberg(schema)) == schema


def test_a_description_comes_first_in_the_doc_and_comes_back():
    for key in ("description", "comment"):
        schema = pa.schema([pa.field("c", pa.int8(), metadata={key: "what it is | or not"})])
        found = to_iceberg(schema)
        assert found["fields"][0]["doc"] == "what it is | or not | arrow: int8"
        assert to_arrow(found).field(0).type == pa.int8()
        assert to_arrow(found).field(0).metadata == {b"description": b"what it is | or not"}


def test_a_name_with_a_bar_does_not_end_the_type():
    schema = pa.schema([("c", pa.large_list(pa.struct([("a | b", pa.int8())])))])
    assert to_arrow(to_iceberg(schema)) == schema


def test_an_extension_that_nobody_registered_is_kept_with_its_storage():
    schema = pa.schema([pa.field("c", pa.int64(), metadata=UNREGISTERED)])
    found = to_iceberg(schema)
    assert found["fields"][0]["type"] == "long"
    assert found["fields"][0]["doc"] == 'arrow: extension<acme.money, int64, "EUR">'
    assert to_arrow(found).equals(schema, check_metadata=True)


def test_a_known_extension_is_known_by_metadata_alone():
    for name, stored, expected in (
        (b"lance.json", pa.large_binary(), "string"),
        (b"lance.blob.v2", pa.struct([("data", pa.large_binary())]), "binary"),
    ):
        assert _one(stored, metadata={b"ARROW:extension:name": name})["type"] == expected


# Names ------------------------------------------------------------------------------------------


def _full_names(fields, above=""):
    for field in fields:
        yield above + field["name"]
        yield from _inner_names(field["type"], above + field["name"])


def _inner_names(kind, path):
    if isinstance(kind, str):
        return
    for word in ("element", "key", "value"):
        if word in kind:
            yield f"{path}.{word}"
            yield from _inner_names(kind[word], f"{path}.{word}")
    if kind["type"] == "struct":
        yield from _full_names(kind["fields"], f"{path}.")


NAMES = [
    ["a", "A", "ä", "a b", "日本", "a-b", "1", " "],
    ["", "_", ""],
    ["a", "a", "a_2"],
]


@pytest.mark.parametrize("names", NAMES, ids=str)
def test_names_are_kept_where_they_can_be_told_apart(names):
    found = to_iceberg(pa.schema([(name, pa.int8()) for name in names]))["fields"]
    shown = [field["name"] for field in found]
    assert len(set(shown)) == len(names)
    assert all(shown)
    for field, name in zip(found, names, strict=True):
        is_kept = field["name"] == name
        assert is_kept != (f"named {json.dumps(name)} in Lance" in field["doc"])
    if len(set(names)) == len(names) and all(names):
        assert shown == names


@pytest.mark.parametrize(
    "schema",
    [
        [("a.b", pa.int8()), ("a", pa.struct([("b", pa.int8()), ("c", pa.int8())]))],
        [("a", pa.struct([("b.c", pa.int8()), ("b", pa.struct([("c", pa.int8())]))]))],
        [("a.element", pa.int8()), ("a", pa.list_(pa.int8()))],
        [("a", pa.map_(pa.int8(), pa.list_(pa.int8()))), ("a.value.element", pa.int8())],
        [("a.key", pa.int8()), ("a", pa.map_(pa.int8(), pa.int8()))],
    ],
    ids=str,
)
def test_no_two_fields_have_the_same_name_with_dots(schema):
    names = list(_full_names(to_iceberg(pa.schema(schema))["fields"]))
    assert len(set(names)) == len(names)


# Numbers ----------------------------------------------------------------------------------------


def _numbers(kind):
    """List the numbers of an Iceberg type, in a way of its own."""
    if isinstance(kind, str):
        return []
    own = [kind[key] for key in ("element-id", "key-id", "value-id") if key in kind]
    inner = [kind[key] for key in ("element", "key", "value") if key in kind]
    fields = kind.get("fields", [])
    own += [field["id"] for field in fields]
    return own + [
        number for one in [*inner, *(f["type"] for f in fields)] for number in _numbers(one)
    ]


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("vector", pa.list_(pa.float32(), 4)),
        ("matrix", pa.list_(pa.list_(pa.float32(), 2), 3)),
        ("deep", pa.struct([("x", pa.list_(pa.struct([("y", pa.int8())]))), ("z", pa.uuid())])),
        ("vectors", pa.list_(pa.list_(pa.float16(), 4))),
        ("pairs", pa.map_(pa.string(), pa.struct([("v", pa.int32())]))),
        ("points", pa.list_(pa.struct([("p", pa.float32())]), 2)),
        ("tensor", pa.fixed_shape_tensor(pa.float32(), [2, 3])),
        lance.blob_field("blob"),
    ]
)


def _write(schema, path):
    """Make an empty table; PyArrow itself cannot make one of every extension type."""
    rows = pa.RecordBatchReader.from_batches(schema, [])
    return lance.write_dataset(rows, str(path), data_storage_version="2.2")


@pytest.fixture
def nested(tmp_path):
    return _write(NESTED, tmp_path / "t.lance")


def _shown(dataset):
    return to_iceberg(dataset.schema, field_ids(dataset))


def _by_name(schema):
    return {field["name"]: field for field in schema["fields"]}


def test_numbers_are_lances_and_one(nested):
    shown = _by_name(_shown(nested))
    numbers = {one.name(): one.id() + 1 for one in nested.lance_schema.fields()}
    assert {name: field["id"] for name, field in shown.items()} == numbers
    deep = shown["deep"]
    assert [one["id"] for one in deep["type"]["fields"]] == [deep["id"] + 1, deep["id"] + 4]
    pairs = shown["pairs"]["type"]
    # The entries between a map and its key have a number of Lance's too, which Iceberg has not.
    assert pairs["key-id"] == shown["pairs"]["id"] + 2
    assert pairs["value"]["fields"][0]["id"] == pairs["value-id"] + 1


def test_no_number_is_given_twice(nested):
    found = _numbers(_shown(nested))
    assert len(set(found)) == len(found)
    assert last_column_id(_shown(nested)) == max(found)
    assert max(found) < 2**31 - 200  # the rest is Iceberg's


def test_made_numbers_lie_above_all_of_lances_and_follow_their_field(nested):
    shown = _by_name(_shown(nested))
    vector, matrix = shown["vector"], shown["matrix"]
    assert vector["type"]["element-id"] == 2**30 + 64 * vector["id"]
    assert matrix["type"]["element-id"] == 2**30 + 64 * matrix["id"]
    assert matrix["type"]["element"]["element-id"] == 2**30 + 64 * matrix["id"] + 1


def test_numbers_stay_unique_where_lances_are_as_high_as_made_ones():
    kind = pa.list_(pa.list_(pa.int8(), 2), 2)
    ids = FieldIds(-1, (FieldIds(2**30 + 63), FieldIds(0), FieldIds(2**30 + 62), FieldIds(2**24)))
    found = _numbers(to_iceberg(pa.schema([(name, kind) for name in "abcd"]), ids))
    assert len(set(found)) == 12
    assert max(found) < 2**31 - 200


def test_numbers_of_kept_columns_never_change(nested):
    """Columns are added, renamed, dropped and put in another order."""
    first = _by_name(_shown(nested))

    def same(field, name):
        later = _by_name(_shown(nested))[field["name"] if name is None else name]
        return (later["id"], _numbers(later["type"])) == (field["id"], _numbers(field["type"]))

    nested.add_columns([pa.field("late", pa.list_(pa.int8(), 3)), pa.field("plain", pa.int8())])
    assert all(same(field, None) for field in first.values())
    late = _by_name(_shown(nested))["late"]
    nested.alter_columns({"path": "vector", "name": "embedding"}, {"path": "deep.x", "name": "w"})
    assert same(first["vector"], "embedding")
    assert same(first["deep"], None)
    nested.drop_columns(["matrix", "id"])
    assert same(first["points"], None)
    assert same(late, "late")
    nested.add_columns([pa.field("id", pa.int64())])
    assert not same(first["id"], None)
    order = ["late", "vectors", "embedding"]
    moved = nested.schema
    kept = to_iceberg(
        pa.schema([moved.field(name) for name in order]),
        FieldIds(
            -1, tuple(field_ids(nested).children[moved.get_field_index(name)] for name in order)
        ),
    )
    assert _by_name(kept)["vectors"]["type"] == first["vectors"]["type"]
    assert _by_name(kept)["embedding"]["id"] == first["vector"]["id"]
    assert _by_name(kept)["late"] == late


def test_lance_stores_what_comes_back(nested, tmp_path):
    back = to_arrow(_shown(nested))
    again = _write(back, tmp_path / "again.lance")
    assert again.schema == nested.schema


# From Iceberg -----------------------------------------------------------------------------------

NATURAL = [
    ("boolean", pa.bool_()),
    ("int", pa.int32()),
    ("long", pa.int64()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("decimal(9, 2)", pa.decimal128(9, 2)),
    ("decimal(38,0)", pa.decimal128(38, 0)),
    ("date", pa.date32()),
    ("time", pa.time64("us")),
    ("timestamp", pa.timestamp("us")),
    ("timestamptz", pa.timestamp("us", "UTC")),
    ("timestamp_ns", pa.timestamp("ns")),
    ("timestamptz_ns", pa.timestamp("ns", "UTC")),
    ("string", pa.string()),
    ("uuid", pa.uuid()),
    ("fixed[3]", pa.binary(3)),
    ("binary", pa.binary()),
    ("unknown", pa.null()),
    ({"type": "list", "element-id": 3, "element-required": False, "element": "uuid"},) * 2,
]


def _schema(kind, **more):
    field = {"id": 1, "name": "c", "required": False, "type": kind, **more}
    return {"type": "struct", "schema-id": 0, "fields": [field]}


@pytest.mark.parametrize(("iceberg", "arrow"), NATURAL, ids=str)
def test_types_that_iceberg_clients_send(iceberg, arrow):
    found = to_arrow(_schema(iceberg)).field(0)
    assert found.type == (pa.list_(pa.uuid()) if isinstance(iceberg, dict) else arrow)
    assert found.nullable
    assert not to_arrow(_schema(iceberg, required=True)).field(0).nullable


@pytest.mark.parametrize(
    ("iceberg", "doc"),
    [
        ("long", "arrow: int8"),  # altered by an Iceberg client since
        ("long", "arrow: list<int64>"),
        ("long", "arrow: nothing of the kind"),
        ("long", "arrow: timestamp[fortnights]"),
        ("long", "arrow: " + "list<" * 5000),
        ("long", "arrow: fixed_size_list<int8>[99999999999999999999]"),
        ("long", "arrow: extension<arrow.uuid, int64>"),
        ("long", "arrow: struct<"),
        ("long", "arrow: int64 int64"),
    ],
    ids=lambda one: one[:40],
)
def test_a_doc_that_does_not_fit_is_not_followed(iceberg, doc):
    found = to_arrow(_schema(iceberg, doc=doc)).field(0)
    assert found.type == pa.int64()
    assert found.metadata is None


def test_a_struct_that_was_altered_keeps_the_types_of_the_fields_that_were_not():
    schema = to_iceberg(pa.schema([("c", pa.struct([("x", pa.int8()), ("y", pa.float16())]))]))
    schema["fields"][0]["type"]["fields"][0]["type"] = "long"
    kind = pa.struct([("x", pa.int64()), ("y", pa.float16())])
    assert to_arrow(schema).field(0).type == kind


def test_a_doc_of_iceberg_clients_becomes_a_description():
    assert to_arrow(_schema("int", doc="words")).field(0).metadata == {b"description": b"words"}


def _too_deep():
    kind = "int"
    for _ in range(100):
        kind = {"type": "list", "element-id": 1, "element-required": False, "element": kind}
    return kind


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"fields": None},
        {"fields": ["x"]},
        {"fields": [{"type": "int"}]},
        {"fields": [{"name": "", "type": "int"}]},
        _schema(None),
        _schema("variant"),
        _schema("geometry(srid:4326)"),
        _schema("decimal(39,0)"),
        _schema("decimal(3,9)"),
        _schema("fixed[0]"),
        _schema({"type": "set"}),
        _schema({"type": "list"}),
        _schema({"type": "map", "key": "int"}),
        _schema({"type": "struct"}),
        _schema(["int"]),
        _schema(_too_deep()),
    ],
    ids=lambda one: str(one)[:60],
)
def test_what_is_no_schema_is_refused(schema):
    with pytest.raises(InvalidInputError):
        to_arrow(schema)


def test_schemas_are_the_same_by_their_fields():
    one = to_iceberg(pa.schema([("a", pa.uint64())]))
    other = json.loads(json.dumps(one).replace("(20,0)", "(20, 0)"))
    assert same_fields(one, {**other, "schema-id": 7, "identifier-field-ids": []})
    assert not same_fields(one, to_iceberg(pa.schema([("a", pa.decimal128(20, 0))])))
    assert not same_fields(one, to_iceberg(pa.schema([("b", pa.uint64())])))


# Any schema -------------------------------------------------------------------------------------

PLAIN_TYPES = [arrow for arrow, _, _ in PLAIN] + [arrow for arrow, _, _ in LISTS]
names = st.text(st.sampled_from(string.ascii_letters + "é日 .\"'`|<>,:"), min_size=1, max_size=4)


def _fields(kinds, *, name="item"):
    return st.builds(lambda kind, nullable: _field(name, kind, nullable), kinds, st.booleans())


def _field(name, kind, nullable):
    return pa.field(name, kind, nullable or pa.types.is_null(kind))


def _struct(parts):
    return pa.struct([_field(name, *part) for name, part in parts.items()])


def _nest(kinds):
    one = _fields(kinds)
    return st.one_of(
        st.builds(pa.list_, one),
        st.builds(pa.large_list, one),
        st.builds(pa.list_view, one),
        st.builds(pa.large_list_view, one),
        st.builds(pa.list_, one, st.integers(1, 9)),
        st.builds(
            pa.map_,
            kinds.filter(lambda kind: not pa.types.is_null(kind)),
            _fields(kinds, name="value"),
            keys_sorted=st.booleans(),
        ),
        st.dictionaries(names, st.tuples(kinds, st.booleans()), max_size=4).map(_struct),
    )


types = st.recursive(st.sampled_from(PLAIN_TYPES), _nest, max_leaves=8)
schemas = st.dictionaries(names, st.tuples(types, st.booleans()), max_size=5).map(
    lambda parts: pa.schema(list(_struct(parts)))
)


@given(schemas)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_schema_has_one_of_iceberg_and_comes_back(schema):
    found = to_iceberg(schema)
    numbers, full = _numbers(found), list(_full_names(found["fields"]))
    assert len(set(numbers)) == len(numbers)
    assert last_column_id(found) == max(numbers, default=0)
    assert len(set(full)) == len(full)
    assert json.loads(json.dumps(found)) == found
    is_renamed = any(" in Lance" in json.dumps(field) for field in found["fields"])
    if not is_renamed:
        assert str(to_arrow(found)) == str(schema)
        assert to_arrow(found) == schema


@given(types)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_written_of_a_type_is_read_again(kind):
    text = format_field(pa.field("c", kind))
    assert format_field(parse_field(text, "c")) == text


@given(st.text(st.sampled_from('<>[](),:="\\ abclistruct0129'), max_size=40))
@settings(max_examples=300, deadline=None)
def test_reading_what_is_no_type_says_so(text):
    try:
        parse_field(text, "c")
    except ValueError as exc:
        assert text in str(exc)  # noqa: PT017  # most texts are no types
