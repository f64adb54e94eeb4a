"""What whoever starts a server is told: where each catalog is, and how to try each client."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.cli.served_catalogs import WantedCatalog
    from mooring.cli.session import Session

__all__ = ["invite"]

_PROTOCOLS = ("lance", "iceberg", "mooring")


def invite(
    session: Session, catalogs: Sequence[WantedCatalog], base: str, *, asks_nobody: bool
) -> None:
    """Tell where catalogs are served.

    Args:
        session: Knows who is told.
        catalogs: What is served; the first is that of clients who name none.
        base: The address of the server.
        asks_nobody: Whether clients need no token.
    """
    places = [_addresses(one, base, is_first=one is catalogs[0]) for one in catalogs]
    record = {
        "catalog": catalogs[0].shown,
        **{protocol: f"{base}/{protocol}" for protocol in _PROTOCOLS},
        "pages": f"{base}/",
        "catalogs": places,
    }
    session.output.change(record, f"serving at {base}")
    sys.stdout.flush()
    for line in _lines(places, base, asks_nobody=asks_nobody):
        session.output.message(line)


def _addresses(catalog: WantedCatalog, base: str, *, is_first: bool) -> dict[str, str]:
    below = "" if is_first else f"/{catalog.name}"
    told = {"name": catalog.name, "catalog": catalog.shown, "lance": f"{base}/lance{below}"}
    if catalog.is_foreign:  # it has what Lance's protocol has
        return told
    return {**told, "iceberg": f"{base}/iceberg", "mooring": f"{base}/mooring{below}"}


def _lines(places: Sequence[dict[str, str]], base: str, *, asks_nobody: bool) -> Iterator[str]:
    login = "" if asks_nobody else " (log in with a token, or ID:SECRET)"
    yield f"in a browser: {base}/{login}"
    for place in places:
        warehouse = "" if len(places) == 1 else f" (warehouse {place['name']})"
        yield f"{place['name']}: {place['catalog']}"
        yield f"  Lance clients    {place['lance']}"
        if "iceberg" in place:
            yield f"  Iceberg clients  {place['iceberg']}{warehouse}"
        yield f"  Mooring          lance+{place['lance']}"
    lance, header, credential = f"{base}/lance", "", ""
    if not asks_nobody:
        header = ', "header.Authorization": "Bearer ID:SECRET"'
        credential = 'credential="ID:SECRET", '
    warehouse = "" if len(places) == 1 else f', warehouse="{places[0]["name"]}"'
    yield "try it with Lance:"
    yield "  import lance_namespace"
    yield f'  catalog = lance_namespace.connect("rest", {{"uri": "{lance}"{header}}})'
    yield "  catalog.list_namespaces(lance_namespace.ListNamespacesRequest(id=[]))"
    yield "try it with PyIceberg:"
    yield "  from pyiceberg.catalog.rest import RestCatalog"
    yield f'  catalog = RestCatalog("mooring", {credential}uri="{base}/iceberg"{warehouse})'
    yield "  catalog.list_namespaces()"
    yield f"health: {base}/health/ready, metrics: {base}/metrics"
