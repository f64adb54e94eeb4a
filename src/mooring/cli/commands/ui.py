"""``mooring ui``: the pages of a catalog in the browser, for one user."""

from __future__ import annotations

import secrets
import sys
import threading
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

import typer

from mooring.cli.operating import LogAs, LogFrom, LogImportance, Operating
from mooring.cli.options import command
from mooring.cli.served_catalogs import (
    DEFAULT_NAME,
    CatalogName,
    NamedCatalogs,
    ServedUri,
    wanted_catalogs,
)
from mooring.cli.server_run import ServerRun, require_server
from mooring.cli.session import Session

if TYPE_CHECKING:
    from mooring.server.service import Service

__all__ = ["ui_command"]

_HOST = "127.0.0.1"
_SECRET_BYTES = 24
# A page that is left open over a weekend still works on Monday.
_LOGIN_S = 7 * 24 * 3600


@command
def ui_command(
    session: Session,
    uri: ServedUri = None,
    catalog: NamedCatalogs = None,
    name: CatalogName = DEFAULT_NAME,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            show_default=False,
            help="The port; any that is free unless given.",
        ),
    ] = 0,
    browser: Annotated[
        bool,
        typer.Option(
            "--browser/--no-browser",
            show_default=False,
            help="Open the browser, which is the default, or only tell the address.",
        ),
    ] = True,
    log_format: LogAs = None,
    log_level: LogFrom = LogImportance.WARNING,
) -> None:
    """Look at a catalog in the browser, until Ctrl-C.

    The pages are served to this user alone: on this machine, and to whoever has the address that
    is told, as it holds a secret made for this run. With --read-only nothing can be changed.
    """
    catalogs = wanted_catalogs(session, uri, catalog or (), name)
    require_server()
    from mooring.opening import current_author
    from mooring.server.roles import Grant, Role
    from mooring.server.running import address_of, bind
    from mooring.server.settings import Client, ServerSettings

    # Between an id and its secret stands a colon.
    user = (session.config.value("user") or current_author()).replace(":", "-")
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    owner = Client.of(user, secret, Grant(Role.ADMIN))
    settings = ServerSettings(clients=(owner,), token_ttl_s=_LOGIN_S)
    operating = Operating(log_format=log_format, log_level=log_level)
    operating.configure_logs()
    with bind(_HOST, port) as taken:
        base = f"http://{address_of(taken)}"

        def tell(service: Service) -> None:
            _tell(session, _login(base, f"{user}:{secret}"))
            if browser:
                # Others can read the arguments of a browser that is started: what it gets is good
                # for one login only.
                _open(session, _login(base, service.authority.issue_once(user)))

        quiet = session.flags.quiet
        ServerRun(catalogs, settings, operating, quiet=quiet).run(taken, tell)


def _login(base: str, token: str) -> str:
    return f"{base}/login?{urlencode({'token': token})}"


def _tell(session: Session, address: str) -> None:
    """Tell where the pages are; this is what was asked for, so the secret is not masked."""
    if session.output.is_for_people:
        session.output.message("the pages are at the address below, for you alone; Ctrl-C ends it")
        sys.stdout.write(f"{address}\n")
    else:
        session.output.record({"address": address})
    sys.stdout.flush()


def _open(session: Session, address: str) -> None:
    """Open the browser beside the server, which would wait for one in this terminal."""
    import webbrowser

    def go() -> None:
        if not webbrowser.open(address):
            session.output.notice("no browser can be opened here: open the address by yourself")

    threading.Thread(target=go, name="browser", daemon=True).start()
