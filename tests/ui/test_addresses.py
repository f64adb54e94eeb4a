"""Every page has an address that stays, and a twin; every action asks before it does anything."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from mooring.server.roles import Role
from mooring.server.ui.headers import PAGE_HEADERS
from mooring.server.ui.routes import ROUTES
from tests.ui.addresses import ACTIONS, PAGES, address_of
from tests.ui.attacks import parse
from tests.ui.harbour import known_in, make_harbour, make_listing, make_manifest
from tests.ui.site import Site

FILLED = {"namespace": "port$west", "table": "port$west$ships", "txn": "1", "run": "none"}
# What a kind of catalog does not have is told on the page, or is not there.
TOLD = {200, 400, 404, 406, 501}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lakes")


@pytest.fixture(scope="module")
def harbour(folder):
    return make_harbour(folder)


@pytest.fixture(scope="module")
def site(harbour):
    with Site(harbour) as found:
        yield found


@pytest.fixture(scope="module")
def known(harbour):
    return known_in(harbour)


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.name)
def test_every_page_is_there_with_its_twin(site, known, page):
    path = address_of(page, known)
    html = site.get(path)
    assert (html.status_code, html.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert html.headers["content-security-policy"] == PAGE_HEADERS["Content-Security-Policy"]
    assert len(re.findall("<h1", html.text)) == 1
    assert parse(html.text).evils == []
    twin = re.search(r'rel="alternate" type="application/json" href="([^"]+)"', html.text)
    assert twin is not None
    answer = site.get(twin[1].replace("&amp;", "&"))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert set(answer.json()) >= {"cli"}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda one: one.path)
def test_every_action_asks_first(site, known, action):
    path = address_of(action, known)
    html = site.page(path)
    assert parse(html).evils == []
    question = site.get(re.sub(r"(\?|$)", r".json\1", path, count=1)).json()
    assert question["title"]
    # What cannot be done says why instead.
    assert ('name="seal"' in html) is not bool(question["obstacle"])
    assert question["submit"]
    assert question["back"].startswith("/catalogs/default/")
    assert site.get(question["back"]).status_code in {200, 303}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda one: one.path)
def test_no_action_is_done_without_its_form(site, known, action):
    path = address_of(action, known)
    assert site.post(path, seal="made-up").status_code == 403
    assert site.post(path, origin="http://evil.example").status_code == 403
    assert action.role is not Role.READER


@pytest.mark.parametrize("make", [make_manifest, make_listing], ids=["manifest", "listing"])
def test_every_page_says_what_other_kinds_do_not_have(folder, make):
    place = folder / make.__name__
    place.mkdir()
    known = FILLED if make is make_manifest else {**FILLED, "namespace": "none", "table": "ships"}
    with Site(make(place)) as site:
        for one in [*PAGES, *ACTIONS]:
            answer = site.get(address_of(one, known))
            assert answer.status_code in TOLD, (one.name, answer.text)
            assert parse(answer.text).evils == []


def test_every_link_of_a_page_leads_somewhere(site, known):
    """Links are followed from page to page; none leads nowhere."""
    seen: set[str] = set()
    ahead = [f"{site.at}/{address_of(page, known)}" for page in PAGES]
    while ahead and len(seen) < 400:
        path = ahead.pop(0)
        if path in seen:
            continue
        seen.add(path)
        answer = site.get(path)
        # The page of a dropped table tells the way back.
        is_told = answer.status_code == 410 and "was dropped" in answer.text
        assert answer.status_code == 200 or is_told, (path, answer.status_code)
        if answer.headers["content-type"].startswith("text/html") and len(seen) < 120:
            ahead += links_of(answer.text)
    assert len(seen) > 100


def links_of(html):
    """Return the addresses on a page, without those of parts of a page."""
    found = re.findall(r'(?:href|src)="(/[^"#]+)', html)
    return [one.replace("&amp;", "&") for one in found]


def test_addresses_end_in_a_fixed_word_and_are_no_two_pages(site):
    shapes = [re.sub(r"\{\w+\}", "{}", one.path) for one in ROUTES]
    assert len(set(shapes)) == len(shapes)
    assert all(re.fullmatch(r"[a-z-]+", one.segments[-1]) for one in ROUTES)


def test_templates_style_sheets_and_scripts_are_in_the_package():
    room = files("mooring.server.ui")
    for page in PAGES:
        assert (room / "templates" / page.template).is_file(), page.template
    sheets = {one.name for one in (room / "static").iterdir()}
    assert {"base.css", "main.js", "mark.svg"} <= sheets


def test_no_template_trusts_what_it_is_given():
    for one in all_templates(files("mooring.server.ui") / "templates"):
        text = one.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe\b|autoescape|Markup|<script(?![^>]* src=)", text), one
        assert not re.search(r"\s(?:style|on[a-z]+)=\"", text), one


def all_templates(folder):
    for one in folder.iterdir():
        if one.is_dir():
            yield from all_templates(one)
        elif one.name.endswith(".html"):
            yield one
