"""The catalog as pages know it: one look for all, kept while it can be, and what tables hold."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

import mooring
from mooring.errors import ServiceUnavailableError, UnsupportedError
from mooring.feed.look import Look, SeenDrop, SeenTable
from mooring.identifiers import ROOT, ObjectId
from mooring.server.app import create_service
from mooring.server.background_settings import BackgroundSettings
from mooring.server.feeds import Feeds
from mooring.server.roles import Grant, Identity, Role
from mooring.server.settings import ServerSettings
from mooring.server.ui.atlas import atlas as atlas_module
from mooring.server.ui.atlas.atlas import Atlas, Atlases
from mooring.server.ui.atlas.finder import Finder, split_words
from mooring.server.ui.atlas.findings import Finding, Findings
from mooring.server.ui.atlas.index import fold
from mooring.server.ui.atlas.picture import Picture
from mooring.server.ui.atlas.sight import Sight
from mooring.server.ui.atlas.surveyor import Surveyor, paths_of, study
from mooring.server.ui.marking import cut_out, mark
from tests.ui.site import wait_until

ROWS = pa.table({"n": pa.array([1, 2, 3], pa.int64()), "point": [{"x": 1.0}, {"x": 2.0}, None]})
LIMIT_S = 20


def one(*names):
    return ObjectId(names)


@pytest.fixture
def lake(tmp_path):
    catalog = mooring.connect(tmp_path / "lake")
    catalog.create_namespace("a", {"owner": "somebody"})
    catalog.create_table("a$t", ROWS)
    return catalog


@pytest.fixture
def atlases(lake):
    """Return what knows a server's catalogs; nothing of it goes on afterwards."""
    service = create_service(lake, ServerSettings())
    found = Atlases(service, Feeds(service))
    yield found
    found.finish()
    service.close()


class Steered:
    """A looker that looks when it is told, or fails."""

    is_decisive = True

    def __init__(self, *looks):
        self.looks = list(looks)
        self.go = threading.Event()
        self.go.set()
        self.begun = threading.Event()
        self.failure = None
        self.count = 0

    def stamp(self):
        if self.failure is not None:
            raise self.failure
        return self.count if len(self.looks) > 1 else "the same"

    def look(self):
        self.begun.set()
        assert self.go.wait(LIMIT_S)
        self.count += 1
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]


@pytest.fixture
def steer(atlases, monkeypatch):
    """Have the atlas of the catalog look through a looker."""

    def steer(looker, **times):
        monkeypatch.setattr(atlas_module, "looker_of", lambda _: looker)
        for name, value in {"_FRESH_S": 0.0, "_REST": 0.0, **times}.items():
            monkeypatch.setattr(atlas_module, name, value)
        return atlases.of("default")

    return steer


def look_at(*tables):
    return Look({ROOT: {}}, {one(name): SeenTable(name) for name in tables})


# -- looking -----------------------------------------------------------------------------------


def test_a_change_of_others_is_seen(atlases, lake, monkeypatch):
    monkeypatch.setattr(atlas_module, "_FRESH_S", 0.0)
    atlas = atlases.of("default")
    assert atlas.picture().tables_in[one("a")] == ["t"]
    lake.create_namespace("b")
    wait_until(lambda: atlas.picture().has_namespace(one("b")))


def test_an_unchanged_catalog_keeps_its_picture(atlases):
    atlas = atlases.of("default")
    first = atlas.picture()
    atlas.refresh()
    assert atlas.picture() is first


def test_pages_show_the_old_picture_while_somebody_looks(steer):
    looker = Steered(look_at("old"), look_at("new"))
    atlas = steer(looker, _PATIENCE_S=0.0)
    old = atlas.picture()
    looker.go.clear()
    looker.begun.clear()
    assert atlas.picture() is old
    assert looker.begun.wait(LIMIT_S)
    assert atlas.picture() is old
    looker.go.set()
    wait_until(lambda: one("new") in atlas.picture().look.tables)


def test_after_a_change_of_our_own_pages_wait_for_it(steer):
    looker = Steered(look_at("old"), look_at("between"), look_at("new"))
    atlas = steer(looker, _PATIENCE_S=0.0, _FRESH_S=3600.0)
    assert one("old") in atlas.picture().look.tables
    atlas.refresh()
    assert one("between") in atlas.picture().look.tables
    atlas.refresh()
    assert one("new") in atlas.picture().look.tables


def test_a_look_from_before_a_change_does_not_count(steer):
    looker = Steered(look_at("old"), look_at("too early"), look_at("new"))
    atlas = steer(looker, _PATIENCE_S=0.0)
    atlas.picture()
    looker.go.clear()
    looker.begun.clear()
    atlas.picture()
    assert looker.begun.wait(LIMIT_S)
    atlas.refresh()
    found = []
    reader = threading.Thread(target=lambda: found.append(atlas.picture()))
    reader.start()
    looker.go.set()
    reader.join(LIMIT_S)
    assert one("new") in found[0].look.tables


def test_where_looking_fails_the_old_picture_stays_and_tells_its_age(steer):
    looker = Steered(look_at("old"), look_at("new"))
    atlas = steer(looker, _AFTER_FAILURE_S=0.0)
    old = atlas.picture()
    assert atlas.trouble is None
    looker.failure = ServiceUnavailableError("the store is away: s3://KEY:SECRET@b")
    atlas.refresh()
    assert atlas.picture() is old
    assert "the store is away" in atlas.trouble.message
    assert "SECRET" not in atlas.trouble.message
    assert atlas.trouble.since_ms > 0
    looker.failure = None
    atlas.refresh()
    assert one("new") in atlas.picture().look.tables
    assert atlas.trouble is None


def test_a_first_look_that_fails_is_told_and_taken_again(steer):
    looker = Steered(look_at("t"))
    looker.failure = ServiceUnavailableError("the store is away")
    atlas = steer(looker)
    with pytest.raises(ServiceUnavailableError, match="the store is away"):
        atlas.picture()
    looker.failure = None
    assert one("t") in atlas.picture().look.tables


def test_a_catalog_of_others_has_no_picture(tmp_path):
    import lance_namespace

    foreign = lance_namespace.connect("dir", {"root": str(tmp_path)})
    service = create_service(foreign, ServerSettings())
    with pytest.raises(UnsupportedError):
        Atlases(service, Feeds(service)).of("default").picture()
    service.close()


# -- what lies where ---------------------------------------------------------------------------


def picture_of(*tables, namespaces=(), drops=()):
    return Picture.of(
        Look(
            {ROOT: {}} | {name: {} for name in namespaces},
            {name: SeenTable() for name in tables},
            [SeenDrop(name, 0) for name in drops],
        ),
        0,
    )


NESTED = picture_of(
    one("r"),
    one("a", "t"),
    one("a", "b", "u"),
    one("a", "b", "v"),
    one("ab", "w"),
    namespaces=[one("a"), one("a", "b"), one("ab")],
    drops=[one("a", "b", "x"), one("y")],
)


def sight_of(*namespaces):
    grants = tuple(Grant(Role.READER, namespace=name) for name in namespaces)
    return Sight.of(NESTED, Identity("reader", grants), "default")


def test_counts_are_of_all_that_lies_below():
    sight = sight_of(ROOT)
    assert (sight.count_tables(), sight.count_namespaces(), sight.count_drops()) == (5, 3, 2)
    assert (sight.count_tables(one("a")), sight.count_namespaces(one("a"))) == (3, 1)
    assert sight.count_drops(one("a")) == 1


def test_who_reads_a_part_sees_what_leads_there():
    sight = sight_of(one("a", "b"))
    assert list(sight.namespaces_in(ROOT)) == ["a"]
    assert list(sight.tables_in(ROOT)) == []
    assert list(sight.tables_in(one("a"))) == []
    assert list(sight.tables_in(one("a", "b"))) == ["u", "v"]
    assert sight.sees(one("a"))
    assert not sight.sees(one("ab"))
    assert (sight.count_tables(), sight.count_namespaces(), sight.count_drops()) == (2, 1, 1)


def test_who_reads_one_table_sees_that_one():
    sight = sight_of(one("a", "t"), one("a", "t"))
    assert list(sight.tables_in(one("a"))) == ["t"]
    assert sight.count_tables() == 1
    assert not sight.reads(one("a"))


def test_overlapping_grants_count_once():
    sight = sight_of(one("a"), one("a", "b"), one("ab"))
    assert sight.count_tables() == 4


# -- what is found -----------------------------------------------------------------------------


def found(text, *, sight=None, findings=None, picture=NESTED, limit=50):
    finder = Finder(findings or Findings())
    everybody = Identity("reader", (Grant(Role.READER),))
    sight = sight or Sight.of(picture, everybody, "default")
    answer = finder.find(sight, split_words(text), limit)
    return [str(hit.id) for hit in answer.objects], answer


def test_better_places_come_first():
    names = ["xorder", "an order", "order", "orders", "other$order_of", "b"]
    tables = [one(*name.split("$")) for name in names]
    findings = Findings()
    seen = SeenTable()
    findings.add(one("b"), Finding(found_at_ms=0, seen=seen, columns="n\nOrder_id"))
    look = Look(
        {ROOT: {}, one("other"): {}, one("p"): {"about": "Order!"}},
        dict.fromkeys(tables, seen),
    )
    names, answer = found("ORDER", findings=findings, picture=Picture.of(look, 0))
    expected = ["order", "orders", "other$order_of", "an order", "xorder", "b", "p"]
    assert names == expected
    assert (answer.total, answer.known_columns, answer.tables) == (7, 1, 6)


def test_all_words_have_to_be_found():
    assert found("b u")[0] == ["a$b$u"]
    assert found("u nowhere")[0] == []
    assert found("")[0] == []


def test_an_identifier_is_found_as_it_is_written():
    assert found("a$b$")[0] == ["a$b$u", "a$b$v"]


def test_letters_of_any_script_are_folded():
    picture = picture_of(one("Straße"), one("ΣΊΣΥΦΟΣ"), one("ТАБЛИЦА"))
    assert found("STRASSE", picture=picture)[0] == ["Straße"]
    assert found("σίσυφος", picture=picture)[0] == ["ΣΊΣΥΦΟΣ"]
    assert found("таблица", picture=picture)[0] == ["ТАБЛИЦА"]


def test_only_what_may_be_read_is_found_and_counted():
    names, answer = found("a", sight=sight_of(one("a", "b")))
    assert names == ["a$b", "a$b$u", "a$b$v"]
    assert (answer.total, answer.tables) == (3, 2)
    assert found("ab", sight=sight_of(one("a")))[0] == []
    assert found("t", sight=sight_of(one("a", "t")))[0] == ["a$t"]


def test_a_table_and_a_namespace_may_have_one_name():
    picture = picture_of(one("x"), one("x", "t"), namespaces=[one("x")])
    findings = Findings()
    findings.add(one("x"), Finding(found_at_ms=0, seen=SeenTable(), columns="secret"))
    names, answer = found("secret", picture=picture, findings=findings)
    assert names == ["x"]
    assert answer.objects[0].is_table
    assert [hit.is_table for hit in found("x", picture=picture)[1].objects] == [True, False, True]


def test_the_total_is_told_beyond_the_limit():
    names, answer = found("a", limit=2)
    assert len(names) == 2
    assert answer.total == 7


def test_findings_are_found_as_they_come_and_go():
    findings, picture = Findings(), picture_of(one("t"), one("u"))
    finder = Finder(findings)
    sight = Sight.of(picture, Identity("r", (Grant(Role.READER),)), "default")

    def find():
        return [hit.id.name for hit in finder.find(sight, ["column"], 9).objects]

    assert find() == []
    for _ in range(3000):  # more than are written down
        findings.add(one("t"), Finding(found_at_ms=0, seen=SeenTable(), columns="Column"))
    assert find() == ["t"]
    findings.keep_only([one("u")])
    assert find() == []


def test_matches_are_marked_where_they_are():
    assert [(p.text, p.is_match) for p in mark("Großstraße", ["strasse"])] == [
        ("Groß", False),
        ("straße", True),
    ]
    assert [p.text for p in mark("abcabc", ["b", "bc"])] == ["a", "bc", "a", "bc"]
    assert mark("abc", []) == mark("abc", ["z"])
    long = cut_out("x" * 500 + "needle" + "y" * 500, ["needle"])
    assert [p.text for p in long if p.is_match] == ["needle"]
    assert sum(len(p.text) for p in long) < 200
    assert fold("É") == fold("e\N{COMBINING ACUTE ACCENT}")


# -- looking into tables -----------------------------------------------------------------------


def test_a_table_is_studied_without_its_rows(lake):
    seen = SeenTable()
    finding = study(lake.backend, one("a", "t"), seen, 7)
    assert finding.columns.split("\n") == ["n", "point", "point.x"]
    assert (finding.width, finding.rows, finding.version) == (2, 3, 1)
    assert finding.size_bytes > 0
    assert finding.written_at_ms > 0
    assert finding.properties == {}


def test_columns_in_columns_are_named_by_their_path():
    schema = pa.schema(
        {
            "a": pa.list_(pa.struct({"b": pa.int8()})),
            "v": pa.list_(pa.float32(), 4),
            "s": pa.struct({"t": pa.struct({"u": pa.int8()})}),
        }
    )
    assert list(paths_of(schema)) == ["a", "a.b", "v", "s", "s.t", "s.t.u"]


def test_the_surveyor_begins_when_somebody_looks_and_finds_all(atlases, lake):
    atlas = atlases.of("default")
    lake.declare_table("a$empty")
    assert not atlas.surveyor.is_at_work
    atlas.picture()
    wait_until(lambda: len(atlas.findings) == 2)
    assert atlas.findings.get(one("a", "t")).rows == 3
    assert "declared" in atlas.findings.get(one("a", "empty")).failure


def test_a_changed_table_is_looked_into_again(atlases, lake, monkeypatch):
    monkeypatch.setattr("mooring.server.ui.atlas.surveyor._AGED_MS", 0)
    atlas = atlases.of("default")
    atlas.picture()
    wait_until(lambda: len(atlas.findings) == 1)
    lake.table("a$t").insert(ROWS)

    def is_seen():
        atlas.surveyor.want([one("a", "t")])
        return atlas.findings.get(one("a", "t")).rows == 6

    wait_until(is_seen)
    assert atlas.findings.get(one("a", "t")).version == 2


def test_what_changed_comes_before_all_others_and_what_is_gone_is_forgotten(tmp_path):
    order = []

    class Looked:
        def describe_table(self, table):
            order.append(table.name)
            raise ServiceUnavailableError("not now")

    surveyor = Surveyor(Looked)
    surveyor.findings.add(one("gone"), Finding(found_at_ms=0, seen=SeenTable()))
    known = {one(name): SeenTable(name) for name in "abc"}
    surveyor.show(Picture.of(Look({ROOT: {}}, known), 0))
    wait_until(lambda: len(order) == 3)
    changed = {**known, one("c"): SeenTable("elsewhere"), one("d"): SeenTable("d")}
    surveyor.show(Picture.of(Look({ROOT: {}}, changed), 0))
    wait_until(lambda: len(order) >= 5)
    surveyor.close()
    assert order[:5] == ["a", "b", "c", "c", "d"]
    assert surveyor.findings.get(one("gone")) is None
    assert surveyor.findings.get(one("a")).failure == "not now"


def test_it_waits_while_the_server_is_busy(lake):
    busy = threading.Event()
    busy.set()
    surveyor = Surveyor(lambda: lake.backend, is_busy=busy.is_set)
    surveyor.show(picture_of(one("a", "t"), namespaces=[one("a")]))
    surveyor.want([one("a", "t")])
    assert len(surveyor.findings) == 0
    busy.clear()
    wait_until(lambda: len(surveyor.findings) == 1)
    surveyor.close()
    assert not surveyor.is_at_work


def test_no_survey_looks_into_nothing(lake):
    settings = ServerSettings(background=BackgroundSettings(survey=False))
    service = create_service(lake, settings)
    atlas = Atlases(service, Feeds(service)).of("default")
    atlas.surveyor.want([one("a", "t")])
    atlas.picture()
    assert isinstance(atlas, Atlas)
    assert not atlas.surveyor.is_at_work
    service.close()
