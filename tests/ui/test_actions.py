"""Actions say what will happen, do it, and lead to where it is seen."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

import mooring
from mooring.errors import MooringError
from mooring.identifiers import ObjectId
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from tests.ui.catalogs import COMPAT, KINDS, MANIFEST, METASTORE, NESTED, PLAIN, make, open_kind
from tests.ui.site import Site, text_of


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def lake(tmp_path, kind):
    """A catalog, its pages, and a table's name; tables lie in a namespace where there are any."""
    catalog = open_kind(kind, tmp_path)
    name = "t" if kind == PLAIN else "a$t"
    make(catalog, name)
    with Site(catalog) as site:
        yield catalog, site, name


def _seal(site: Site, path: str) -> str:
    """Return what the form of a page holds."""
    return site.page(path).partition('name="seal" value="')[2].partition('"')[0]


def _notice(site: Site, where: str) -> str:
    return text_of(site.page(where))


def _obstacle(site: Site, path: str) -> str:
    """Return why an action cannot be done: its page says so, has no form, and sends nothing."""
    said = site.json(path)["obstacle"]
    assert said
    page = site.page(path)
    assert said in text_of(page)
    assert 'class="primary"' not in page
    assert 'class="danger"' not in page
    return said


def test_drop_undrop_and_purge(lake):
    catalog, site, name = lake
    table = f"tables/{name}"
    asked = site.json(f"{table}/drop")
    assert "7 days" in " ".join(asked["explanation"])
    where = site.done(f"{table}/drop", ttl="3d")
    assert where.endswith("/browse")
    assert f"Dropped '{name}'. Undrop it from the trash" in _notice(site, where)
    status = catalog.table_status(name)
    assert isinstance(status, SoftDeleted)
    assert status.expires_at_ms - status.deleted_at_ms == 3 * 86_400_000
    where = site.done(f"{table}/undrop")
    assert where.endswith("/overview")
    assert isinstance(catalog.table_status(name), Exists)
    site.done(f"{table}/drop", ttl="never")
    assert catalog.table_status(name).expires_at_ms is None
    assert "There is no way back." in text_of(site.page(f"{table}/purge"))
    assert site.done(f"{table}/purge", typed=name).endswith("/trash")
    assert isinstance(catalog.table_status(name), NotFound)
    assert catalog.list_purgable_tables() == []


def test_purge_needs_the_name_typed_and_keeps_the_table_without(lake):
    catalog, site, name = lake
    catalog.drop_table(name)
    for typed in ("", "other", name.upper()):
        response = site.act(f"tables/{name}/purge", typed=typed)
        assert response.status_code == 400
        assert f"Type '{name}' to confirm: nothing was done" in text_of(response.text)
    assert isinstance(catalog.table_status(name), SoftDeleted)


def test_second_post_is_told_what_is_and_does_nothing(lake):
    catalog, site, name = lake
    seal = _seal(site, f"tables/{name}/drop")
    assert site.post(f"tables/{name}/drop", seal=seal).status_code == 303
    assert site.post(f"tables/{name}/drop", seal=seal).status_code == 404
    catalog.undrop_table(name)
    assert site.post(f"tables/{name}/undrop", seal=seal).status_code == 404
    catalog.drop_table(name)
    catalog.purge_table(name)
    response = site.post(f"tables/{name}/undrop", seal=seal)
    assert response.status_code == 404
    assert "is not in the trash" in text_of(response.text)
    assert site.post(f"tables/{name}/purge", seal=seal, typed=name).status_code == 404
    assert site.post(f"tables/{name}/protect", seal=seal, to="protected").status_code == 404


@pytest.mark.parametrize("kind", [PLAIN, METASTORE], indirect=True)
def test_error_keeps_what_was_typed(lake):
    _, site, name = lake
    response = site.act(f"tables/{name}/drop", ttl="soon<b>")
    assert response.status_code == 400
    assert "is not a duration" in text_of(response.text)
    assert 'value="soon&lt;b&gt;"' in response.text
    assert 'role="alert"' in response.text


def test_protection_is_explained_and_lifted(lake):
    catalog, site, name = lake
    site.done(f"tables/{name}/protect", to="protected")
    with pytest.raises(MooringError, match="protected"):
        catalog.drop_table(name)
    assert "is protected" in _obstacle(site, f"tables/{name}/drop")
    assert site.act(f"tables/{name}/protect", to="").status_code == 400
    asked = site.json(f"tables/{name}/protect")
    assert asked["submit"] == "Allow drops"
    site.done(f"tables/{name}/protect", to=asked["fields"][0]["value"])
    site.done(f"tables/{name}/protect", to="loose")  # twice is the same
    assert site.json(f"tables/{name}/drop")["obstacle"] == ""


@pytest.mark.parametrize("kind", NESTED, indirect=True)
def test_rename_also_to_another_namespace(lake):
    catalog, site, name = lake
    catalog.create_namespace("b")
    assert site.json(f"tables/{name}/rename")["fields"][0]["value"] == name
    where = site.done(f"tables/{name}/rename", new="b$u")
    assert unquote(where).endswith("/tables/b$u/overview")
    assert [str(one) for one in catalog.list_all_tables()] == ["b$u"]
    for new, status in (("b$u", 400), ("", 400), ("c$u", 404), ("b/u", 400)):
        response = site.act("tables/b$u/rename", new=new)
        assert response.status_code == status, text_of(response.text)
    make(catalog, "b$v")
    assert site.act("tables/b$u/rename", new="b$v").status_code == 409


@pytest.mark.parametrize("kind", NESTED, indirect=True)
def test_undrop_to_another_name(lake):
    catalog, site, name = lake
    catalog.drop_table(name)
    make(catalog, name)
    asked = site.json(f"tables/{name}/undrop")
    assert "There is another table 'a$t' now" in " ".join(asked["explanation"])
    assert asked["fields"][0]["value"] == "a$t_restored"
    assert site.act(f"tables/{name}/undrop", new=name).status_code == 409
    where = site.done(f"tables/{name}/undrop", new="a$back")
    assert unquote(where).endswith("/tables/a$back/overview")
    assert [str(one) for one in catalog.list_all_tables()] == ["a$back", "a$t"]


@pytest.mark.parametrize("kind", NESTED, indirect=True)
def test_namespaces_from_creation_to_purge(lake):
    catalog, site, _ = lake
    form = {"name": "b", "properties": "owner = ada\r\n\r\nnote=a=b\r\n"}
    assert site.done("create-namespace", **form).endswith("/namespaces/b/browse")
    assert catalog.describe_namespace("b") == {"owner": "ada", "note": "a=b"}
    assert site.act("create-namespace", **form).status_code == 409
    assert site.act("create-namespace", name="").status_code == 400
    response = site.act("create-namespace", name="c", properties="no sense")
    assert response.status_code == 400
    assert "write KEY=VALUE" in text_of(response.text)
    make(catalog, "b$x", "b$y")
    asked = site.json("namespaces/b/drop")
    assert asked["listed"] == ["b$x", "b$y"]
    assert "the 2 tables in it" in " ".join(asked["explanation"])
    response = site.act("namespaces/b/drop")
    assert response.status_code == 400
    assert "is not empty" in text_of(response.text)
    where = site.done("namespaces/b/drop", cascade="yes", ttl="2d")
    assert "Dropped namespace 'b'. Undrop it from the trash" in _notice(site, where)
    assert site.json("namespaces/b/undrop")["listed"] == ["b$x", "b$y"]
    site.done("namespaces/b/undrop")
    assert catalog.list_tables("b") == ["x", "y"]
    assert site.get("namespaces/b/undrop").status_code == 404
    site.done("namespaces/b/drop", cascade="yes")
    assert site.act("namespaces/b/purge", typed="no").status_code == 400
    site.done("namespaces/b/purge", typed="b")
    assert catalog.list_purgable_tables() == []
    assert "no bytes to delete" in _obstacle(site, "namespaces/b/purge")


@pytest.mark.parametrize("kind", NESTED, indirect=True)
def test_table_that_went_with_its_namespace_can_come_back_elsewhere(lake):
    catalog, site, name = lake
    catalog.create_namespace("b")
    catalog.drop_namespace("a", cascade=True)
    asked = site.json(f"tables/{name}/undrop")
    assert "The table went with namespace 'a'" in " ".join(asked["explanation"])
    assert asked["instead"][0][1].endswith("/namespaces/a/undrop")
    assert site.act(f"tables/{name}/undrop", new=name).status_code == 404
    site.done(f"tables/{name}/undrop", new="b$t")
    assert [str(one) for one in catalog.list_all_tables()] == ["b$t"]
    catalog.create_namespace("a")
    assert "another namespace 'a' now" in _obstacle(site, "namespaces/a/undrop")


@pytest.mark.parametrize("kind", NESTED, indirect=True)
def test_what_is_protected_in_or_around_is_told_before(lake):
    catalog, site, name = lake
    catalog.update_table(name, {"mooring.protected": "true"})
    assert "Table 'a$t' is protected" in _obstacle(site, "namespaces/a/drop")
    catalog.update_table(name, {"mooring.protected": None})
    catalog.update_namespace("a", {"mooring.protected": "true"})
    for path in ("namespaces/a/drop", f"tables/{name}/drop"):
        assert "Namespace 'a' is protected" in _obstacle(site, path)


@pytest.mark.parametrize("kind", [COMPAT, METASTORE], indirect=True)
@pytest.mark.parametrize("path", ["namespaces/a", "tables/a$t"])
def test_properties_are_edited_as_lines_and_others_changes_stay(lake, path):
    catalog, site, name = lake
    is_table = path.startswith("tables")
    update = catalog.update_table if is_table else catalog.update_namespace
    one = name if is_table else "a"

    def kept() -> dict[str, str]:
        return dict(
            catalog.describe_table(one).properties if is_table else catalog.describe_namespace(one)
        )

    update(one, {"owner": "ada", "old": "1", "poem": "two\nlines", " edge": "x"})
    fields = {field["name"]: field["value"] for field in site.json(f"{path}/properties")["fields"]}
    assert fields["properties"] == fields["before"] == "old=1\nowner=ada"
    update(one, {"owner": "bob"})  # somebody else, meanwhile
    lines = "old=2\r\nowner=ada\r\nnew=<b>"
    site.done(f"{path}/properties", properties=lines, before=fields["before"])
    assert kept() == {"owner": "bob", "old": "2", "new": "<b>", "poem": "two\nlines", " edge": "x"}
    site.done(f"{path}/properties", properties="owner=ada", before="old=2\nowner=ada\nnew=<b>")
    assert kept() == {"owner": "bob", "poem": "two\nlines", " edge": "x"}
    where = site.done(f"{path}/properties", properties="owner=x", before="owner=x")
    assert "Nothing was changed." in _notice(site, where) or is_table
    for wrong in ("a=1\na=2", "=1", "mooring.protected=perhaps", "mooring.secret=1"):
        response = site.act(f"{path}/properties", properties=wrong, before="")
        assert response.status_code == 400
        assert wrong.splitlines()[0] in response.text


@pytest.mark.parametrize("kind", [COMPAT, METASTORE], indirect=True)
def test_retention_of_a_namespace_is_told(lake):
    catalog, site, name = lake
    catalog.update_namespace("a", {"mooring.retention": "30d"})
    said = " ".join(site.json(f"tables/{name}/drop")["explanation"])
    assert "for 30 days, as namespace 'a' says" in said
    site.done(f"tables/{name}/drop")
    status = catalog.table_status(name)
    assert status.expires_at_ms - status.deleted_at_ms == 30 * 86_400_000


def test_purge_of_all_expired_tells_what_goes(lake):
    catalog, site, name = lake
    assert "Nothing in the trash has expired" in _obstacle(site, "purge-expired")
    kept = f"{name}2"
    make(catalog, kept)
    catalog.drop_table(name, ttl="1ms")
    catalog.drop_table(kept, ttl="1d")
    asked = site.json("purge-expired")
    assert asked["listed"] == [name]
    where = site.done("purge-expired")
    assert "Purged 1 table." in _notice(site, where)
    assert [str(one.id) for one in catalog.list_purgable_tables()] == [kept]


@pytest.mark.parametrize("kind", [PLAIN, METASTORE], indirect=True)
def test_compaction_says_what_it_would_do(lake):
    catalog, site, name = lake
    for _ in range(3):
        catalog.table(name).insert(catalog.table(name).to_arrow())
    asked = site.json(f"tables/{name}/compact")
    assert "Now 4 fragments would become about 1." in asked["explanation"]
    for wrong in ({"target_rows": "many"}, {"older_than": "never"}, {"older_than": "old"}):
        assert site.act(f"tables/{name}/compact", **wrong).status_code == 400
    before = catalog.table(name).count()
    where = site.done(f"tables/{name}/compact", older_than="1ms", target_rows="1000")
    assert where.endswith("/health")
    assert len(catalog.table(name).handle.open().get_fragments()) == 1
    assert catalog.table(name).count() == before
    assert "Now there is nothing to merge." in site.json(f"tables/{name}/compact")["explanation"]


@pytest.mark.parametrize("kind", [PLAIN, METASTORE], indirect=True)
def test_declared_table_has_nothing_to_compact(lake):
    catalog, site, name = lake
    catalog.declare_table(f"{name}2")
    assert "nothing to compact" in _obstacle(site, f"tables/{name}2/compact")


@pytest.mark.parametrize(
    ("kind", "path", "said"),
    [
        (PLAIN, "create-namespace", "has tables only"),
        (PLAIN, "tables/t/rename", "name of a table is where it lies"),
        (PLAIN, "tables/t/properties", "keeps no properties"),
        (PLAIN, "properties", "keeps no properties"),
        (METASTORE, "properties", "keeps no properties"),
        (METASTORE, "namespaces/a/create-namespace", "namespaces of one level"),
    ],
    indirect=["kind"],
)
def test_what_a_kind_cannot_do_is_said_before(lake, path, said):
    catalog, site, name = lake
    assert said in _obstacle(site, path)
    seal = _seal(site, f"tables/{name}/drop")
    response = site.post(path, seal=seal, new="u", name="u", properties="a=b")
    assert response.status_code == 406, text_of(response.text)
    assert [str(one) for one in catalog.list_all_tables()] == [name]


@pytest.mark.parametrize("kind", [PLAIN], indirect=True)
def test_plain_directory_undrops_under_the_old_name_only(lake):
    catalog, site, name = lake
    catalog.drop_table(name)
    assert site.json(f"tables/{name}/undrop")["fields"] == []
    assert site.act(f"tables/{name}/undrop", new="u").status_code == 406
    site.done(f"tables/{name}/undrop")
    assert catalog.list_tables() == [name]


@pytest.mark.parametrize("kind", [COMPAT], indirect=True)
def test_root_table_that_moves_says_so_and_nested_namespaces_are_made(lake):
    catalog, site, _ = lake
    make(catalog, "top")
    said = " ".join(site.json("tables/top/rename")["explanation"])
    assert "move to a directory" in said
    site.done("tables/top/rename", new="a$top")
    assert "a$top" in [str(one) for one in catalog.list_all_tables()]
    site.done("namespaces/a/create-namespace", name="b")
    assert catalog.list_namespaces("a") == ["b"]
    site.done("properties", properties="owner=ada", before="")
    assert catalog.describe_namespace() == {"owner": "ada"}


@pytest.mark.parametrize("kind", [MANIFEST], indirect=True)
def test_catalog_that_is_only_read_says_so_on_every_action(lake, tmp_path):
    catalog, _, name = lake
    make(catalog, "a$gone")
    catalog.drop_table("a$gone")
    with Site(mooring.connect(tmp_path, read_only=True)) as site:
        for path in ("create-namespace", f"tables/{name}/drop", "tables/a$gone/undrop"):
            assert "only read" in _obstacle(site, path)
        assert not site.json("trash")["rows"][0]["undrop"]


def test_there_is_no_action_on_what_is_not_there(lake):
    _, site, name = lake
    paths = [f"tables/{name}x/{one}" for one in ("drop", "rename", "undrop", "purge", "protect")]
    paths += [f"tables/{name}x/{one}" for one in ("properties", "compact")]
    paths += [f"namespaces/nowhere/{one}" for one in ("drop", "undrop", "purge", "properties")]
    paths += ["namespaces/nowhere/create-namespace"]
    for path in paths:
        assert site.get(path).status_code == 404, path


def test_purge_that_lost_to_an_undrop_does_nothing(lake):
    catalog, site, name = lake
    catalog.drop_table(name)
    seal = _seal(site, f"tables/{name}/purge")
    catalog.undrop_table(name)
    response = site.post(f"tables/{name}/purge", seal=seal, typed=name)
    assert response.status_code == 404
    assert "is live" in text_of(response.text)
    assert catalog.table_status(ObjectId.parse(name)) == Exists()


def test_what_was_done_is_told_also_where_names_are_long(tmp_path):
    catalog = open_kind(MANIFEST, tmp_path)
    name = "\N{SPOUTING WHALE}" * 500
    with Site(catalog) as site:
        response = site.act("create-namespace", name=name)
        assert response.status_code == 303
        # Browsers drop a cookie that is longer.
        assert len(response.headers["set-cookie"]) < 4096
        assert "Created namespace" in _notice(site, response.headers["location"])
