"""Who may use a server, and how it is protected: the options of ``mooring serve`` about that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    import socket
    from collections.abc import Container

    from mooring.cli.session import Session
    from mooring.server.settings import ServerSettings
    from mooring.server.tls import Tls
    from mooring.server.vending import VendingSettings

__all__ = [
    "AllowAnonymous",
    "AllowedHosts",
    "AuditFile",
    "CredentialsFile",
    "Protection",
    "TlsCert",
    "TlsClientCa",
    "TlsKey",
    "VendCredentials",
    "VendDuration",
    "VendEndpoint",
    "VendRole",
]

# How the help groups them.
_WHO, _STORE, _TLS = "Who may use it", "Credentials of the store", "TLS"

CredentialsFile = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        metavar="FILE",
        rich_help_panel=_WHO,
        help='Who may use the server: a TOML file of clients, made by "mooring token create", and'
        " whose tokens are taken beside. What changes in it counts at once.",
    ),
]
AllowAnonymous = Annotated[
    bool,
    typer.Option(
        "--allow-anonymous",
        rich_help_panel=_WHO,
        help="Let anybody who reaches the address read and change everything.",
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        metavar="NAME",
        rich_help_panel=_WHO,
        help="A name by which clients may address the server, beside localhost and addresses; may"
        " be repeated, * is any. Any is the default where clients need a token.",
    ),
]
VendCredentials = Annotated[
    bool,
    typer.Option(
        "--vend-credentials",
        rich_help_panel=_STORE,
        help="Hand out credentials of the store, which end soon and are good for one table: to"
        " read it, or for writers to change it, too. Takes --vend-role.",
    ),
]
VendRole = Annotated[
    str | None,
    typer.Option(
        "--vend-role",
        metavar="ARN",
        rich_help_panel=_STORE,
        help="The role of AWS that is taken on for a client.",
    ),
]
VendDuration = Annotated[
    int,
    typer.Option(
        "--vend-duration",
        metavar="SECONDS",
        rich_help_panel=_STORE,
        help="How long credentials are good for: 900 to 43200, and no longer than the role says.",
    ),
]
VendEndpoint = Annotated[
    str | None,
    typer.Option(
        "--vend-endpoint",
        metavar="URL",
        rich_help_panel=_STORE,
        help="Who is asked for credentials, if not AWS's STS.",
    ),
]
AuditFile = Annotated[
    Path | None,
    typer.Option(
        "--audit-log",
        metavar="FILE",
        rich_help_panel=_WHO,
        help="Append a line of JSON for every change: who, what, when, and what came of it.",
    ),
]
TlsCert = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert",
        metavar="FILE",
        rich_help_panel=_TLS,
        help="Serve HTTPS with this certificate (PEM).",
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(
        "--tls-key",
        metavar="FILE",
        rich_help_panel=_TLS,
        help="The certificate's key; in its file if absent.",
    ),
]
TlsClientCa = Annotated[
    Path | None,
    typer.Option(
        "--tls-client-ca",
        metavar="FILE",
        rich_help_panel=_TLS,
        help="Have clients show a certificate that one of these signed (PEM).",
    ),
]


@dataclass(frozen=True, slots=True)
class Protection:
    """What was said about who may use a server, and how it is protected."""

    credentials: Path | None = None
    allow_anonymous: bool = False
    allowed_hosts: tuple[str, ...] = ()
    vend_credentials: bool = False
    vend_role: str | None = None
    vend_duration_s: int = 3600
    vend_endpoint: str | None = None
    audit_log: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None

    def apply(self, settings: ServerSettings, session: Session) -> ServerSettings:
        """Return settings with all of it.

        Raises:
            NotFoundError: there is no such credentials file.
            InvalidInputError: it would let in others than meant, or makes no sense.
        """
        from dataclasses import replace

        from mooring.server.credentials_file import (
            is_readable_by_others,
            read_clients,
            read_credentials,
        )

        if self.credentials is not None:
            read_clients(self.credentials)  # says so where it names nobody
            known = read_credentials(self.credentials)
            settings = replace(
                settings,
                clients=known.clients,
                oidc=known.oidc,
                credentials_file=self.credentials,
            )
            if is_readable_by_others(self.credentials):
                session.output.notice(
                    f"warning: others can read '{self.credentials}', which holds digests of"
                    f" secrets: chmod 600 '{self.credentials}'"
                )
        return replace(
            settings,
            vending=self._vending(settings),
            allowed_hosts=self._hosts(settings),
            audit_log=self.audit_log,
            tls=self._tls(),
        )

    def _vending(self, settings: ServerSettings) -> VendingSettings | None:
        from mooring.server.vending import VendingSettings

        if not self.vend_credentials:
            if self.vend_role is not None:
                raise InvalidInputError("--vend-role is of no use without --vend-credentials")
            return None
        if self.vend_role is None:
            msg = (
                "--vend-credentials hands out credentials that end soon, by a role that the server"
                " may take on, and never its own: give it with"
                " --vend-role arn:aws:iam::123456789012:role/NAME"
            )
            raise InvalidInputError(msg)
        if settings.asks_nobody and not self.allow_anonymous:
            msg = (
                "without clients, --vend-credentials hands credentials of the store to whoever"
                " reaches the server: name clients with --credentials FILE, or add"
                " --allow-anonymous"
            )
            raise InvalidInputError(msg)
        vending = VendingSettings(self.vend_role, self.vend_duration_s, self.vend_endpoint)
        vending.check()
        return vending

    def _hosts(self, settings: ServerSettings) -> tuple[str, ...] | None:
        """Return the names that count: where anybody is let in, only those that are given."""
        return self.allowed_hosts if self.allowed_hosts or settings.asks_nobody else None

    def check_reach(self, settings: ServerSettings, host: str, taken: socket.socket) -> None:
        """Refuse to let in everybody by oversight.

        Raises:
            InvalidInputError: others can reach a server that asks nobody who they are.
        """
        from mooring.server.running import is_loopback

        if is_loopback(taken) or self.allow_anonymous or not settings.asks_nobody:
            return
        msg = (
            f"others can reach {host}, and could change everything: name clients with"
            " --credentials FILE, or add --allow-anonymous"
        )
        raise InvalidInputError(msg)

    def _tls(self) -> Tls | None:
        from mooring.server.tls import Tls

        if self.tls_cert is None:
            if self.tls_key is not None or self.tls_client_ca is not None:
                raise InvalidInputError("--tls-key and --tls-client-ca take --tls-cert, too")
            return None
        found = Tls(self.tls_cert, self.tls_key, self.tls_client_ca)
        found.check()
        return found

    def idle(self, settings: ServerSettings, served: Container[str]) -> list[str]:
        """Tell of clients that may do nothing: their catalogs are misspelt, or served elsewhere."""
        told = []
        for client in settings.clients:
            named = [grant.catalog for grant in client.grants]
            if all(one is not None and one not in served for one in named):
                missing = ", ".join(f"'{one}'" for one in sorted({one for one in named if one}))
                told.append(
                    f"client '{client.id}' may do nothing here: no catalog is called {missing}"
                )
        return told

    def notices(
        self, settings: ServerSettings, taken: socket.socket, *, is_read_only: bool
    ) -> list[str]:
        """Return what whoever starts a server should know about who can use it."""
        from mooring.server.running import is_loopback

        if not settings.asks_nobody:
            is_open = self.tls_cert is None and not is_loopback(taken)
            plain = "warning: tokens and rows go over the network as they are, without TLS:"
            return [f"{plain} --tls-cert FILE, or a proxy before the server"] if is_open else []
        may = "read everything" if is_read_only else "read and change everything"
        if is_loopback(taken):
            told = "no tokens are configured: only this machine is served, and anybody on it may"
            return [f"{told} {may} (--credentials FILE names clients)"]
        return [f"warning: anybody who reaches this address may {may}"]
