"""Links between documents lead somewhere."""

import re

import pytest

from tests.docs.documents import DOCS, all_documents

_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors_of(path):
    """Return the anchors of a document's headings, as they are made from their words."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text)]
    return {heading.strip().replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("path", all_documents(), ids=lambda path: path.stem)
def test_links_resolve(path):
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    for target in _LINK.findall(text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), target
        assert not anchor or anchor in anchors_of(found), target


def test_every_document_is_reached_from_the_index():
    """By one link, or by two where its part has an index of its own."""
    first = DOCS / "index.md"
    reached = _linked_from(first)
    for index in [path for path in reached if path.name == "index.md"]:
        reached |= _linked_from(index)
    documents = {path for path in all_documents() if DOCS in path.parents}
    assert documents - reached - {first} == set()


def _linked_from(path):
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    targets = [target for target in _LINK.findall(text) if "://" not in target]
    return {(path.parent / target.partition("#")[0]).resolve() for target in targets}
