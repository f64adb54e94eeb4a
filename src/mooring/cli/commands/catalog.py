"""``mooring init`` and ``mooring ls``: the catalog itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.completion import complete_namespaces
from mooring.cli.listing import (
    LISTED_COLUMNS,
    PURGED,
    change_tables,
    is_iceberg,
    is_remote,
    kind_of,
    list_everything,
    stored,
)
from mooring.cli.options import OptionalUri, command
from mooring.cli.session import Session
from mooring.errors import InvalidInputError, NamespaceNotFoundError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.catalog import Catalog
    from mooring.cli.listing import Listed
    from mooring.namespace.settings import Settings
    from mooring.opening import StoredBackend

__all__ = ["All", "init_command", "list_command", "show_tables"]

All = Annotated[
    bool,
    typer.Option(
        "--all",
        "-a",
        help="The tables of all namespaces by full identifier, also dropped and deregistered"
        " ones, with the state.",
    ),
]


@command
def init_command(
    session: Session,
    uri: OptionalUri = None,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt", help="Take over a directory that other programs filled: listings get faster."
        ),
    ] = False,
    default_ttl: Annotated[
        str | None,
        typer.Option(
            "--default-ttl",
            metavar="DURATION",
            help="How long dropped tables stay in the trash: 7d, 12h, never.",
        ),
    ] = None,
    allow_location: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-location",
            metavar="URI",
            help="Where tables may lie outside the root, instead of what was allowed so far; may"
            " be repeated.",
        ),
    ] = None,
    managed: Annotated[
        bool | None,
        typer.Option(
            "--managed-versions/--no-managed-versions",
            help="Whether Lance commits through the catalog, for whoever opens a table through it.",
        ),
    ] = None,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared",
            help="For good: keep the numbers of the manifest's versions, so that other programs"
            " with the catalog open never lose their place.",
        ),
    ] = False,
    dialect: Annotated[
        str | None,
        typer.Option(
            "--dialect",
            metavar="NAME",
            help="The layout of a new metastore: document, the default, or deltacat.",
        ),
    ] = None,
) -> None:
    """Create a catalog, or change its settings."""
    from mooring.clock import parse_ttl
    from mooring.namespace.api import Ttl

    session = session.at(uri)
    ttl = None if default_ttl is None else Ttl(parse_ttl(default_ttl))
    allowed = _parse_locations(allow_location) if allow_location else None
    backend = stored(_require_own(session, session.open_catalog(may_create=True, dialect=dialect)))
    settings = backend.initialize(
        default_ttl=ttl,
        adopt=adopt,
        allowed_locations=allowed,
        managed_versioning=managed,
        shared=shared,
    )
    _tell_settings(session, backend, settings)
    if shared:
        session.output.message("the manifest is kept for other programs that have it open")


@command
def list_command(
    session: Session,
    uri: Annotated[
        str | None,
        typer.Argument(
            metavar="URI",
            help="The catalog, instead of --catalog. Where a catalog is named already, a word"
            " without a slash is a namespace of it.",
            autocompletion=complete_namespaces,
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Argument(metavar="NAMESPACE", help="A namespace; the root unless given."),
    ] = None,
    everything: All = False,
) -> None:
    """List the tables; the same as "mooring table list"."""
    if uri is None or namespace is not None or _is_place(uri) or not session.names_catalog:
        show_tables(session.at(uri), namespace or "", everything=everything)
        return
    try:
        show_tables(session, uri, everything=everything)
    except NamespaceNotFoundError as exc:
        if not Path(uri).is_dir():
            raise
        msg = f"{exc}; for the catalog in the directory '{uri}' write './{uri}'"
        raise NamespaceNotFoundError(msg) from exc


def show_tables(session: Session, namespace: str, *, everything: bool) -> None:
    """Write the names of a namespace's live tables, or all identifiers with their state."""
    catalog = session.open_catalog()
    if everything:
        rows = [
            listed.row() for listed in _list_below(catalog, namespace) if listed.state != PURGED
        ]
        session.output.rows(LISTED_COLUMNS, rows)
        return
    names = catalog.list_tables(namespace)
    session.output.names(names)
    count = len(change_tables(catalog, namespace)) if namespace else 0
    if count:
        tables = "1 change table is" if count == 1 else f"{count:,} change tables are"
        look = session.suggest("changes list", namespace)
        session.output.message(f"{tables} in namespace '{namespace}': {look}")
    elif not names:
        _tell_empty(session, catalog, namespace)


def _require_own(session: Session, catalog: Catalog) -> Catalog:
    """Refuse to make what somebody's server keeps.

    Raises:
        UnsupportedError: a server keeps the catalog.
    """
    if not is_iceberg(catalog) and not is_remote(catalog):
        return catalog
    msg = (
        f"'{catalog.uri}' is {kind_of(catalog)}: its server made it and keeps its settings; begin"
        f" with a namespace: {session.suggest('namespace create', 'NAME')}"
    )
    raise UnsupportedError(msg)


def _list_below(catalog: Catalog, namespace: str) -> list[Listed]:
    if not namespace:
        return list_everything(catalog)
    catalog.describe_namespace(namespace)  # an absent one is no empty one
    return list_everything(catalog, catalog.identifier(namespace))


def _tell_empty(session: Session, catalog: Catalog, namespace: str) -> None:
    place = f"namespace '{namespace}'" if namespace else f"'{catalog.uri}'"
    below = len(catalog.list_namespaces(namespace))
    if below:
        look = session.suggest("namespace list", *([namespace] if namespace else []))
        count = "1 namespace is" if below == 1 else f"{below} namespaces are"
        session.output.message(f"no tables in {place}; {count} in it: {look}")
    else:
        session.output.message(f"no tables in {place}")


def _is_place(text: str) -> bool:
    """Whether an argument can only be a path or URI: no name holds a slash."""
    return "/" in text or text in {"", ".", "..", "~"}


def _parse_locations(locations: Sequence[str]) -> tuple[str, ...]:
    """Check what may be allowed; a relative path means another place in every directory.

    Raises:
        InvalidInputError: one of them is neither a URI nor an absolute path.
    """
    from mooring.namespace.locations import is_outside

    for location in locations:
        if not is_outside(location):
            msg = f"'{location}' cannot be allowed: give a URI or an absolute path"
            raise InvalidInputError(msg)
    return tuple(dict.fromkeys(locations))


def _tell_settings(session: Session, backend: StoredBackend, settings: Settings) -> None:
    from mooring.clock import format_duration
    from mooring.namespace.settings import METASTORE

    stay = "for ever"
    if settings.default_ttl_ms is not None:
        stay = f"for {format_duration(settings.default_ttl_ms)}"
    location = backend.store.location("")
    record = {
        "catalog": location,
        "format": settings.format,
        "adopted": settings.adopted,
        "default_ttl_ms": settings.default_ttl_ms,
        "allowed_locations": list(settings.allowed_locations),
        "managed_versioning": settings.managed_versioning,
        "revision": settings.revision,
    }
    session.output.change(record, f"catalog at '{location}' is ready; dropped tables stay {stay}")
    if settings.allowed_locations:
        allowed = ", ".join(f"'{place}'" for place in settings.allowed_locations)
        session.output.message(f"tables may also lie below {allowed}")
    if settings.kind == METASTORE:
        return
    if not settings.adopted and session.is_enabled("dir_listing_enabled"):
        session.output.message(
            "other programs may have marked tables here, so listings look into each table;"
            ' "mooring init --adopt" takes these marks over once'
        )
