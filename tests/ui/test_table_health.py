"""How a table does: findings, fragments, storage by kind and over time.

Issue: pages for people, health: small files, deletions, unindexed rows, storage by kind over time.
"""

from __future__ import annotations

import pytest

import mooring
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from mooring.server.ui.table.drawing import draw_growth
from mooring.server.ui.table.storage import Growth, growth_of, kind_of_file, stored_kinds
from mooring.upkeep.table_files import list_files
from tests.lakes import FakeClock
from tests.ui.site import Site, text_of


@pytest.fixture
def lake(tmp_path):
    lake = mooring.connect(str(tmp_path / "lake"), author="ada")
    table = lake.create_table("t", [{"n": n} for n in range(200)])
    for n in range(3):
        table.insert([{"n": n}])
    table.indexes.create("n", "BTREE")
    table.insert([{"n": 7}])
    table.delete("n >= 20 AND n < 70")
    return lake


def findings(view):
    return {one["topic"]: one for one in view["findings"]}


def test_findings_say_what_and_what_next(lake):
    with Site(lake) as site:
        found = findings(site.json("tables/t/health"))
        assert found["Small files"]["tone"] == "warn"
        assert found["Small files"]["href"].endswith("/tables/t/compact")
        assert "table compact t" in found["Small files"]["cli"]
        assert "50 rows of 204" in found["Deletions"]["text"]
        assert "n_idx" in found["Unindexed rows"]["text"]
        assert "6 older versions" in found["Old versions"]["text"]
        assert "cleanup" in found["Old versions"]["cli"]
        assert "Compact…" in text_of(site.page("tables/t/health"))


def test_a_table_in_order_has_nothing_to_do(tmp_path):
    lake = mooring.connect(str(tmp_path / "lake"))
    lake.create_table("t", [{"n": 1}])
    with Site(lake) as site:
        view = site.json("tables/t/health")
    assert {one["tone"] for one in view["findings"]} == {"good", ""}
    assert not any(one["cli"] for one in view["findings"])


def test_readers_have_no_button(lake):
    reader = Client.of("ben", "hidden", Grant(Role.READER))
    with Site(lake, ServerSettings(clients=(reader,)), token="ben:hidden") as site:
        assert "/compact" not in site.page("tables/t/health")


def test_fragments_are_counted_by_length(lake):
    with Site(lake) as site:
        fragments = site.json("tables/t/health")["fragments"]
    assert (fragments["fragments"], fragments["shortest"], fragments["longest"]) == (5, 1, 200)
    steps = [(one["label"], one["fragments"]) for one in fragments["steps"]]
    assert steps == [("0 to 9 rows", 4), ("10 to 99 rows", 0), ("100 to 999 rows", 1)]


def test_storage_is_told_by_kind_and_over_time(lake):
    lake.table("t").compact()
    with Site(lake) as site:
        storage = site.json("tables/t/health")["storage"]
        page = site.page("tables/t/health")
    kinds = {one["kind"]: one for one in storage["kinds"]}
    assert {"data", "deletions", "indexes", "manifests", "transactions"} <= set(kinds)
    assert sum(one["size_bytes"] for one in kinds.values()) == storage["size_bytes"]
    growth = storage["growth"]
    assert growth["at_ms"] == sorted(growth["at_ms"])
    assert sum(sizes[-1] for sizes in growth["size_bytes"]) == storage["size_bytes"]
    assert storage["held_bytes"] > 0
    assert "kind-data" in page
    assert 'role="img"' in page


def test_the_page_is_about_the_newest_version(lake):
    with Site(lake) as site:
        assert site.json("tables/t/health?version=1")["is_other"]
        assert "about the newest version" in text_of(site.page("tables/t/health?version=1"))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("data/a.lance", "data"),
        ("data/a/b.blob", "data"),
        ("_deletions/1.arrow", "deletions"),
        ("_indices/u/index.idx", "indexes"),
        ("_versions/1.manifest", "manifests"),
        ("_transactions/1.txn", "transactions"),
        ("_refs/tags/v1.json", "other"),
        ("data", "other"),
        ("tree/dev/data/a.lance", "data"),
        ("tree/a/b/_versions/1.manifest", "manifests"),
    ],
)
def test_a_path_tells_the_kind_of_a_file(path, kind):
    assert kind_of_file(path) == kind


def test_growth_has_no_more_steps_than_can_be_drawn(lake):
    files = list_files(lake.table("t").handle.place)
    growth = growth_of(files, FakeClock().now_ms())
    assert len(growth.at_ms) <= 122
    assert [sizes[-1] for sizes in growth.size_bytes] == [
        one.size_bytes for one in stored_kinds(files)
    ]


def test_areas_lie_on_each_other():
    growth = Growth(
        at_ms=[0, 50, 100], kinds=["data", "indexes"], size_bytes=[[0, 10, 20], [5] * 3]
    )
    drawing = draw_growth(growth)
    assert drawing is not None
    lower, upper = (
        [tuple(map(float, point.split(","))) for point in layer.points.split()]
        for layer in drawing.layers
    )
    assert lower[0] == (drawing.left, drawing.bottom)
    assert max(x for x, _ in upper) == drawing.right
    assert min(y for _, y in lower) > min(y for _, y in upper) >= drawing.top


def test_nothing_is_drawn_of_nothing():
    assert draw_growth(Growth(at_ms=[], kinds=[], size_bytes=[])) is None


def test_a_single_moment_can_be_drawn():
    drawing = draw_growth(Growth(at_ms=[7], kinds=["data"], size_bytes=[[1]]))
    assert drawing is not None
    assert drawing.layers[0].points
