"""Going through a catalog: namespaces, their tables, and the tree beside pages."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

import mooring
from mooring.identifiers import ObjectId
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from mooring.server.ui.browse import namespace as namespace_page
from mooring.server.ui.browse import tree as tree_page
from mooring.tables.manifest import TABLE, ManifestRow
from tests.own_server import run_server
from tests.ui.site import Site, text_of

WICKED = '<img src=x onerror="alert(1)">'
ROWS = pa.table({"n": pa.array(range(7), pa.int64())})


def wait_for(ask):
    """Ask again until the answer is something."""
    pause = threading.Event()
    for _ in range(4000):
        answer = ask()
        if answer:
            return answer
        pause.wait(0.005)
    return pytest.fail("it does not come about")


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    catalog = mooring.connect(tmp_path_factory.mktemp("browse") / "lake")
    about = {"description": "What was sold", "owner": "Commerce"}
    catalog.create_namespace("sales", about)
    catalog.create_namespace("sales$eu")
    catalog.create_namespace(WICKED)
    catalog.create_namespace("مبيعات")
    catalog.create_table("sales$orders", ROWS, properties={"description": "Every order"})
    catalog.create_table("sales$small", ROWS.slice(0, 2))
    catalog.declare_table("sales$eu$customers")
    catalog.declare_table(f"{WICKED}$it's 🚀")
    catalog.declare_table("readings")
    catalog.declare_table("gone")
    catalog.drop_table("gone")
    return catalog


@pytest.fixture(scope="module")
def site(lake):
    with Site(lake) as site:
        yield site


def put_tables(catalog, names):
    """Put tables into the manifest at once."""
    rows = [ManifestRow(name, TABLE, f"{number:08x}_x") for number, name in enumerate(names)]
    catalog.backend.manifest.change(lambda draft: [draft.put(row) for row in rows])


# -- a namespace -------------------------------------------------------------------------------


def test_the_root_counts_all_that_lies_below(site):
    view = site.json("browse")
    assert (view["tables_below"], view["namespaces_below"], view["drops_below"]) == (5, 4, 1)
    assert [one["name"] for one in view["namespaces"]] == sorted([WICKED, "sales", "مبيعات"])
    assert [one["name"] for one in view["tables"]] == ["readings"]
    sales = next(one for one in view["namespaces"] if one["name"] == "sales")
    assert (sales["tables"], sales["namespaces"]) == (3, 1)
    assert sales["description"] == "What was sold"


def test_a_namespace_shows_its_properties_tables_and_what_may_be_done(site):
    page = site.page("namespaces/sales/browse")
    said = text_of(page)
    assert "3 tables 1 namespace" in said
    assert "What was sold" in said
    assert "owner Commerce" in said
    for action in ("create-namespace", "properties", "drop"):
        assert f"/namespaces/sales/{action}" in page
    assert site.json("namespaces/sales/browse")["properties"]["owner"] == "Commerce"
    assert page.count("<h1>") == 1


def test_what_is_in_tables_gets_known_and_they_can_be_sorted_by_it(site):
    def ask():
        view = site.json("namespaces/sales/browse", sort="rows", order="desc")
        return view if not view["unknown_tables"] else None

    view = wait_for(ask)
    assert [(one["name"], one["rows"]) for one in view["tables"]] == [("orders", 7), ("small", 2)]
    first = view["tables"][0]
    assert (first["version"], first["columns"], first["description"]) == (1, 1, "Every order")
    assert first["size_bytes"] > 0
    assert first["written_at_ms"] > 0
    up = site.json("namespaces/sales/browse", sort="rows")
    assert [one["name"] for one in up["tables"]] == ["small", "orders"]
    page = site.page("namespaces/sales/browse?sort=rows&order=desc")
    assert 'aria-sort="descending"' in page
    assert "sort=rows&amp;order=asc" in page


def test_a_table_without_data_says_so(site):
    at = "namespaces/sales%24eu/browse"
    table = wait_for(lambda: [one for one in site.json(at)["tables"] if one["is_known"]])[0]
    assert "only declared" in table["failure"]
    assert "only declared" in text_of(site.page(at))


def test_names_can_be_narrowed_down(site):
    view = site.json("namespaces/sales/browse", name="ORD")
    assert [one["name"] for one in view["tables"]] == ["orders"]
    assert view["namespaces"] == []
    assert (view["total_tables"], view["all_tables"]) == (1, 2)
    nothing = text_of(site.page("namespaces/sales/browse?name=%3Cb%3E"))
    assert "has “ <b> ” in its name" in nothing


def test_names_with_markup_are_text(site):
    page = site.page("browse")
    assert WICKED not in page
    assert "&lt;img src=x onerror=&#34;alert(1)&#34;&gt;" in page
    inside = site.page(f"namespaces/{WICKED.replace('<', '%3C').replace(' ', '%20')}/browse")
    assert WICKED not in inside
    assert "it&#39;s 🚀" in inside


def test_an_empty_namespace_says_so(site):
    assert "This namespace is empty." in text_of(site.page("namespaces/مبيعات/browse"))


def test_what_is_not_there_is_not_found(site):
    assert site.get("namespaces/none/browse").status_code == 404
    assert site.get("namespaces/none/tree").status_code == 404
    assert site.get("namespaces/sales%24orders/browse").status_code == 404


@pytest.mark.parametrize("query", ["sort=colour", "order=up", "page=0", "page=x"])
def test_parameters_that_make_no_sense_are_refused(site, query):
    assert site.get(f"browse?{query}").status_code == 400


def test_many_tables_are_shown_page_by_page(tmp_path, monkeypatch):
    monkeypatch.setattr(namespace_page, "PAGE", 10)
    catalog = mooring.connect(tmp_path / "lake")
    catalog.create_namespace("n")
    names = [f"n$t{number:02d}" for number in range(25)]
    put_tables(catalog, names)
    with Site(catalog) as site:
        at, seen = "namespaces/n/browse?sort=name&order=desc", []
        while at:
            view = site.json(at)
            seen += [one["name"] for one in view["tables"]]
            at = view["after"]
        assert seen == [name.removeprefix("n$") for name in reversed(names)]
        assert "Page 2 of 3" in text_of(site.page("namespaces/n/browse?page=2"))
        assert "Names with" in site.page("namespaces/n/browse")
        assert site.json("namespaces/n/browse", page="99")["page"] == 3


@pytest.mark.parametrize("scheme", ["", "metastore+"])
def test_an_empty_catalog_says_how_to_begin(tmp_path, scheme):
    catalog = mooring.connect(f"{scheme}{tmp_path / 'new'}")
    with Site(catalog) as site:
        assert "This catalog is empty" in text_of(site.page("browse"))
        lines = site.json("browse")["beginnings"]
        assert "table create --from=orders.parquet" in lines["CLI"]
        exec(lines["Python"], {})  # noqa: S102  # what people are to copy must work
        table = wait_for(lambda: site.json("browse")["tables_below"])
        assert table == 1
        assert site.json("browse")["beginnings"] == {}


def test_an_empty_namespace_shows_readers_no_lines_that_they_may_not_run(lake):
    settings = ServerSettings(clients=(Client.of("ben", "s", Grant(Role.READER)),))
    with Site(lake, settings, token="ben:s") as site:
        assert site.json("namespaces/مبيعات/browse")["beginnings"] == {}
        assert "This namespace is empty." in text_of(site.page("namespaces/مبيعات/browse"))


def test_the_first_page_has_the_tables_that_were_written_last(site):
    recent = wait_for(lambda: len(found := site.json("browse")["recent"]) == 2 and found)
    assert [one["id"] for one in recent] == [["sales", "small"], ["sales", "orders"]]
    assert [one["rows"] for one in recent] == [2, 7]
    assert "Written last sales$small" in " ".join(text_of(site.page("browse")).split()).replace(
        "Table Rows Size Last written ", ""
    )


def test_a_reader_is_told_of_no_recent_table_that_they_may_not_read(lake):
    grant = Grant(Role.READER, "default", ObjectId(("sales", "orders")))
    settings = ServerSettings(clients=(Client.of("ben", "s", grant),))
    with Site(lake, settings, token="ben:s") as site:
        wait_for(lambda: site.json("namespaces/sales/browse")["tables"][0]["is_known"])
        recent = wait_for(lambda: site.json("browse")["recent"])
        assert [one["id"] for one in recent] == [["sales", "orders"]]


def test_tables_without_data_say_so_in_a_few_words(site):
    def lack():
        return site.json("namespaces/sales$eu/browse")["tables"][0]["lack"]

    assert wait_for(lack) == "no data yet"


# -- kinds of catalogs -------------------------------------------------------------------------


def test_a_plain_listing_has_tables_and_no_namespaces(tmp_path):
    catalog = mooring.connect(tmp_path / "lake", manifest_enabled=False)
    catalog.create_table("t", ROWS)
    with Site(catalog) as site:
        view = site.json("browse")
        assert [one["name"] for one in view["tables"]] == ["t"]
        assert view["actions"] == {}
        assert "t" in text_of(site.page("browse"))


def test_a_metastore_tells_versions_before_anybody_looked(tmp_path):
    catalog = mooring.connect(f"metastore+{tmp_path / 'lake'}")
    catalog.create_namespace("n")
    catalog.create_table("n$t", ROWS)
    with Site(catalog) as site:
        assert site.json("namespaces/n/browse")["tables"][0]["version"] == 1
        assert "Create namespace" in site.json("browse")["actions"]
        assert "Create namespace" not in site.json("namespaces/n/browse")["actions"]


def test_catalogs_of_other_servers_are_shown(lake):
    """One that tells all at once, and one that is walked through and asked for each namespace."""
    with run_server(lake) as base:
        for uri in (f"lance+{base}/lance", f"iceberg+{base}/iceberg"):
            with Site(mooring.connect(uri)) as site:
                assert site.json("browse")["tables_below"] == 5
                view = site.json("namespaces/sales/browse")
                assert [one["name"] for one in view["tables"]] == ["orders", "small"]
                assert view["properties"]["owner"] == "Commerce"


# -- the tree ----------------------------------------------------------------------------------


def test_the_tree_leads_to_where_one_is(site):
    page = site.page("namespaces/sales%24eu/browse")
    tree = page[page.index('<details class="tree"') : page.index("</details>")]
    assert text_of(tree).startswith("Namespaces and tables default 5")
    assert 'aria-current="true"><bdi class="name">eu</bdi>' in tree
    assert "customers" in tree
    assert "orders" not in tree
    assert f'data-twin="{site.at}/namespaces/sales/tree.json"' in tree


def test_a_part_of_the_tree_can_be_had_alone(site):
    view = site.json("namespaces/sales/tree")
    found = [(one["name"], one["is_table"]) for one in view["branches"]]
    assert found == [("eu", False), ("orders", True), ("small", True)]
    assert view["branches"][0]["twin"].endswith("/namespaces/sales%24eu/tree.json")
    assert "orders" in text_of(site.page("namespaces/sales/tree"))


def test_of_many_siblings_those_around_are_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(tree_page, "_MOST_TABLES", 4)
    catalog = mooring.connect(tmp_path / "lake")
    catalog.create_namespace("n")
    put_tables(catalog, [f"n$t{number:02d}" for number in range(25)])
    with Site(catalog) as site:
        tree = text_of(site.page("namespaces/n/browse"))
        assert "t00 t01 t02 t03 … 21 more" in tree
        monkeypatch.setattr(tree_page, "_MOST_OPENED", 3)
        assert site.json("namespaces/n/tree")["more"] == 22
    names = [f"t{number:02d}" for number in range(25)]
    assert list(tree_page._around(names, "t12", 4)) == ["t10", "t11", "t12", "t13"]
    assert list(tree_page._around(names, "t24", 4)) == ["t21", "t22", "t23", "t24"]


# -- roles -------------------------------------------------------------------------------------


def client(role, *names):
    grants = [Grant(role, namespace=ObjectId(tuple(name.split("$")))) for name in names]
    return Client.of("reader", "secret", *grants)


def test_who_may_read_a_part_sees_that_and_the_way_there(lake):
    settings = ServerSettings(clients=(client(Role.READER, "sales$eu"),))
    with Site(lake, settings, token="reader:secret") as site:
        root = site.json("browse")
        assert [one["name"] for one in root["namespaces"]] == ["sales"]
        assert root["tables"] == []
        assert (root["tables_below"], root["drops_below"]) == (1, 0)
        way = site.json("namespaces/sales/browse")
        assert way["is_passage"]
        assert way["properties"] is None
        assert way["description"] == ""
        assert [one["name"] for one in way["namespaces"]] == ["eu"]
        assert way["tables"] == []
        said = text_of(site.page("namespaces/sales%24eu/browse"))
        assert "customers" in said
        for hidden in ("orders", "readings", "Commerce", "مبيعات"):
            assert hidden not in said
        assert site.get("namespaces/مبيعات/browse").status_code == 404


def test_buttons_are_there_for_who_may_write(lake):
    settings = ServerSettings(clients=(client(Role.WRITER, "sales"),))
    with Site(lake, settings, token="reader:secret") as site:
        assert site.json("browse")["actions"] == {}
        assert set(site.json("namespaces/sales/browse")["actions"]) == {
            "Create namespace",
            "Properties",
            "Drop",
        }


def test_a_catalog_of_others_says_what_it_is(tmp_path):
    import lance_namespace

    with Site(lance_namespace.connect("dir", {"root": str(tmp_path)})) as site:
        response = site.get("browse")
        assert response.status_code == 406
        assert "Lance's REST protocol" in text_of(response.text)


def test_a_deep_namespace_shows_the_beginning_and_end_of_the_way(tmp_path):
    catalog = mooring.connect(str(tmp_path / "lake"), dir_listing_enabled=False)
    levels = [f"n{number}" for number in range(200)]
    for number in range(len(levels)):
        catalog.create_namespace(levels[: number + 1])
    with Site(catalog) as site:
        page = site.page(f"namespaces/{'$'.join(levels)}/browse")
        assert "… n175" in page  # where the tree begins
        assert '/namespaces/n0/browse"' in page
        assert ">n100<" not in page


@pytest.mark.parametrize("path", ["namespaces/{}/browse", "tables/{}/overview", "tables/{}/drop"])
def test_an_address_of_any_depth_makes_no_page_of_any_size(site, path):
    answer = site.get(path.format("$".join("a" * 3000)))
    assert answer.status_code == 404
    assert len(answer.content) < 400_000
