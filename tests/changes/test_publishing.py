"""A published table equals the change table at each position, and every position lands once.

"One Lance version per published position, exactly once, resumable".
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import mooring
from mooring.changes import (
    ChangeTable,
    Vector,
    create_change_table,
    publications,
    publish,
)
from mooring.changes.compaction import compact
from mooring.changes.compaction_policy import CompactionPolicy
from mooring.changes.publication import forget_publication, saved_publications
from mooring.changes.publication_status import publication_status
from mooring.changes.publishing import plan_publication
from mooring.changes.replacement import truncate
from mooring.changes.tidying import tidy
from mooring.errors import (
    ConcurrentModificationError,
    ConflictError,
    InvalidInputError,
    InvalidTableStateError,
    MooringError,
)
from mooring.jobs.runner import Threads
from mooring.jobs.writing import write_parts
from mooring.tables import upserts
from tests.changes.model import (
    KEYS,
    ORDER,
    SCHEMA,
    Model,
    canonical,
    has_key,
    random_batch,
    to_table,
)

ALWAYS = CompactionPolicy(deltas=1, level=2)
POINTS = pa.schema(
    [("id", pa.int64()), ("x", pa.float32()), ("y", pa.float32()), ("word", pa.string())]
)


@pytest.fixture
def lake(tmp_path):
    catalog = mooring.connect(f"metastore+{tmp_path / 'lake'}", author="ada")
    catalog.create_namespace("shop")
    return catalog


@pytest.fixture
def points(lake):
    """A table of 40 points whose key is their id."""
    table = create_change_table(lake, "shop$points", POINTS, keys=["id"], buckets=4)
    table.upsert([point(number) for number in range(40)])
    return table


def point(number, **others):
    return {"id": number, "x": float(number), "y": 0.0, "word": f"w{number}", **others}


def rows_of(catalog, name="shop$out", version=None, columns=None):
    found = catalog.table(name).to_lance(version).to_table(columns=columns)
    return sorted(found.to_pylist(), key=repr)


def merged(table, position=None, columns=None):
    return sorted(table.to_arrow(position=position, columns=columns).to_pylist(), key=repr)


# -- equal to the change table ---------------------------------------------------------------------


@pytest.mark.parametrize(("target", "with_order"), [("metastore", False), ("directory", True)])
def test_every_published_position_equals_the_model(lake, tmp_path, target, with_order):
    schema = SCHEMA.append(pa.field(ORDER, pa.int64())) if with_order else SCHEMA
    order = ORDER if with_order else None
    table = create_change_table(
        lake,
        "shop$orders",
        schema,
        keys=KEYS,
        order=order,
        partition_by=["month(at)"],
        buckets=3,
    )
    other = None
    if target == "directory":
        other = mooring.connect(tmp_path / "directory", dir_listing_enabled=False)
        other.create_namespace("shop")
    model, seen = Model(columns=tuple(schema.names), order=order), {}
    random_ = random.Random(11)
    while table.position < 20:
        type_, rows = random_batch(random_, order=with_order)
        rows = [row for row in rows if has_key(row)]
        if not rows:
            continue
        table._write(to_table(rows, schema), type_, None, None)
        model.apply(type_, rows)
        if table.position % 4 == 0:
            report = publish(table, "shop$out", catalog=other)
            assert (report.position, report.is_new) == (table.position, True)
            seen[report.position] = (report.version, model.rows())
        if table.position in {9, 14}:
            assert compact(table, ALWAYS).rounds
    made = {one.position: one.version for one in publications(table)}
    assert made == {position: version for position, (version, _) in seen.items()}
    for version, rows in seen.values():
        found = (other or lake).table("shop$out").to_lance(version).to_table()
        assert canonical(found.to_pylist()) == rows


def test_only_buckets_that_changed_are_looked_at_and_other_rows_stay(points, lake):
    first = publish(points, "shop$out")
    points.upsert([point(7, word="new")])
    points.delete([{"id": 8}])
    second = publish(points)
    assert (first.action, first.buckets, first.rows_written) == ("create", 4, 40)
    assert (second.action, second.rows_written, second.rows_deleted) == ("update", 1, 2)
    assert second.buckets <= 2 < second.buckets_in_all == 4
    assert rows_of(lake) == merged(points)
    assert rows_of(lake, version=first.version) == merged(points, 1)


def test_all_rows_of_a_key_are_replaced_also_where_the_key_has_nulls(lake):
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("n", pa.int64())])
    table = create_change_table(lake, "shop$t", schema, keys=["a", "b"])
    table.append([{"a": 1, "b": None, "n": n} for n in range(3)])
    table.append([{"a": 1, "b": "x", "n": 9}, {"a": None, "b": "x", "n": 10}])
    publish(table, "shop$out")
    table.upsert([{"a": 1, "b": None, "n": 7}])
    table.append([{"a": None, "b": "x", "n": 11}])
    publish(table)
    assert rows_of(lake) == merged(table)
    assert len(rows_of(lake)) == 4


def test_changes_that_cancel_out_and_runs_without_rows_are_published_too(points, lake):
    publish(points, "shop$out")
    points.append([], run="nothing came")
    report = publish(points)
    assert (report.position, report.rows, report.rows_written) == (2, 40, 0)
    points.upsert([point(99)])
    points.delete([{"id": 99}])
    report = publish(points)
    assert (report.position, report.rows_written, report.rows_deleted) == (4, 0, 0)
    assert [one.position for one in publications(points)] == [4, 2, 1]
    assert rows_of(lake) == merged(points)


def test_rows_of_a_table_without_keys_are_appended_until_they_are_replaced(lake):
    table = create_change_table(lake, "shop$log", pa.schema([("n", pa.int64())]))
    table.append([{"n": 1}])
    publish(table, "shop$out")
    table.append([{"n": 2}])
    assert publish(table).action == "append"
    truncate(table)
    table.append([{"n": 3}])
    report = publish(table)
    assert (report.action, report.why) == ("overwrite", "rows were replaced after position 2")
    assert rows_of(lake) == [{"n": 3}]
    table.append([{"n": 4}])
    assert publish(table).action == "append"
    assert rows_of(lake) == [{"n": 3}, {"n": 4}]


def test_a_truncated_table_with_keys_is_written_anew(points, lake):
    publish(points, "shop$out")
    truncate(points)
    points.upsert([point(3)])
    assert compact(points, ALWAYS).rounds
    tidy(points, keep=1)
    report = publish(points)
    assert (report.action, report.rows) == ("overwrite", 1)
    assert rows_of(lake) == merged(points)


def test_after_a_tidy_all_rows_are_written_anew(points, lake):
    publish(points, "shop$out")
    points.delete([{"id": 1}])
    points.upsert([point(2, word="new")])
    assert compact(points, ALWAYS).rounds
    tidy(points, keep=3)
    report = publish(points)
    assert (report.action, report.why) == ("overwrite", "changes before position 3 are tidied away")
    assert rows_of(lake) == merged(points)


def test_a_position_is_published_and_an_older_one_only_in_full(points, lake):
    points.delete([{"id": 1}])
    points.delete([{"id": 2}])
    assert publish(points, "shop$out", position=2).rows == 39
    assert publish(points).rows == 38
    older = publish(points, position=1)
    assert (older.is_new, older.position, older.rows) == (False, 3, 38)
    again = publish(points, position=1, full=True)
    assert (again.action, again.position, again.rows) == ("overwrite", 1, 40)
    assert publish(points).action == "update"
    assert rows_of(lake) == merged(points)


# -- columns ---------------------------------------------------------------------------------------


def test_columns_are_chosen_and_renamed_and_other_columns_overwrite(points, lake):
    publish(points, "shop$out", columns=["id as key", "word"])
    points.upsert([point(1, word="new")])
    publish(points)
    expected = [{"key": row["id"], "word": row["word"]} for row in merged(points)]
    assert rows_of(lake) == sorted(expected, key=repr)
    report = publish(points, "shop$out", columns=["id", "word"])
    assert (report.action, report.position) == ("overwrite", 2)
    assert rows_of(lake) == merged(points, columns=["id", "word"])


def test_a_column_that_is_added_renamed_or_widened_overwrites(points, lake):
    publish(points, "shop$out")
    points.add_columns([pa.field("n", pa.int32())], {"n": 5})
    points.rename_column("word", "text")
    points.widen_column("x", pa.float64())
    assert publish(points).action == "overwrite"
    points.upsert([{"id": 1, "n": 6}])
    assert publish(points).action == "update"
    assert rows_of(lake) == merged(points)


def test_a_widened_key_is_found_again(lake):
    schema = pa.schema([("id", pa.int32()), ("n", pa.int64())])
    table = create_change_table(lake, "shop$t", schema, keys=["id"])
    table.upsert([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    table.widen_column("id", pa.int64())
    publish(table, "shop$out")
    table.upsert([{"id": 2, "n": 3}, {"id": 2**40, "n": 4}])
    assert publish(table).action == "update"
    assert sorted(row["n"] for row in rows_of(lake)) == [1, 3, 4]
    assert rows_of(lake) == merged(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["x"]}, "lack 'id' of its merge keys"),
        ({"columns": ["id", "z"]}, "has no column 'z'"),
        ({"columns": ["id", "x as id"]}, "'id' would be published twice"),
        ({"vector": "v=word"}, "is string, and vector 'v' takes arrays of numbers"),
        ({"vector": "v=x,word"}, "takes numbers"),
        ({"vector": "x=x,y"}, "'x' would be published twice"),
        ({"vector": "v=no_such_module:f"}, "there is no module 'no_such_module'"),
        ({"vector": "v"}, "is no vector column"),
        ({"indexes": ["z:BTREE"]}, "without a column 'z'"),
        ({"indexes": ["id:TREE"]}, "is not a type of index"),
        ({"indexes": ["word:IVF_PQ"]}, "takes no index of kind IVF_PQ"),
        ({"indexes": ["id"]}, "is no index"),
        ({"position": 9}, "has no position 9"),
    ],
)
def test_bad_input_is_told_and_nothing_is_made(points, lake, options, message):
    with pytest.raises(MooringError, match=message):
        publish(points, "shop$out", **options)
    assert not lake.table_exists("shop$out")
    assert saved_publications(points) == []


# -- vectors and indexes ---------------------------------------------------------------------------

COUNTING = """
import numpy as np
def embed(batch):
    with open({path!r}, "a") as told:
        told.write("".join(f"{{one}}\\n" for one in batch["id"].to_pylist()))
    return np.stack([batch["x"].to_numpy(), batch["y"].to_numpy()], axis=1)
"""


def test_vectors_of_a_function_are_computed_for_changed_rows_only_and_searched(
    points, lake, tmp_path
):
    told, file = tmp_path / "told", tmp_path / "embedding.py"
    file.write_text(COUNTING.format(path=str(told)))
    points.upsert([point(number) for number in range(300)])
    indexes = ["v:IVF_FLAT:num_partitions=1", "id:BTREE", "word:FTS"]
    first = publish(points, "shop$out", vector=f"v={file}:embed", indexes=indexes)
    assert [str(one.state) for one in first.indexes] == ["built"] * 3
    assert lake.table("shop$out").to_lance().schema.field("v").type == pa.list_(pa.float32(), 2)
    told.unlink()
    file.unlink()  # its text is kept with the publication
    points.upsert([point(5, x=1000.0, word="needle"), point(500, x=2000.0)])
    points.delete([{"id": 100}])
    second = publish(points)
    assert sorted(map(int, told.read_text().split())) == [5, 500]
    assert [str(one.state) for one in second.indexes] == ["extended"] * 3
    table = lake.table("shop$out")

    def nearest(x):
        found = table.query(["id"], vector=[x, 0.0], vector_column="v", k=1).read_all()
        return found["id"].to_pylist()

    assert nearest(1001.0) == [5]
    assert nearest(1990.0) == [500]
    assert nearest(5.1) != [5]
    assert nearest(100.1) == [101]
    assert table.query(["id"], text="needle").read_all()["id"].to_pylist() == [5]
    assert table.query(["id"], text="w100").read_all().num_rows == 0
    assert {index.rows_unindexed for index in table.indexes.list()} == {0}
    assert publish(points).version == second.version  # indexes make versions of their own


def test_vectors_of_an_array_column_and_of_several_numbers(lake):
    schema = pa.schema([("id", pa.int64()), ("e", pa.list_(pa.float64())), ("n", pa.int64())])
    table = create_change_table(lake, "shop$t", schema, keys=["id"])
    table.upsert([{"id": 1, "e": None, "n": 4}, {"id": 2, "e": [1.0, 2.0], "n": None}])
    publish(table, "shop$arrays", vector=Vector("e", columns=["e"]))
    publish(table, "shop$numbers", vector=Vector("v", columns=["id", "n"]), columns=["id"])
    table.upsert([{"id": 1, "e": [3.0, 4.0]}])
    for one in ("shop$arrays", "shop$numbers"):
        publish(table, one)
    arrays = lake.table("shop$arrays").to_lance()
    assert arrays.schema.field("e").type == pa.list_(pa.float64(), 2)
    assert rows_of(lake, "shop$arrays", columns=["id", "e"]) == [
        {"id": 1, "e": [3.0, 4.0]},
        {"id": 2, "e": [1.0, 2.0]},
    ]
    assert rows_of(lake, "shop$numbers") == [{"id": 1, "v": [1.0, 4.0]}, {"id": 2, "v": None}]
    table.upsert([{"id": 3, "e": [1.0]}])
    with pytest.raises(InvalidInputError, match="has lengths of 1: all of a column have one"):
        publish(table, "shop$arrays")
    assert arrays.latest_version == 2


def test_an_empty_table_needs_the_length_of_its_vectors(lake):
    table = create_change_table(lake, "shop$t", POINTS, keys=["id"])
    schema = pa.schema([("id", pa.int64()), ("e", pa.list_(pa.float32()))])
    empty = create_change_table(lake, "shop$e", schema, keys=["id"])
    assert publish(table, "shop$out", vector="v=x,y").rows == 0
    with pytest.raises(InvalidInputError, match="how long the vectors 'v' are"):
        publish(empty, "shop$other", vector="v=e")
    publish(empty, "shop$other", vector="v[3]=e")
    empty.upsert([{"id": 1, "e": [1.0, 2.0, 3.0]}])
    assert publish(empty).rows_written == 1


def test_indexes_wait_for_vectors_and_come_back_after_an_overwrite(points, lake):
    states = publish(points, "shop$out", vector="v=x,y", indexes=["v:IVF_PQ", "id:BTREE"]).indexes
    assert [str(one.state) for one in states] == ["waiting", "built"]
    points.upsert([point(number) for number in range(300)])
    states = publish(points).indexes
    assert [str(one.state) for one in states] == ["built", "extended"]
    states = publish(points, full=True).indexes
    assert [str(one.state) for one in states] == ["built", "built"]
    assert [one.name for one in lake.table("shop$out").indexes.list()] == ["id_btree", "v_ivf_pq"]


# -- exactly once ----------------------------------------------------------------------------------


class Crash(BaseException):
    """As if the process ended here."""


def crashing(monkeypatch, *, after):
    """Let the next commit of a publication be the last thing that happens."""
    real = upserts.commit

    def commit(*args, **kwargs):
        monkeypatch.setattr(upserts, "commit", real)
        if after:
            real(*args, **kwargs)
        raise Crash

    monkeypatch.setattr(upserts, "commit", commit)


@pytest.mark.parametrize("after", [False, True])
def test_a_publication_that_was_killed_is_repeated_and_lands_once(points, lake, monkeypatch, after):
    publish(points, "shop$out", indexes=["id:BTREE"])
    points.upsert([point(1, word="new"), point(77)])
    crashing(monkeypatch, after=after)
    with pytest.raises(Crash):
        publish(points)
    report = publish(points)
    assert report.is_new is not after
    assert [one.position for one in publications(points)] == [2, 1]
    assert rows_of(lake) == merged(points)
    assert lake.table("shop$out").indexes.list()[0].rows_unindexed == 0
    assert publish(points).action == "nothing"


def test_a_first_publication_that_was_killed_after_its_commit_is_found_done(
    points, lake, monkeypatch
):
    def write(*args, **kwargs):
        write_parts(*args, **kwargs)
        raise Crash

    monkeypatch.setattr("mooring.changes.publishing.write_parts", write)
    with pytest.raises(Crash):
        publish(points, "shop$out", columns=["id", "word"])
    monkeypatch.undo()
    report = publish(points, "shop$out", columns=["id", "word"])
    assert (report.is_new, report.version) == (False, 1)
    assert publish(points).action == "nothing"  # it is kept now
    assert rows_of(lake) == merged(points, columns=["id", "word"])


def test_of_two_publishers_one_lands_and_the_other_finds_it_done(points, lake):
    def race(_):
        return publish(ChangeTable(lake, "shop$points"), "shop$out", runner=Threads(1))

    for round_ in range(4):
        with ThreadPoolExecutor(2) as pool:
            reports = list(pool.map(race, range(2)))
        assert sorted(one.is_new for one in reports) == [False, True]
        assert reports[0].version == reports[1].version
        assert rows_of(lake) == merged(points)
        points.upsert([point(round_, word=f"round {round_}")])
    assert [one.position for one in publications(points)] == [4, 3, 2, 1]


def test_a_publisher_that_is_overtaken_finds_it_done(points, lake, monkeypatch):
    publish(points, "shop$out")
    points.upsert([point(1, word="new")])
    real, inner = upserts.commit, []

    def commit(*args, **kwargs):
        monkeypatch.setattr(upserts, "commit", real)
        points.upsert([point(2, word="newer")])
        inner.append(publish(points))
        return real(*args, **kwargs)

    monkeypatch.setattr(upserts, "commit", commit)
    report = publish(points)
    assert (inner[0].is_new, inner[0].position) == (True, 3)
    assert (report.is_new, report.position, report.version) == (False, 3, inner[0].version)
    assert rows_of(lake) == merged(points)


def test_a_publisher_with_other_columns_is_told_that_it_was_overtaken(points, monkeypatch):
    publish(points, "shop$out")
    points.upsert([point(1, word="new")])
    real = upserts.commit

    def commit(*args, **kwargs):
        monkeypatch.setattr(upserts, "commit", real)
        publish(points, "shop$out", columns=["id", "word"])
        return real(*args, **kwargs)

    monkeypatch.setattr(upserts, "commit", commit)
    with pytest.raises(ConcurrentModificationError, match="other columns or vectors meanwhile"):
        publish(points)


def test_a_compaction_of_the_lance_table_meanwhile_is_no_reason_to_fail(points, lake, monkeypatch):
    publish(points, "shop$out")
    for number in range(3):
        points.upsert([point(number, word="new")])
        publish(points)
    points.upsert([point(1, word="newest")])
    real = upserts.commit

    def commit(*args, **kwargs):
        monkeypatch.setattr(upserts, "commit", real)
        lake.table("shop$out").compact()
        return real(*args, **kwargs)

    monkeypatch.setattr(upserts, "commit", commit)
    assert publish(points).is_new
    assert rows_of(lake) == merged(points)


# -- other hands -----------------------------------------------------------------------------------


def foreign_rows(lake, name="shop$out"):
    lake.table(name).insert(lake.table(name).to_lance().to_table(limit=1))


def test_rows_of_somebody_else_are_noticed(points, lake):
    publish(points, "shop$out")
    points.upsert([point(20, word="new")])
    foreign_rows(lake)
    with pytest.raises(InvalidTableStateError, match=r"version 2 \(Append\) was made by somebody"):
        publish(points)
    assert [one.state for one in publication_status(points)] == ["changed"]
    assert publish(points, force=True).rows == 41
    assert publish(points).action == "nothing"
    foreign_rows(lake)
    assert publish(points, full=True).rows == 40
    assert rows_of(lake) == merged(points)


def test_rows_that_come_right_before_the_commit_are_noticed(points, lake, monkeypatch):
    publish(points, "shop$out")
    points.upsert([point(20, word="new")])
    real = upserts.commit

    def commit(*args, **kwargs):
        monkeypatch.setattr(upserts, "commit", real)
        foreign_rows(lake)
        return real(*args, **kwargs)

    monkeypatch.setattr(upserts, "commit", commit)
    with pytest.raises(InvalidTableStateError, match="was made by somebody else"):
        publish(points)
    assert len(publications(points)) == 1


def test_a_table_that_is_no_publication_of_this_one_is_left_alone(points, lake):
    lake.create_table("shop$out", [{"a": 1}])
    with pytest.raises(ConflictError, match="is there, and no publication of"):
        publish(points, "shop$out")
    other = create_change_table(lake, "shop$other", POINTS, keys=["id"])
    publish(other, "shop$taken")
    with pytest.raises(ConflictError, match="was published from another table"):
        publish(points, "shop$taken", force=True)
    with pytest.raises(ConflictError, match="is a change table"):
        publish(points, "shop$other")
    assert publish(points, "shop$out", full=True).action == "overwrite"
    assert rows_of(lake) == merged(points)


def test_the_position_outlives_a_cleanup_of_versions(points, lake):
    publish(points, "shop$out", indexes=["id:BTREE"])
    points.upsert([point(1, word="new")])
    published = publish(points)
    table = lake.table("shop$out")
    table.compact(keep=1)
    assert [entry.version for entry in table.log()] != [published.version]
    report = publish(points)
    assert (report.action, report.version) == ("nothing", published.version)
    points.upsert([point(2, word="newer")])
    assert publish(points).action == "update"
    assert rows_of(lake) == merged(points)
    foreign_rows(lake)
    table.compact(keep=1)
    points.upsert([point(3)])
    with pytest.raises(InvalidTableStateError, match="was made by somebody else"):
        publish(points)


def test_where_versions_went_past_the_catalog_nobody_can_tell(points, lake):
    publish(points, "shop$out")
    table = lake.table("shop$out")
    table.compact()
    table.indexes.create("id")
    table.indexes.create("word")
    table.to_lance().cleanup_old_versions(retain_versions=1)
    points.upsert([point(2, word="new")])
    with pytest.raises(ConflictError, match="no publication"):
        publish(points)
    assert publish(points, full=True).action == "overwrite"
    assert rows_of(lake) == merged(points)


# -- what is kept ----------------------------------------------------------------------------------


def test_settings_are_kept_and_forgotten(points, lake, tmp_path):
    other = mooring.connect(tmp_path / "other")
    with pytest.raises(InvalidInputError, match="is not published yet"):
        publish(points)
    publish(points, "shop$out", columns=["id", "x"], indexes=["id:BTREE"])
    points.rename_column("word", "text")  # changes of the table keep them
    publish(points, "copy", catalog=other)
    with pytest.raises(InvalidInputError, match=r"is published into shop\$out, copy: say which"):
        publish(points)
    points.upsert([{"id": 3, "x": 9.0}])
    states = {one.into: (one.state, one.position) for one in publication_status(points)}
    assert states == {"shop$out": ("behind", 1), "copy": ("behind", 1)}
    assert publish(points, "copy").catalog == str(tmp_path / "other")
    assert publish(points, "shop$out").indexes[0].name == "id_btree"
    assert rows_of(other, "copy") == merged(points)
    assert rows_of(lake) == merged(points, columns=["id", "x"])
    for one in saved_publications(points)[1:]:
        forget_publication(points, one)
    assert publish(points).into == "shop$out"
    assert [one.by for one in publications(points)] == ["ada", "ada"]


def test_a_plan_tells_what_would_happen_and_does_nothing(points, lake):
    plan = plan_publication(points, "shop$out")
    assert (str(plan.action), len(plan.changes), plan.rows) == ("create", 4, 40)
    assert not lake.table_exists("shop$out")
    publish(points, "shop$out")
    points.delete([{"id": 1}])
    plan = plan_publication(points)
    assert (str(plan.action), len(plan.changes), plan.since, plan.rows) == ("update", 1, 1, 1)
    assert len(lake.table("shop$out").log()) == 1


def test_a_table_that_was_moved_goes_on_being_published(points, lake):
    publish(points, "shop$out")
    lake.create_namespace("elsewhere")
    lake.rename_table("shop$points", "elsewhere$points")
    moved = ChangeTable(lake, "elsewhere$points")
    moved.upsert([point(1, word="moved")])
    report = publish(moved, "shop$out")
    assert (report.action, report.rows, report.rows_written) == ("update", 40, 1)


def test_a_row_without_a_column_that_takes_no_nulls_is_published(lake):
    columns = pa.schema([("id", pa.int64()), pa.field("must", pa.int64(), nullable=False)])
    table = create_change_table(lake, "shop$t", columns, keys=["id"])
    table.upsert([{"id": 1, "must": 5}])
    publish(table, "shop$out")
    table.upsert([{"id": 2}])
    assert publish(table).action == "update"
    rows = lake.table("shop$out").to_arrow().sort_by("id")
    assert rows["must"].to_pylist() == [5, None]
