"""Runs of pipelines and their lineage, as the catalog keeps them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from mooring.changes import create_change_table
from mooring.changes.publication import Publication, save_publication
from mooring.pipelines.expectations import Checked
from mooring.pipelines.history import (
    InputRecord,
    OutputRecord,
    RunRecord,
    StepRecord,
    save_record,
)
from tests.ui.catalogs import COMPAT, METASTORE, make, open_kind
from tests.ui.site import Site, text_of

ATTACK = "<script>alert(1)</script>"


def files(source: str = "orders", name: str = "s3://bucket/orders/*.csv") -> InputRecord:
    return InputRecord(source=source, kind="files", name=name, shown="2 files")


def table(name: str, *, table_id: str = "", until: int = 1) -> InputRecord:
    version = {"table_id": table_id, "after": 0, "position": until}
    return InputRecord(
        source=name.rpartition("$")[2],
        kind="change table",
        name=name,
        shown=f"position {until}",
        version=version,
    )


def output(name: str, rows: int = 10, **more: Any) -> OutputRecord:
    return OutputRecord(
        table=name, change="upsert", source="taxed", rows=rows, position=1, table_id=name, **more
    )


def run(pipeline: str, number: int, **more: Any) -> RunRecord:
    return RunRecord(
        run=f"{pipeline}-{number}",
        pipeline=pipeline,
        fingerprint=f"f{number}",
        started_ms=1_000_000 * number,
        ended_ms=1_000_000 * number + 2500,
        **{"state": "done", "by": "ada", **more},
    )


def keep(catalog, *records: RunRecord) -> None:
    def work(txn) -> None:
        for record in records:
            save_record(txn, record)

    catalog.metastore.run(work)


SHOP = run(
    "shop",
    2,
    parameters={"day": "today"},
    file="/pipelines/shop.yaml",
    attempts=3,
    txn_id="1_x",
    inputs=(files(), table("shop$customers")),
    steps=(
        StepRecord(name="joined", kind="sql", needs=("orders", "customers")),
        StepRecord(name="taxed", kind="python", needs=("joined",)),
    ),
    expectations=(
        Checked(step="joined", name="has_id", on_failure="fail", rows=100, failed=0),
        Checked(
            step="joined", name="is_paid", on_failure="drop", rows=100, failed=7, example="id=3"
        ),
    ),
    outputs=(
        output("shop$orders", 90, published="shop$published version 4", is_created=True),
        OutputRecord(table="shop$bad", change="append", source="joined!0", rows=7, position=1),
    ),
)


@pytest.fixture
def catalog(tmp_path):
    found = open_kind(METASTORE, tmp_path)
    make(found, "shop$published")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    orders = create_change_table(found, "shop$orders", schema, keys=["id"])
    save_publication(orders, Publication(("shop", "published")))
    save_publication(orders, Publication(("copy",), catalog="s3://elsewhere/lake"))
    failed = run(
        "strict",
        3,
        state="failed",
        error=f"rows are not as expected {ATTACK}",
        inputs=(table("shop$orders", table_id="shop$orders"),),
        outputs=(output("shop$gone", 0),),
    )
    report = run(
        "report",
        4,
        inputs=(table("shop$orders", table_id="shop$orders"),),
        outputs=(output("shop$report", 5),),
    )
    keep(found, run("shop", 1, inputs=(files(),), outputs=(output("shop$orders", 1),)), SHOP)
    keep(found, failed, report)
    return found


def test_runs_are_told_the_newest_first(catalog):
    with Site(catalog) as site:
        view = site.json("runs")
        assert [one["run"] for one in view["runs"]] == ["report-4", "strict-3", "shop-2", "shop-1"]
        shop = view["runs"][2]
        assert (shop["took"], shop["rows"], shop["attempts"], shop["share"]) == ("2.5 s", 97, 3, 1)
        assert shop["outputs"][0]["href"].endswith("/tables/shop%24orders/overview")
        assert shop["outputs"][1]["href"] == ""  # it is not there
        page = site.page("runs")
        assert "failed" in text_of(page)
        assert ATTACK not in page
        assert ATTACK in text_of(page)


def test_runs_are_chosen_by_pipeline_table_and_state(catalog):
    with Site(catalog) as site:

        def found(query: str) -> list[str]:
            return [one["run"] for one in site.json(f"runs?{query}")["runs"]]

        assert found("pipeline=shop") == ["shop-2", "shop-1"]
        assert found("state=failed") == ["strict-3"]
        assert found("table=shop$customers") == ["shop-2"]
        assert found("table=shop$orders&state=done") == ["report-4", "shop-2", "shop-1"]
        assert found("pipeline=nobody") == []
        assert "There is no such run" in text_of(site.page("runs?pipeline=nobody"))


def test_runs_come_by_pages(catalog, monkeypatch):
    monkeypatch.setattr("mooring.server.ui.activity.runs._A_PAGE", 3)
    with Site(catalog) as site:
        view = site.json("runs?state=done&page=1")
        assert (view["total"], view["older"]) == (3, "")
        view = site.json("runs")
        assert view["older"].endswith("page=2")
        assert [one["run"] for one in site.json("runs?page=2")["runs"]] == ["shop-1"]
        assert "4 to 4 of 4" in text_of(site.page("runs?page=2"))


def test_a_run_with_all_that_is_kept_of_it(catalog):
    with Site(catalog) as site:
        view = site.json("runs/shop-2/details")
        assert view["parameters"] == {"day": "today"}
        assert [one["source"] for one in view["inputs"]] == ["orders", "customers"]
        assert [one["rows"] for one in view["steps"]] == [100, None]
        assert [(one["passed"], one["tone"]) for one in view["expectations"]] == [
            (100, "good"),
            (93, "warn"),
        ]
        assert [one["source"] for one in view["outputs"]] == ["taxed", "joined (rejected)"]
        assert view["outputs"][0]["published"]["what"] == "version 4"
        assert [one["run"] for one in view["downstream"]] == ["report-4"]
        assert view["txn_href"].endswith("/transactions/1_x/changes")
        page = text_of(site.page("runs/shop-2/details"))
        for said in ("id=3", "/pipelines/shop.yaml", "f2", "93 of 100", "are dropped", "today"):
            assert said in page
        upstream = site.json("runs/report-4/details")["upstream"]
        assert [one["run"] for one in upstream] == ["shop-2", "shop-1"][::-1]


def test_the_steps_of_a_run_are_drawn(catalog):
    with Site(catalog) as site:
        told = site.json("runs/shop-2/details")["told"]
        edges = {(one["source"], one["target"]) for one in told}
        assert edges == {
            ("orders", "joined"),
            ("shop$customers", "joined"),
            ("joined", "taxed"),
            ("taxed", "shop$orders"),
            ("joined", "shop$bad"),
            ("shop$orders", "shop$published"),
        }
        assert "<svg" in site.page("runs/shop-2/details")


def test_a_run_that_failed_says_why(catalog):
    with Site(catalog) as site:
        page = text_of(site.page("runs/strict-3/details"))
        assert "rows are not as expected" in page
        assert "committed together, or not at all" in page


def test_a_run_that_is_not_there(catalog):
    with Site(catalog) as site:
        assert site.get("runs/nobody/details").status_code == 404


def test_a_catalog_without_runs(tmp_path):
    with Site(open_kind(METASTORE, tmp_path)) as site:
        assert "No pipeline ran here yet" in text_of(site.page("runs"))
        assert "No pipeline ran here yet" in text_of(site.page("lineage"))


def test_other_kinds_keep_no_runs_and_say_so(tmp_path):
    with Site(open_kind(COMPAT, tmp_path)) as site:
        for path in ("runs", "lineage"):
            assert "Only a metastore keeps runs" in text_of(site.page(path))
        assert site.get("runs/x/details").status_code == 406


class TestLineage:
    @staticmethod
    def edges(site: Site, query: str = "") -> set[tuple[str, str]]:
        view = site.json(f"lineage?{query}")
        return {(one["source"], one["target"]) for one in view["steps"]}

    def test_leads_from_sources_to_published_tables(self, catalog):
        with Site(catalog) as site:
            assert self.edges(site) == {
                ("orders", "shop"),
                ("shop$customers", "shop"),
                ("shop", "shop$orders"),
                ("shop", "shop$bad"),
                ("shop$orders", "shop$published"),
                ("shop$orders", "copy"),
                ("shop$orders", "strict"),
                ("strict", "shop$gone"),
                ("shop$orders", "report"),
                ("report", "shop$report"),
            }
            view = site.json("lineage")
            kinds = {one["label"]: one["kind"] for one in view["drawing"]["boxes"]}
            assert kinds["published"] == "table"
            assert kinds["copy"] == "outside"
            assert "version 4" in {one["label"] for one in view["drawing"]["lines"]}
            tones = {one["what"]: one["tone"] for one in view["steps"]}
            assert (tones["90 rows"], tones["nothing"]) == ("good", "bad")

    def test_around_a_table(self, catalog):
        with Site(catalog) as site:
            near = self.edges(site, "table=shop$report&depth=2")
            assert near == {("shop$orders", "report"), ("report", "shop$report")}
            assert ("orders", "shop") in self.edges(site, "table=shop$report")
            assert self.edges(site, "table=shop$nothing") == set()
            assert site.get("lineage?depth=0").status_code == 400

    def test_links_to_what_is_there(self, catalog):
        with Site(catalog) as site:
            boxes = {one["title"]: one for one in site.json("lineage")["drawing"]["boxes"]}
            assert boxes["shop$orders"]["href"].endswith("/tables/shop%24orders/overview")
            assert boxes["shop: pipeline"]["href"].endswith("/runs?pipeline=shop")
            gone = boxes["shop$gone, which is not in the catalog"]
            assert (gone["href"], gone["is_gone"]) == ("", True)

    def test_what_comes_from_itself_ends(self, catalog):
        keep(
            catalog,
            run("a", 5, inputs=(table("shop$x"),), outputs=(output("shop$y"),)),
            run("b", 6, inputs=(table("shop$y"),), outputs=(output("shop$x"), output("shop$y"))),
        )
        with Site(catalog) as site:
            view = site.json("lineage?table=shop$x")
            assert any(one["is_back"] for one in view["drawing"]["lines"])

    def test_many_are_cut_and_that_is_told(self, catalog, monkeypatch):
        monkeypatch.setattr("mooring.server.ui.activity.lineage._MOST_NODES", 5)
        with Site(catalog) as site:
            view = site.json("lineage")
            assert len(view["drawing"]["boxes"]) == 5
            assert "The first 5 of" in text_of(site.page("lineage"))

    def test_names_are_cut_and_are_text(self, catalog):
        name = f"shop${ATTACK.replace('/', '')}{'x' * 60}"
        keep(catalog, run("long", 7, inputs=(files(),), outputs=(output(name),)))
        with Site(catalog) as site:
            page = site.page("lineage")
            assert "<script>alert" not in page
            assert name in text_of(page)
            longest = max(len(one["label"]) for one in site.json("lineage")["drawing"]["boxes"])
            assert longest <= 20
