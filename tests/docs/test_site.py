"""The site builds without a warning, has every page, and asks nothing of other servers."""

import logging
import re

import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from tests.docs.documents import DOCS, ROOT

PARTS = ["Tutorial", "How-to", "Reference", "Explanation"]
# What a page loads, as opposed to where it leads.
_LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"?([^\s\">]+)")


def make(docs, site, **other):
    """Build the site of a folder of documents as `make docs` does, by the project's settings."""
    places = {"docs_dir": str(docs), "site_dir": str(site)}
    config = load_config(str(ROOT / "mkdocs.yml"), strict=True, **places, **other)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    make(DOCS, place)
    return place


def test_make_counts_warnings():
    """With --quiet, mkdocs would see none that --strict could end a build for."""
    (command,) = re.findall(r"mkdocs build.*", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert command == "mkdocs build --strict"


def test_every_document_is_a_page(site):
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    built = {path.relative_to(site) for path in site.rglob("*.html")}
    assert built - pages == {(site / "404.html").relative_to(site)}
    assert pages <= built


def test_the_parts_are_those_of_the_folders():
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    (_, *parts) = config["nav"]
    assert [name for part in parts for name in part] == PARTS
    for part in parts:
        (name,) = part
        assert {one.partition("/")[0] for one in _pages_in(part)} == {name.lower()}


def _pages_in(entry):
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [page for one in inner for page in _pages_in(one)]


def test_no_page_loads_anything_from_elsewhere(site):
    for path in site.rglob("*.html"):
        loaded = _LOADED.findall(path.read_text(encoding="utf-8"))
        assert loaded
        assert [one for one in loaded if "://" in one or one.startswith("//")] == [], path


@pytest.mark.parametrize(
    "text",
    ["[gone](nowhere.md)", "[gone](index.md#no-such-heading)", "[outside](../README.md)"],
)
def test_a_link_that_leads_nowhere_ends_the_build(tmp_path, text):
    docs = write(tmp_path, {"index.md": text})
    with pytest.raises(Abort):
        make(docs, tmp_path / "site", nav=["index.md"])


def test_a_page_that_is_in_no_part_ends_the_build(tmp_path):
    docs = write(tmp_path, {"index.md": "# One", "forgotten.md": "# Two"})
    with pytest.raises(Abort):
        make(docs, tmp_path / "site", nav=["index.md"])
    make(docs, tmp_path / "site", nav=["index.md", "forgotten.md"])


def write(place, pages):
    docs = place / "docs"
    docs.mkdir()
    for name, text in pages.items():
        (docs / name).write_text(text, encoding="utf-8")
    return docs


@pytest.fixture(autouse=True)
def _handlers_stay():
    """The build counts warnings by a handler of its own, which it leaves behind."""
    logger = logging.getLogger("mkdocs")
    before = list(logger.handlers)
    yield
    for handler in set(logger.handlers) - set(before):
        logger.removeHandler(handler)
