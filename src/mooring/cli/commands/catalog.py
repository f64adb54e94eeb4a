"""``mooring init`` and ``mooring ls``: the catalog itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.listing import PURGED, directory_of, list_everything
from mooring.cli.options import OptionalUri, command
from mooring.cli.session import Session

if TYPE_CHECKING:
    from mooring.directory.settings import Settings

__all__ = ["All", "init_command", "list_command", "show_tables"]

All = Annotated[
    bool, typer.Option("--all", "-a", help="Also dropped and deregistered tables, with the state.")
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
) -> None:
    """Create a catalog, or change its settings."""
    from mooring.clock import parse_ttl
    from mooring.namespace.api import Ttl

    session = session.at(uri)
    ttl = None if default_ttl is None else Ttl(parse_ttl(default_ttl))
    backend = directory_of(session.open_catalog(may_create=True))
    settings = backend.initialize(default_ttl=ttl, adopt=adopt)
    _tell_settings(session, backend.store.location(""), settings)


@command
def list_command(session: Session, uri: OptionalUri = None, everything: All = False) -> None:
    """List the tables; the same as "mooring table list"."""
    show_tables(session.at(uri), everything=everything)


def show_tables(session: Session, *, everything: bool) -> None:
    """Write the names of the live tables, or all names with their state."""
    catalog = session.open_catalog()
    if not everything:
        names = catalog.list_tables()
        session.output.names(names)
        if not names:
            session.output.message(f"no tables in '{catalog.uri}'")
        return
    rows = [table.row() for table in list_everything(catalog) if table.state != PURGED]
    session.output.rows(["name", "state", "deleted_at", "expires_at"], rows)


def _tell_settings(session: Session, location: str, settings: Settings) -> None:
    from mooring.clock import format_duration

    stay = "for ever"
    if settings.default_ttl_ms is not None:
        stay = f"for {format_duration(settings.default_ttl_ms)}"
    record = {
        "catalog": location,
        "format": settings.format,
        "adopted": settings.adopted,
        "default_ttl_ms": settings.default_ttl_ms,
        "revision": settings.revision,
    }
    session.output.change(record, f"catalog at '{location}' is ready; dropped tables stay {stay}")
    if not settings.adopted:
        session.output.message(
            "other programs may have marked tables here, so listings look into each table;"
            ' "mooring init --adopt" takes these marks over once'
        )
