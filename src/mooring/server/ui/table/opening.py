"""How to open a table: lines to copy, for this very table and version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.server.catalogs import MooringCatalog
from mooring.server.ui.command_lines import direct_flags, whole_uri
from mooring.server.ui.table.subject import CHANGES, Lack, Subject, TableView, find_subject
from mooring.server.ui.table.way_lines import CREDENTIAL, Wanted, Way, curl_lines

if TYPE_CHECKING:
    from mooring.server.ui.visit import Visit

__all__ = ["OpenView", "show_open"]

_NAMESPACES = {"directory": "mooring.DirectoryNamespace", "metastore": "mooring.MetastoreNamespace"}
_STORE_NEEDED = (
    "Rows are read where the table lies: the program needs the right to read there, unless the"
    " server hands it out."
)


class Snippet(msgspec.Struct, frozen=True, kw_only=True):
    """Lines to copy.

    Attributes:
        key: Its name for links within the page.
        title: What they are for.
        language: ``python``, ``sql`` or ``sh``.
        needs: What has to be installed; empty where nothing has.
        text: The lines.
    """

    key: str
    title: str
    language: str
    needs: str = ""
    text: str


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """A way to the table.

    Attributes:
        key: Its name for links within the page.
        title: Which way.
        note: What to know about it.
        snippets: The lines.
    """

    key: str
    title: str
    note: str
    snippets: list[Snippet]


class OpenView(TableView, frozen=True, kw_only=True):
    """How to open a table.

    Attributes:
        doors: The ways to it.
        is_pinned: Whether the lines open one version, and not whatever is the newest.
        pinned_href: The same page for the version that is the newest now.
    """

    doors: list[Door] = msgspec.field(default_factory=list)
    is_pinned: bool = False
    pinned_href: str = ""


def show_open(visit: Visit) -> OpenView:
    """Show how to open a table.

    Raises:
        TableNotFoundError: there is no live table of this name.
    """
    found = find_subject(visit)
    if not isinstance(found, Subject):
        return _without_lance(visit, found)
    portrait, tag = found.portrait, visit.query.get("tag") or None
    is_pinned = bool(tag or visit.query.get("version"))
    wanted = Wanted(
        visit.table.names,
        portrait.version if is_pinned else None,
        tag,
        portrait.at.branch,
    )
    doors = [_through_server(visit, wanted)]
    if visit.direct_uri is not None:
        doors.append(_directly(visit, wanted))
    return OpenView(
        id=list(visit.table.names),
        shown=found.shown("open"),
        doors=doors,
        is_pinned=is_pinned,
        pinned_href=visit.links.table(
            visit.table, "open", version=portrait.version, branch=portrait.at.branch
        ),
    )


def _without_lance(visit: Visit, lack: Lack) -> OpenView:
    doors = []
    if visit.kind == "foreign":
        # What it holds is not known here, and whoever opens it by these lines finds out.
        tag = visit.query.get("tag") or None
        doors.append(
            _through_server(visit, Wanted(visit.table.names, visit.number("version", least=1), tag))
        )
    if lack.kind == CHANGES and visit.direct_uri is not None:
        way, wanted = _direct_way(visit), Wanted(visit.table.names)
        snippets = [
            Snippet(key="python", title="Python", language="python", text=way.changes(wanted)),
            Snippet(
                key="cli", title="Command line", language="sh", text=way.changes_commands(wanted)
            ),
        ]
        doors.append(Door(key="direct", title="Directly", note="", snippets=snippets))
    return OpenView(id=list(visit.table.names), lack=lack, doors=doors)


def _through_server(visit: Visit, wanted: Wanted) -> Door:
    asks = not visit.service.authority.asks_nobody
    address = f"{visit.base}/lance/{visit.served.name}"
    way = Way(
        uri=visit.remote_uri, options={}, flags=(), asks=asks, namespace=("rest", {"uri": address})
    )
    curl = curl_lines(visit.base, visit.served.name, wanted, asks=asks)
    token = f" Put your credential, ID:SECRET or a token, into {CREDENTIAL}." if asks else ""
    http = Snippet(key="curl", title="HTTP", language="sh", needs="curl", text=curl)
    return Door(
        key="server",
        title="Through this server",
        note=f"{_STORE_NEEDED}{token}",
        snippets=[*_snippets(way, wanted, "mooring[remote]"), http],
    )


def _directly(visit: Visit, wanted: Wanted) -> Door:
    options = visit.served.catalog.options if isinstance(visit.served, MooringCatalog) else {}
    note = "Where the catalog lies, without this server."
    if options.get("storage_options"):
        note += " Give the options of the store as you do elsewhere: they are not shown here."
    return Door(
        key="direct",
        title="Directly",
        note=note,
        snippets=_snippets(_direct_way(visit), wanted, "mooring"),
    )


def _direct_way(visit: Visit) -> Way:
    uri = whole_uri(visit.direct_uri or "")
    served = visit.served
    options = served.catalog.options if isinstance(served, MooringCatalog) else {}
    flags = {
        name: False
        for name in ("manifest_enabled", "dir_listing_enabled")
        if options.get(name) is False
    }
    namespace = None
    if visit.kind in _NAMESPACES:
        root = {"root": uri.removeprefix("metastore+")}
        properties = {**root, **dict.fromkeys(flags, "false")}
        namespace = (_NAMESPACES[visit.kind], properties)
    return Way(uri=uri, options=flags, flags=direct_flags(visit), asks=False, namespace=namespace)


def _snippets(way: Way, wanted: Wanted, package: str) -> list[Snippet]:
    found = [
        Snippet(
            key="mooring",
            title="Python, with Mooring",
            language="python",
            needs=f"pip install '{package}'" if "[" in package else f"pip install {package}",
            text=way.mooring(wanted),
        )
    ]
    if way.namespace is not None:
        found += _lance_snippets(way, wanted)
    extra = package.removesuffix("]").partition("[")[2]
    found.append(
        Snippet(
            key="spark",
            title="Spark, as a data frame and as SQL",
            language="python",
            needs=f"pip install 'mooring[{','.join(filter(None, (extra, 'spark')))}]'",
            text=way.spark(wanted),
        )
    )
    if way.namespace is not None and way.namespace[0] in {"rest", _NAMESPACES["directory"]}:
        found += _sql_snippets(way, wanted)
    cli = Snippet(key="cli", title="Command line", language="sh", text=way.commands(wanted))
    return [*found, cli]


def _lance_snippets(way: Way, wanted: Wanted) -> list[Snippet]:
    lance = Snippet(
        key="lance",
        title="Python, with Lance",
        language="python",
        needs="pip install pylance" if way.asks or _is_rest(way) else "pip install pylance mooring",
        text=way.lance(wanted),
    )
    if wanted.branch:
        return [lance]  # lancedb opens main
    needs = "pip install lancedb" if _is_rest(way) else "pip install lancedb mooring"
    return [
        lance,
        Snippet(
            key="lancedb",
            title="Python, with lancedb",
            language="python",
            needs=needs,
            text=way.lancedb(wanted),
        ),
    ]


def _sql_snippets(way: Way, wanted: Wanted) -> list[Snippet]:
    if wanted.branch:
        return []  # nothing is known to tell lance-spark a branch
    return [
        Snippet(
            key="lance-spark",
            title="lance-spark: a session of Spark SQL",
            language="sh",
            needs="Spark 4.1, and Maven's repository in reach",
            text=way.lance_spark_settings(),
        ),
        Snippet(
            key="sql",
            title="SQL, in such a session",
            language="sql",
            text=way.lance_spark(wanted),
        ),
    ]


def _is_rest(way: Way) -> bool:
    return way.namespace is not None and way.namespace[0] == "rest"
