"""The first page, logging in and out, and what strangers see.

Issue: pages for people, served at `/`, as far as the role allows.
"""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

import mooring
from mooring.clock import SystemClock
from mooring.server.app import app_of, create_service
from mooring.server.auth import Authority
from mooring.server.roles import Grant, Identity, Role
from mooring.server.settings import Client, ServerSettings
from tests.ui.site import HTML, Site, text_of

ADA = Client.of("ada", "s3cret", Grant(Role.ADMIN))
BEN = Client.of("ben", "hidden", Grant(Role.READER, "north"))
ASKS = ServerSettings(clients=(ADA, BEN))
COOKIE = "mooring-session-8765"


@pytest.fixture
def lake(tmp_path):
    found = mooring.connect(str(tmp_path / "lake"))
    found.create_table("cities", [{"n": 1}])
    return found


@pytest.fixture
def two(lake, tmp_path):
    return {"north": lake, "south": mooring.connect(str(tmp_path / "south"))}


def test_programs_are_told_the_protocols_and_people_see_pages(lake):
    with Site(lake) as site:
        assert site.client.get("/").json()["protocols"]["lance"] == "/lance"
        assert site.get("/").headers["location"] == "/catalogs/default/browse"


def test_several_catalogs_are_chosen_from(two):
    with Site(two) as site:
        page = site.page("/")
        assert 'href="/catalogs/north/browse"' in page
        assert 'href="/catalogs/south/browse"' in page
        assert [one["name"] for one in site.client.get("/index.json").json()["catalogs"]] == [
            "north",
            "south",
        ]


def test_who_has_no_role_in_a_catalog_does_not_hear_of_it(two):
    with Site(two, ASKS, name="north", token="ben:hidden") as site:
        assert site.get("/").headers["location"] == "/catalogs/north/browse"
        assert "south" not in site.page("browse")
        assert site.get("/catalogs/south/browse").status_code == 403
        assert site.get("/catalogs/nowhere/browse").status_code == 403


def test_a_stranger_is_sent_to_the_door_and_then_back(lake):
    with Site(lake, ASKS) as site:
        sent = site.get("browse?sort=name")
        assert sent.status_code == 303
        assert sent.headers["location"] == (
            "/login?next=%2Fcatalogs%2Fdefault%2Fbrowse%3Fsort%3Dname"
        )
        door = site.page(sent.headers["location"])
        assert 'value="/catalogs/default/browse?sort=name"' in door
        form = {"token": "ada:s3cret", "next": "/catalogs/default/browse?sort=name"}
        entered = site.post("/login", **form)
        assert entered.headers["location"] == "/catalogs/default/browse?sort=name"
        assert "ada" in text_of(site.page("browse"))


def test_programs_without_a_token_get_an_error_and_no_page(lake):
    with Site(lake, ASKS) as site:
        for path in ("/catalogs/default/browse.json", "/index.json"):
            response = site.client.get(path)
            assert response.status_code == 401
            assert response.json()["code"] == 16


def test_programs_read_twins_with_a_header(lake):
    with Site(lake, ASKS) as site:
        headers = {"authorization": "Bearer ada:s3cret"}
        response = site.client.get("/catalogs/default/browse.json", headers=headers)
        assert [one["name"] for one in response.json()["tables"]] == ["cities"]


@pytest.mark.parametrize("shown", ["ada:wrong", "ada", "", "x.y", "nobody:s3cret", "\u202e:x"])
def test_what_proves_nothing_lets_nobody_in(lake, shown):
    with Site(lake, ASKS) as site:
        response = site.log_in(shown)
        assert response.status_code == 401
        assert COOKIE not in response.cookies
        assert "no token of this server" in text_of(response.text)


def test_the_cookie_holds_no_secret_and_scripts_and_other_sites_do_not_get_it(lake):
    with Site(lake, ASKS) as site:
        cookie = site.log_in("ada:s3cret").headers["set-cookie"]
    assert "s3cret" not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie


def test_the_cookie_is_sent_over_tls_alone_where_there_is_tls(lake):
    service = create_service(lake, ASKS)
    base = "https://lake.example"
    with TestClient(app_of(service), base_url=base, follow_redirects=False) as client:
        form = {"token": "ada:s3cret"}
        response = client.post("/login", data=form, headers={**HTML, "origin": base})
        assert "Secure" in response.headers["set-cookie"]
        assert response.headers["set-cookie"].startswith("__Host-mooring-session-web=")


def test_a_token_in_the_address_lets_in_and_leaves_the_address(lake):
    with Site(lake, ASKS) as site:
        entered = site.get("/login?token=ada:s3cret&next=/catalogs/default/trash")
        assert entered.status_code == 303
        assert entered.headers["location"] == "/catalogs/default/trash"
        assert site.get("browse").status_code == 200


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "evil",
        "/\n",
        "//[",
        "http://[::1",
    ],
)
def test_nobody_is_sent_to_another_site(lake, wanted):
    with Site(lake, ASKS) as site:
        assert site.get("/login", params={"next": wanted}).status_code == 200
        entered = site.post("/login", token="ada:s3cret", next=wanted)
        assert entered.headers["location"] == "/"


def test_another_site_cannot_log_somebody_in(lake):
    with Site(lake, ASKS) as site:
        for origin in ("https://evil.example", "http://[", "null"):
            response = site.post("/login", origin=origin, token="ada:s3cret")
            assert response.status_code == 403
            assert "set-cookie" not in response.headers


@pytest.mark.parametrize("whence", ["cross-site", "same-site"])
def test_a_link_on_another_site_logs_nobody_in(lake, whence):
    with Site(lake, ASKS) as site:
        response = site.get("/login?token=ben:hidden", headers={"sec-fetch-site": whence})
        assert response.status_code == 403
        assert "set-cookie" not in response.headers
        assert "log in with your own" in text_of(response.text)
        opened = site.get("/login?token=ada:s3cret", headers={"sec-fetch-site": "none"})
        assert opened.status_code == 303


class _TakesAll:
    """An issuer's tokens, of any length."""

    def verify(self, token):
        return Identity("eve", (Grant(Role.READER),)) if token.startswith("jwt.") else None

    def needs_refresh(self, token):
        return False

    def refresh(self, token):
        raise AssertionError(token)


def test_a_token_that_no_browser_keeps_is_told_at_the_door(lake):
    service = create_service(lake, ASKS)
    service.authority.replace([ADA], [_TakesAll()])
    with Site(service) as site:
        response = site.log_in("jwt." + "x" * 5000)
        assert response.status_code == 400
        assert "set-cookie" not in response.headers
        assert "longer than browsers keep" in text_of(response.text)
        assert site.log_in("jwt." + "x" * 3000).status_code == 303
        assert "eve" in text_of(site.page("browse"))


def test_logging_out_ends_it(lake):
    with Site(lake, ASKS, token="ada:s3cret") as site:
        page = site.page("browse")
        seal = page.partition('name="seal" value="')[2].partition('"')[0]
        assert site.post("/logout", seal="wrong").status_code == 403
        assert site.get("browse").status_code == 200
        assert site.post("/logout", seal=seal).headers["location"] == "/login"
        assert site.get("browse").status_code == 303


def test_a_login_whose_time_is_over_ends_at_the_door(lake):
    with Site(lake, ServerSettings(clients=(ADA,), token_ttl_s=0), token="ada:s3cret") as site:
        assert site.get("browse").headers["location"].startswith("/login?")


class _Clock:
    def __init__(self) -> None:
        self.at_ms = SystemClock().now_ms()

    def now_ms(self) -> int:
        return self.at_ms


def test_who_goes_on_looking_stays_logged_in():
    clock = _Clock()
    authority = Authority([ADA], token_ttl_s=100, clock=clock)
    token = authority.issue("ada")
    clock.at_ms += 40_000
    assert authority.renewed(token) is None
    clock.at_ms += 20_000
    fresh = authority.renewed(token)
    assert fresh is not None
    clock.at_ms += 60_000
    assert authority.renewed(token) is None
    assert authority.owner_of(fresh) == "ada"


def test_seals_are_for_one_purpose_one_client_and_one_secret():
    authority = Authority([ADA, BEN], token_ttl_s=100)
    seal = authority.seal("form", "ada")
    assert authority.is_sealed("form", "ada", seal)
    assert not authority.is_sealed("form", "ben", seal)
    assert not authority.is_sealed("other", "ada", seal)
    assert not authority.is_sealed("form", None, seal)
    assert not authority.is_sealed("form", "ada", "\ud800")
    authority.replace([Client.of("ada", "another", Grant(Role.ADMIN))], ())
    assert not authority.is_sealed("form", "ada", seal)


def test_where_nobody_is_asked_there_is_no_door(lake):
    with Site(lake) as site:
        assert site.get("/login").headers["location"] == "/"
        assert "Log out" not in site.page("browse")


def test_who_goes_astray_is_told_on_a_page_and_programs_as_json(lake):
    with Site(lake) as site:
        for path in ("/nowhere", "/catalogs/default/nowhere", "/catalogs/x/y/z"):
            response = site.get(path)
            assert response.status_code == 404
            assert response.headers["content-type"] == "text/html; charset=utf-8"
            assert site.client.get(path).json()["code"] == 13
        wrong = site.client.post("/catalogs/default/browse", headers=HTML)
        assert wrong.status_code == 405


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("/catalogs/", "/"),
        ("/catalogs/default", "/catalogs/default/browse"),
        ("/catalogs/default/", "/catalogs/default/browse"),
        ("/catalogs/default/tables/a%24b%2e", "/catalogs/default/tables/a%24b%2e/overview"),
        ("/catalogs/default/namespaces/a", "/catalogs/default/namespaces/a/browse"),
    ],
)
def test_an_address_that_names_an_object_alone_leads_to_its_page(lake, path, page):
    with Site(lake) as site:
        assert site.get(path).headers["location"] == page


def test_the_theme_that_was_chosen_is_there_from_the_first_byte(lake):
    with Site(lake) as site:
        assert "data-theme" not in site.page("browse")
        assert 'data-theme="dark"' in site.page("browse", headers={"cookie": "mooring-theme=dark"})
        odd = site.page("browse", headers={"cookie": 'mooring-theme="><script>'})
        assert "data-theme" not in odd


def test_assets_are_kept_for_ever_under_an_address_that_tells_their_content(lake):
    with Site(lake) as site:
        href = site.page("browse").partition('rel="stylesheet" href="')[2].partition('"')[0]
        response = site.get(href)
        assert response.headers["content-type"] == "text/css; charset=utf-8"
        assert "immutable" in response.headers["cache-control"]
        assert site.get("/static/old/base.css").headers["cache-control"] == "no-cache"
        assert site.get("/static/old/..%2fpages.py").status_code == 404
        assert site.get("/static/old/nothing.css").status_code == 404
