"""Whatever names and values hold, pages show it as text."""

from __future__ import annotations

from urllib.parse import quote

import pyarrow as pa
import pytest

import mooring
from mooring.server.ui.headers import PAGE_HEADERS
from tests.ui.addresses import ACTIONS, PAGES, address_of
from tests.ui.attacks import ATTACKS, NAMES, make_attacked, make_attacked_metastore, parse
from tests.ui.site import Site

AT = f"tables/{quote(f'{NAMES[0]}${NAMES[0]}', safe='')}"
ASKED = {
    "search": "q limit",
    "browse": "name sort page",
    "trash": "q within sort",
    "activity": "within kind after",
    "runs": "pipeline table state",
    "lineage": "table depth",
    f"{AT}/rows": "where columns version tag branch text by",
    f"{AT}/cell": "column",
    f"{AT}/diff": "from to branch",
    f"{AT}/versions": "branch scale",
    f"{AT}/open": "tag",
    f"{AT}/untag": "tag",
}
POLICY = PAGE_HEADERS["Content-Security-Policy"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_attacked(tmp_path_factory.mktemp("attacked") / "lake")


@pytest.fixture(scope="module")
def site(folder):
    with Site(folder) as found:
        yield found


def require_harmless(response):
    """Check all that a browser is told, and that nothing but the template's markup is there."""
    assert response.status_code < 500, response.text
    assert response.headers["content-security-policy"] == POLICY
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "attacked" not in response.headers.get("set-cookie", "")
    found = parse(response.text)
    assert found.evils == []
    return found


@pytest.mark.parametrize("route", [*PAGES, *ACTIONS], ids=lambda one: one.name)
def test_pages_of_attacking_names_show_them_as_text(site, route):
    for name in NAMES:
        known = {"table": f"{name}${name}", "namespace": name, "run": name, "txn": name}
        path = address_of(route, known)
        answer = site.get(path)
        found = require_harmless(answer)
        if answer.status_code == 200 and {"{table}", "{namespace}"} & set(route.segments):
            assert name in found.text
        twin = site.get(f"{path}.json")
        assert twin.headers["content-type"] == "application/json"
        assert twin.headers["x-content-type-options"] == "nosniff"


def test_authors_and_messages_are_shown_as_text(tmp_path):
    catalog = make_attacked_metastore(tmp_path / "lake")
    txns = [record.txn_id for _, record in catalog.metastore.transactions()]
    with Site(catalog) as site:
        for table in ("n$t", "n$changes"):
            for page in PAGES:
                known = {"table": table, "namespace": "n", "run": "none", "txn": txns[-1]}
                require_harmless(site.get(address_of(page, known)))
        told = require_harmless(site.get("tables/n%24t/versions")).text
        assert all(attack[:100] in told for attack in ATTACKS[:12])
        told = require_harmless(site.get("activity")).text
        assert NAMES[1] in told
        told = require_harmless(site.get("lineage")).text
        assert NAMES[0] in told
        for txn in txns:
            require_harmless(site.get(f"transactions/{txn}/changes"))


@pytest.mark.parametrize("attack", ATTACKS, ids=range(len(ATTACKS)))
def test_what_is_asked_for_is_shown_as_text(site, attack):
    for path, keys in ASKED.items():
        for key in keys.split():
            require_harmless(site.get(path, params={key: attack}))
    require_harmless(site.get(f"/catalogs/{quote(attack[:500], safe='')}/browse"))


@pytest.mark.parametrize("attack", ATTACKS, ids=range(len(ATTACKS)))
def test_nothing_from_outside_leads_elsewhere(site, attack):
    answer = site.get("/login", params={"next": attack})
    assert answer.headers.get("location", "/").startswith("/")
    assert not answer.headers.get("location", "/").startswith("//")


@pytest.mark.parametrize(
    "body",
    [
        b'<svg xmlns="http://www.w3.org/2000/svg" onload="attacked=1"></svg>',
        b"<html><script>attacked=1</script></html>",
        b"GIF89a/*\x00*/=1;attacked=1",
        b"%PDF-1.7 <script>attacked=1</script>",
    ],
)
def test_bytes_of_no_picture_are_never_a_document(tmp_path, body):
    catalog = mooring.connect(tmp_path / "lake")
    catalog.create_table("t", pa.table({"a": pa.array([body], pa.binary())}))
    with Site(catalog) as site:
        require_harmless(site.get("tables/t/rows"))
        require_harmless(site.get("tables/t/cell?row=0&column=a"))
        answer = site.get("tables/t/image?row=0&column=a&version=1")
        kind = answer.headers["content-type"]
        assert answer.status_code >= 400 or kind in {"image/gif", "image/png", "image/jpeg"}
        assert answer.headers["x-content-type-options"] == "nosniff"
        if answer.status_code == 200:
            assert "sandbox" in answer.headers["content-security-policy"]


def test_cookies_of_others_are_shown_as_text(site):
    for attack in ATTACKS[:12]:
        cookies = {"mooring-notice": attack.replace(";", ""), "mooring-theme": '"><x>'}
        header = "; ".join(f"{key}={value}" for key, value in cookies.items())
        require_harmless(site.get("browse", headers={"cookie": header.encode()}))
