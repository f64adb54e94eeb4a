"""Cells of a preview: what every kind of value looks like, and one value by itself."""

from __future__ import annotations

import base64
import json
import shutil
import struct
import zlib
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.arrow import bfloat16_array

import mooring
from mooring.identifiers import ObjectId
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from mooring.server.ui.rows.cells import make_cell
from mooring.server.ui.rows.image_kinds import image_type
from mooring.server.ui.rows.vectors import draw, is_vector, read_vector, summarize
from tests.ui.site import Site, text_of, wait_until

SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'></svg>"


def png(width: int = 2, height: int = 2) -> bytes:
    """Draw a small picture."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress((b"\0" + b"\x40" * 3 * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def cell(value: object, kind: pa.DataType | None = None, longest: int = 500):
    return make_cell(pa.array([value], kind)[0], longest)


def plain(value: object, kind: pa.DataType | None = None) -> object:
    return cell(value, kind).value


class TestValues:
    """Values as JSON has them."""

    @pytest.mark.parametrize(
        ("value", "kind", "expected"),
        [
            (0.1, pa.float32(), 0.1),
            (0.1, pa.float16(), 0.1),
            (float("nan"), pa.float64(), "NaN"),
            (float("-inf"), pa.float32(), "-Infinity"),
            (2**63, pa.uint64(), 2**63),
            (Decimal("1.50"), pa.decimal128(10, 2), "1.50"),
            (True, pa.bool_(), True),
            (date(2024, 2, 29), pa.date32(), "2024-02-29"),
            (1, pa.time64("ns"), "00:00:00.000000001"),
            (timedelta(milliseconds=-1500), pa.duration("ms"), "-1.5 s"),
            ("red", pa.dictionary(pa.int8(), pa.string()), "red"),
            (UUID(int=7).bytes, pa.uuid(), str(UUID(int=7))),
            ([["a", None]], pa.list_(pa.list_(pa.string())), [["a", None]]),
            ({"x": {"y": b"\1"}}, None, {"x": {"y": "AQ=="}}),
            ([("k", 1)], pa.map_(pa.string(), pa.int64()), [["k", 1]]),
        ],
    )
    def test_each_kind(self, value, kind, expected):
        found = plain(value, kind)
        assert found == expected
        json.dumps(found, allow_nan=False)

    @pytest.mark.parametrize(
        ("value", "kind", "expected"),
        [
            (0, pa.timestamp("s"), "1970-01-01T00:00:00"),
            (1, pa.timestamp("ns", "UTC"), "1970-01-01T00:00:00.000000001+00:00"),
            (
                datetime(2024, 7, 1, tzinfo=UTC),
                pa.timestamp("ms", "Europe/Berlin"),
                "2024-07-01T02:00:00+02:00",
            ),
            (-1, pa.timestamp("ms", "+05:30"), "1970-01-01T05:29:59.999+05:30"),
            (-62135596800, pa.timestamp("s"), "0001-01-01T00:00:00"),
            (2**60, pa.timestamp("s"), "1152921504606846976 s after 1970"),
        ],
    )
    def test_times_have_their_zone_and_all_their_digits(self, value, kind, expected):
        assert plain(value, kind) == expected

    def test_nothing_is_told_from_an_empty_text_and_from_the_word(self):
        assert cell(None, pa.string()).kind == "null"
        assert cell("").is_empty
        assert (cell("null").kind, cell("null").text) == ("text", "null")

    def test_long_values_are_cut_where_they_are_read(self):
        text = cell("\N{EURO SIGN}" * 1000, longest=100)
        assert (text.value, text.size_bytes, text.is_cut) == ("\N{EURO SIGN}" * 100, 3000, True)
        assert not cell("\N{EURO SIGN}" * 100, longest=100).is_cut
        many = cell(list(range(1000)))
        assert (many.value[-1], many.length, many.is_cut) == ("… 936 more", 1000, True)
        deep = cell([{"inner": ["x" * 1000] * 500}])
        assert len(json.dumps(deep.value)) < 40_000
        binary = cell(b"\0" * 5000)
        assert base64.b64decode(binary.value) == bytes(8)
        assert (binary.size_bytes, binary.text) == (5000, "00 00 00 00 00 00 00 00 …")

    def test_a_text_of_many_lines_is_folded(self):
        assert cell("\n".join("abcdef")).is_folded
        assert not cell("one\ntwo").is_folded

    def test_very_deep_values_end_somewhere(self):
        kind = pa.int64()
        value: object = 1
        for _ in range(40):
            kind, value = pa.list_(kind), [value]
        assert cell(value, kind).is_cut


class TestVectors:
    """Vectors as small pictures."""

    @pytest.mark.parametrize(
        "kind", [pa.float16(), pa.float32(), pa.float64(), pa.uint8(), pa.int8()]
    )
    def test_numbers_of_each_kind(self, kind):
        found = cell([1, 2, 2], pa.list_(kind, 3))
        assert found.kind == "vector"
        assert (found.vector.dims, found.vector.norm, found.vector.most) == (3, 3.0, 2.0)

    def test_brain_floats(self):
        values = pa.FixedSizeListArray.from_arrays(bfloat16_array([1.5, -2.0]), 2)
        assert is_vector(values.type)
        assert read_vector(values[0]).tolist() == [1.5, -2.0]
        assert make_cell(values[0], 100).value == [1.5, -2.0]

    def test_lists_of_text_or_of_any_length_are_no_vectors(self):
        assert cell([1.0, 2.0]).kind == "nested"
        assert not is_vector(pa.list_(pa.string(), 3))
        assert not is_vector(pa.list_(pa.int64(), 3))

    def test_long_ones_are_drawn_by_their_extremes(self):
        numbers = np.zeros(1536)
        numbers[700] = -3.0
        found = summarize(numbers)
        assert len(found.levels) == 64
        assert min(found.levels) == -3.0
        assert found.label == "vector of 1,536 numbers from -3 to 0, norm 3"
        assert len(found.bars.above) < 4000

    @pytest.mark.parametrize(
        "levels", [[0.0, 0.0], [1.0, -1.0], [5.0, 4.0], [-5.0, -4.0], [1e300, -1e300], [1e-320, 0]]
    )
    def test_bars_stay_within_the_picture(self, levels):
        picture = draw(levels)
        for path in (picture.above + picture.below).split("M")[1:]:
            _, top, _, height, _ = path.replace("h", " ").replace("v", " ").split(" ")
            assert -0.01 <= float(top) <= float(top) + float(height) <= picture.height + 0.01

    def test_a_length_that_no_number_has_is_none(self):
        found = summarize(np.array([1e308, -1e308, 1e308]))
        assert (found.norm, found.least, found.most) == (None, -1e308, 1e308)
        assert "huge" in found.label

    def test_numbers_that_are_none_are_told(self):
        found = cell([1.0, float("nan"), None], pa.list_(pa.float32(), 3))
        assert found.vector.norm is None
        assert "not finite" in found.vector.label
        assert found.value == [1.0, "NaN", None]
        json.dumps(found.vector.levels, allow_nan=False)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (png(), "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a....", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (SVG, None),
        (b"<html><script>alert(1)</script>", None),
        (b"%PDF-1.7", None),
        (b"", None),
    ],
)
def test_pictures_are_told_by_how_they_begin(head, expected):
    assert image_type(head) == expected


PICTURES = [png(), None, b"", SVG, b"plain " * 2000]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Pictures in binary columns and in blobs of each kind."""
    root = tmp_path_factory.mktemp("cells")
    catalog = mooring.connect(str(root))
    ids = pa.array(range(5))
    lying = {b"content-type": b"image/svg+xml", b"lance-encoding:blob": b"true"}
    blob = pa.field("photo", pa.large_binary(), metadata=lying)
    schema = pa.schema([pa.field("id", pa.int64()), blob])
    table = pa.table([ids, pa.array(PICTURES, pa.large_binary())], schema)
    for version in ("2.0", "2.1", "2.2"):
        where = str(root / f"blobs{version.replace('.', '')}.lance")
        lance.write_dataset(table, where, data_storage_version=version)
    stable = str(root / "stable.lance")
    lance.write_dataset(table.slice(0, 1), stable, enable_stable_row_ids=True)
    lance.write_dataset(table.slice(1), stable, mode="append")
    catalog.create_table("plain", pa.table({"id": ids, "photo": pa.array(PICTURES, pa.binary())}))
    secret = root / "secret.png"
    secret.write_bytes(png())
    outside = pa.table(
        [pa.array([0]), lance.blob_array([f"file://{secret}"])],
        schema=pa.schema([pa.field("id", pa.int64()), lance.blob_field("photo")]),
    )
    lance.write_dataset(
        outside,
        str(root / "outside.lance"),
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )
    long = {
        "text": ["\N{EURO SIGN}" * 30_000],
        "parts": [[{"n": 1}, {"n": 2}]],
        "vector": pa.array([[0.25] * 40], pa.list_(pa.float32(), 40)),
        "none": pa.array([None], pa.string()),
    }
    catalog.create_table("long", pa.table(long))
    return catalog


@pytest.fixture(scope="module")
def site(lake):
    with Site(lake) as found:
        yield found


@pytest.mark.parametrize("name", ["plain", "blobs20", "blobs21", "blobs22", "stable"])
def test_pictures_of_binary_and_blob_columns_are_shown(site, name):
    view = site.json(f"tables/{name}/rows")
    first, null, empty, svg, text = [row["cells"][1] for row in view["rows"]]
    assert first["media_type"] == "image/png"
    assert f"version={view['version']}" in first["image"]
    assert null == {"kind": "null"}
    assert (empty.get("size_bytes"), svg["size_bytes"], text["size_bytes"]) == (0, len(SVG), 12000)
    assert "image" not in svg
    assert "image" not in text
    picture = site.get(first["image"])
    assert picture.content == PICTURES[0]
    assert picture.headers["content-type"] == "image/png"
    assert picture.headers["x-content-type-options"] == "nosniff"
    assert picture.headers["content-security-policy"] == "default-src 'none'; sandbox"
    page = site.page(f"tables/{name}/rows")
    assert page.count("<img src=") == page.count('loading="lazy"') + 1  # the mark of the pages
    assert 'alt="PNG, ' in page
    dump = site.json(text["href"])["part"]
    assert dump["lines"][0]["letters"] == "plain plain plai"
    assert dump["end"] == 4096


@pytest.mark.parametrize("row", ["1", "2", "3", "4"])
def test_what_is_no_picture_is_not_given_out_as_one(site, row):
    for name in ("plain", "blobs20", "blobs22"):
        answer = site.get(f"tables/{name}/image?column=photo&row={row}")
        assert answer.status_code == 400
        assert b"svg xmlns" not in answer.content


def test_a_blob_elsewhere_is_never_fetched(site):
    view = site.json("tables/outside/rows")
    [found] = [row["cells"][1] for row in view["rows"]]
    assert found["note"].startswith("lies elsewhere: file:///")
    assert "image" not in found
    assert "href" not in found
    for page in ("image", "cell"):
        answer = site.get(f"tables/outside/{page}?column=photo&row=0")
        assert answer.status_code == 400
        assert "lies elsewhere" in text_of(answer.text)


def test_a_picture_that_is_too_large_is_not_sent(site, monkeypatch):
    monkeypatch.setattr("mooring.server.ui.rows.cells.LARGEST_BYTES", 10)
    monkeypatch.setattr("mooring.server.ui.rows.cell_page.LARGEST_BYTES", 10)
    for name in ("plain", "blobs22"):
        found = site.json(f"tables/{name}/rows")["rows"][0]["cells"][1]
        assert "not shown" in found["note"]
        assert "image" not in found
        assert site.get(f"tables/{name}/image?column=photo&row=0").status_code == 400
        assert site.json(f"tables/{name}/cell?column=photo&row=0")["image"] == ""


def test_a_picture_stays_that_of_its_version(tmp_path):
    catalog = mooring.connect(str(tmp_path))
    table = catalog.create_table("t", pa.table({"photo": [png(2)]}))
    with Site(catalog) as site:
        [row] = site.json("tables/t/rows")["rows"]
        table.insert(pa.table({"photo": [png(3)]}), overwrite=True)
        assert site.get(row["cells"][0]["image"]).content == png(2)


def test_one_value_is_read_a_part_at_a_time(site):
    first = site.json("tables/long/cell?column=text&row=0")
    assert (first["size"], first["part"]["begin"], first["part"]["end"]) == (90_000, 0, 65_535)
    rest = site.json(first["next_href"])
    assert set(first["part"]["text"] + rest["part"]["text"]) == {"\N{EURO SIGN}"}
    assert (rest["part"]["end"], rest["next_href"]) == (90_000, "")
    assert site.json(rest["before_href"])["part"]["begin"] == 0
    assert "65,536\N{EN DASH}90,000 of 90,000 bytes" in text_of(site.page(first["next_href"]))
    assert site.json("tables/long/cell?column=text&row=0&from=999999999")["part"]["text"]


def test_nested_values_and_vectors_are_written_whole(site):
    parts = site.json("tables/long/cell?column=parts&row=0")
    assert json.loads(parts["part"]["text"]) == [{"n": 1}, {"n": 2}]
    vector = site.json("tables/long/cell?column=vector&row=0")
    assert json.loads(vector["part"]["text"]) == [0.25] * 40
    assert "vector of 40 numbers" in site.page("tables/long/cell?column=vector&row=0")
    assert "This value is null" in site.page("tables/long/cell?column=none&row=0")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("column=text&row=7", 404),
        ("column=nosuch&row=0", 404),
        ("column=text&row=0&version=9", 404),
        ("column=text", 400),
        ("row=0", 400),
        ("column=text&row=0%20OR%201=1", 400),
    ],
)
def test_an_address_of_no_value_says_so(site, query, status):
    assert site.get(f"tables/long/cell?{query}").status_code == status
    assert site.get(f"tables/long/image?{query}").status_code == status


def test_rows_like_one_are_the_nearest_to_its_vector(tmp_path):
    catalog = mooring.connect(str(tmp_path))
    vectors = pa.array([[0.0, 0.0], [5.0, 5.0], [1.0, 0.0], None], pa.list_(pa.float32(), 2))
    catalog.create_table("t", pa.table({"id": [0, 1, 2, 3], "v": vectors}))
    with Site(catalog) as site:
        first = site.json("tables/t/rows")["rows"][0]["cells"][1]
        found = site.json(first["like_href"])
        assert [row["cells"][1]["value"] for row in found["rows"]][:3] == [0, 2, 1]
        assert [row["cells"][0]["value"] for row in found["rows"]][:3] == [0.0, 1.0, 50.0]
        assert "nearest" in site.page(first["like_href"])
        assert "has no vector" in site.json("tables/t/rows?like=3&by=v")["error"]
        assert "has no vector" in site.json("tables/t/rows?like=3&by=id")["error"]
        assert "nosuch" in site.json("tables/t/rows?like=0&by=nosuch")["error"]


def test_only_those_who_may_read_a_table_see_its_values(tmp_path):
    catalog = mooring.connect(f"metastore+{tmp_path}")
    for namespace in ("open", "shut"):
        catalog.create_namespace(namespace)
        catalog.create_table(f"{namespace}$t", pa.table({"photo": [png()]}))
    ben = Client.of("ben", "pass", Grant(Role.READER, "default", ObjectId(("open",))))
    with Site(catalog, ServerSettings(clients=(ben,)), token="ben:pass") as site:
        for page in ("rows", "cell?column=photo&row=0", "image?column=photo&row=0"):
            assert site.get(f"tables/open$t/{page}").status_code == 200
            assert site.get(f"tables/shut$t/{page}").status_code in {403, 404}


def test_a_table_that_names_files_of_another_leads_nobody_there(tmp_path):
    catalog = mooring.connect(f"metastore+{tmp_path / 'lake'}")
    for namespace in ("open", "shut"):
        catalog.create_namespace(namespace)
        catalog.create_table(f"{namespace}$t", pa.table({"photo": [png()]}))
    own, treasure = (catalog.describe_table(one).location for one in ("open$t", "shut$t"))
    lance.dataset(treasure).shallow_clone(str(tmp_path / "clone"), 1)
    (clone,) = (tmp_path / "clone" / "_versions").glob("*.manifest")
    for old in (Path(own) / "_versions").glob("*.manifest"):
        shutil.copyfile(clone, old)
    ben = Client.of("ben", "pass", Grant(Role.READER, "default", ObjectId(("open",))))
    ada = Client.of("ada", "pass", Grant(Role.READER))
    with Site(catalog, ServerSettings(clients=(ben, ada)), token="ben:pass") as site:
        for page in ("overview", "indexes", "rows", "cell?column=photo&row=0"):
            assert site.get(f"tables/open$t/{page}").status_code == 403
        assert site.get("tables/open$t/image?column=photo&row=0").status_code == 403
        # Neither lists nor the search tell what it knows from there, whoever has opened it.
        site.log_in("ada:pass")
        assert "photo" in site.page("tables/open$t/overview")
        wait_until(lambda: "files of other tables" in site.page("namespaces/open/browse"))
        site.log_in("ben:pass")
        assert site.json("namespaces/open/browse")["tables"][0]["columns"] is None
        assert site.json("search?q=photo")["hits"] == []
