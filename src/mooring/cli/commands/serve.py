"""``mooring serve``: a catalog for clients that speak HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.options import OptionalUri, command
from mooring.cli.session import Session
from mooring.config import mask_uris
from mooring.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    import socket

    from mooring.server.settings import ServerSettings

__all__ = ["serve_command"]


@command
def serve_command(
    session: Session,
    uri: OptionalUri = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="The port; 0 is any that is free."),
    ] = 8765,
    root_namespace: Annotated[
        str,
        typer.Option(
            "--root-namespace",
            metavar="NAME",
            help="The namespace in which Iceberg clients see tables that lie in none.",
        ),
    ] = "root",
    credentials: Annotated[
        Path | None,
        typer.Option(
            "--credentials",
            metavar="FILE",
            help="Who may use the server: a TOML file with a table for each client, which has an"
            ' id, a secret and a role, "reader" or "writer".',
        ),
    ] = None,
    vend_credentials: Annotated[
        bool,
        typer.Option(
            "--vend-credentials",
            help="Hand the credentials of the store to writers that ask for them.",
        ),
    ] = False,
    allow_anonymous: Annotated[
        bool,
        typer.Option(
            "--allow-anonymous",
            help="Let anybody who reaches the address read and change everything.",
        ),
    ] = False,
) -> None:
    """Serve the catalog to Iceberg clients, until it is ended with Ctrl-C.

    Every Lance table appears in an Iceberg REST catalog: PyIceberg, Spark, DuckDB and others list
    tables and show schemas, versions and properties; rows are read and written with Lance. With
    --read-only nothing can be changed.
    """
    session = session.at(uri)
    _require_server()
    from mooring.server.running import bind, is_loopback

    settings = _settings(
        session, credentials, root_namespace=root_namespace, vend_credentials=vend_credentials
    )
    if vend_credentials and not (settings.clients or allow_anonymous):
        msg = (
            "without clients, --vend-credentials hands the store's secrets to whoever reaches the"
            " server: name clients with --credentials FILE, or add --allow-anonymous"
        )
        raise InvalidInputError(msg)
    with bind(host, port) as taken:
        if not (is_loopback(taken) or settings.clients or allow_anonymous):
            msg = (
                f"others can reach {host}, and could change everything: name clients with"
                " --credentials FILE, or add --allow-anonymous"
            )
            raise InvalidInputError(msg)
        _serve(session, settings, taken)


def _require_server() -> None:
    """Refuse where what serves is not installed.

    Raises:
        MissingExtraError: with the line that installs it.
    """
    try:
        import mooring.server.app
        import mooring.server.running  # noqa: F401  # what both need is looked for
    except ModuleNotFoundError as exc:
        if (exc.name or "mooring").startswith("mooring"):
            raise
        msg = f"to serve a catalog, package '{exc.name}' is needed: pip install 'mooring[server]'"
        raise MissingExtraError(msg) from exc


def _settings(
    session: Session, credentials: Path | None, *, root_namespace: str, vend_credentials: bool
) -> ServerSettings:
    from mooring.server.credentials_file import is_readable_by_others, read_clients
    from mooring.server.settings import ServerSettings

    clients = () if credentials is None else read_clients(credentials)
    if credentials is not None and is_readable_by_others(credentials):
        session.output.notice(
            f"warning: others can read '{credentials}', which holds secrets: chmod 600"
            f" '{credentials}'"
        )
    return ServerSettings(
        root_namespace=root_namespace, clients=clients, vend_credentials=vend_credentials
    )


def _serve(session: Session, settings: ServerSettings, taken: socket.socket) -> None:
    from mooring.server.app import create_app
    from mooring.server.running import address_of, run

    address = f"http://{address_of(taken)}/iceberg"
    run(
        create_app(session.open_catalog(), settings),
        taken,
        lambda: _tell(session, settings, address),
        None if session.flags.quiet else sys.stderr,
    )


def _tell(session: Session, settings: ServerSettings, address: str) -> None:
    credential = 'credential="ID:SECRET", ' if settings.clients else ""
    session.output.change(
        {"catalog": mask_uris(session.uri), "iceberg": address},
        f"serving {mask_uris(session.uri)} to Iceberg clients at {address}",
    )
    sys.stdout.flush()
    for line in (
        "try it with PyIceberg:",
        "  from pyiceberg.catalog.rest import RestCatalog",
        f'  catalog = RestCatalog("mooring", {credential}uri="{address}")',
        "  catalog.list_namespaces()",
    ):
        session.output.message(line)
