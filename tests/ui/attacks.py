"""Texts that would do harm where one is taken for markup, script or an address.

Each that makes an element makes one of a name that no template writes, beside the usual kinds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pyarrow as pa

import mooring
from mooring.changes import ChangeTable, create_change_table
from mooring.changes.publishing import publish
from mooring.identifiers import ObjectId

if TYPE_CHECKING:
    from pathlib import Path

    from mooring.catalog import Catalog

__all__ = ["ATTACKS", "NAMES", "Parsed", "make_attacked", "make_attacked_metastore", "parse"]

ELEMENT = "xss-7"
_EFFECT = "attacked=1"

# What can be the name of a table: it holds no slash, no backslash and no control character.
NAMES = (
    f"<{ELEMENT} onclick={_EFFECT}>",
    f"<img src=x onerror={_EFFECT}>",
    f"\"><svg onload='{_EFFECT}'>",
    f"'><iframe srcdoc='<{ELEMENT}>'>",
    f'" autofocus onfocus="{_EFFECT}" x="',
    f"' onmouseover='{_EFFECT}' x='",
    f"javascript:{_EFFECT}",
    "{{7*191}}{% if x %}#{7*191}",
    "&lt;b&gt;&amp;quot;&#60;script&#62;",
    f"<!--><{ELEMENT}>-->",
    "<base href=evil.example><meta http-equiv=refresh content=0>",
    f"--><{ELEMENT}>]]>",
    "a'b\"c`d",
    "%3Cscript%3E%2e%2e%2f?a=b&c=d#e;f",
    "שלום עולם",
    "مرحبا بالعالم",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe\N{POP DIRECTIONAL FORMATTING}",
    "\N{LEFT-TO-RIGHT ISOLATE}never ended",
    "🚢⚓️👩‍✈️🏴‍☠️",
    "é\N{ZERO WIDTH SPACE}\N{LINE SEPARATOR}z",
    "overview.json",
    "very-long-" * 11,
)
# What only values can be.
ATTACKS = (
    *NAMES,
    f"<script>{_EFFECT}</script>",
    f"</title></textarea></style></script><script>{_EFFECT}</script>",
    f"</bdi></td></table><{ELEMENT}>",
    "//evil.example/x",
    "data:text/html,<script>window.attacked=1</script>",
    "line\r\nSet-Cookie: attacked=1\r\n\r\n<html>",
    "C:\\new\\x",
    "word " * 4000,
)

_ADDRESSES = {"href", "src", "action", "formaction", "data-search", "data-href", "poster"}


@dataclass
class Parsed:
    """What a page holds.

    Attributes:
        texts: The pieces of text, with what attributes say to people.
        evils: What no template would have written.
    """

    texts: list[str] = field(default_factory=list)
    evils: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All that can be read."""
        return "\n".join(self.texts)


def make_attacked(root: Path) -> Catalog:
    """Make namespaces, tables, columns, properties and cells of attacks."""
    catalog = mooring.connect(root, author=ATTACKS[0], dir_listing_enabled=False)
    for number, name in enumerate(NAMES):
        within = ObjectId.of([name])
        catalog.create_namespace(within, {name: ATTACKS[number], "description": name})
        # A dot would be a field within, and Lance does not find columns that hold a backtick.
        column = name.replace(".", "-").replace("`", "-")
        cells = pa.array([{f"deep {column}": one} for one in ATTACKS])
        rows = pa.table({column: list(ATTACKS), "nested": cells})
        own = ObjectId.of([name, name])
        catalog.create_table(own, rows)
        catalog.update_table(own, {name: name, "description": ATTACKS[-number]})
        catalog.table(own).insert(rows)
    gone = ObjectId.of([NAMES[0], f"gone {NAMES[1]}"])
    catalog.create_table(gone, [{"a": 1}])
    catalog.drop_table(gone)
    return catalog


def make_attacked_metastore(root: Path) -> Catalog:
    """Make authors, messages of transactions, branches and positions of attacks."""
    uri = f"metastore+{root}"
    catalog = mooring.connect(uri, author=ATTACKS[0])
    catalog.create_namespace("n")
    schema = pa.schema([("id", pa.int64()), ("what", pa.string())])
    create_change_table(catalog, "n$changes", schema, keys=["id"], buckets=1)
    catalog.create_table("n$t", [{"id": 1}])
    for number, attack in enumerate(ATTACKS):
        other = mooring.connect(uri, author=attack[:200])
        other.table("n$t").insert([{"id": number}])
        row = [{"id": number, "what": attack}]
        ChangeTable(other, "n$changes").upsert(row, message=attack)
    catalog.table("n$t").branches.create("שלום")
    for name in NAMES:
        catalog.create_namespace(ObjectId.of([name]), {name: name})
        catalog.create_table(ObjectId.of([name, name]), [{"id": 1}])
    catalog.drop_namespace(ObjectId.of([NAMES[1]]), cascade=True)
    publish(ChangeTable(catalog, "n$changes"), ObjectId.of([NAMES[0], "published"]))
    return catalog


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = Parsed()
        self._within: list[str] = []

    def handle_starttag(self, tag, attrs):
        self._within = [tag]
        given = dict(attrs)
        self.found.texts += [value for value in given.values() if value]
        if tag in {ELEMENT, "iframe", "object", "embed", "base", "style"}:
            self.found.evils.append(f"<{tag}>")
        if tag == "script" and not (given.get("src") or "").startswith("/static/"):
            self.found.evils.append(f"<script {given}>")
        if tag == "meta" and "http-equiv" in given:
            self.found.evils.append(f"<meta {given}>")
        for name, value in attrs:
            if name.startswith("on") or name in {"style", "srcdoc", "autofocus"}:
                self.found.evils.append(f"<{tag} {name}={value!r}>")
            if name in _ADDRESSES and not _is_own(value or ""):
                self.found.evils.append(f"<{tag} {name}={value!r}>")

    def handle_endtag(self, tag):
        self._within = []

    def handle_data(self, data):
        if "script" in self._within and data.strip():
            self.found.evils.append(f"script: {data!r}")
        self.found.texts.append(data)

    def handle_comment(self, data):
        self.found.evils.append(f"<!--{data}-->")


def _is_own(address: str) -> bool:
    """Whether an address is one of this server."""
    return address.startswith(("/", "#", "?")) and not address.startswith(("//", "/\\"))


def parse(html: str) -> Parsed:
    """Read a page as a browser would."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.found
