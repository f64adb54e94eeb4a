"""What a server is told: who may use it, what it hands out, and where its limits are."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from mooring.server.background_settings import BackgroundSettings
from mooring.server.roles import Grant, Role

if TYPE_CHECKING:
    from pathlib import Path

    from mooring.server.oidc import OidcSettings
    from mooring.server.tls import Tls
    from mooring.server.vending import VendingSettings

__all__ = ["Client", "ServerSettings", "digest_of"]

_MIB = 1024 * 1024
_GIB = 1024 * _MIB


@dataclass(frozen=True, slots=True)
class Client:
    """Somebody who may use the server.

    Attributes:
        id: The name, in which changes are recorded.
        digest: Of the secret that proves it; the secret itself is nowhere kept.
        grants: What the client may do.
    """

    id: str
    digest: str = field(repr=False)
    grants: tuple[Grant, ...] = (Grant(Role.READER),)

    @classmethod
    def of(cls, name: str, secret: str, *grants: Grant) -> Client:
        """Make one who has a secret; a reader of everything unless told otherwise."""
        return cls(name, digest_of(secret), grants or (Grant(Role.READER),))


def digest_of(secret: str) -> str:
    """Return what is kept of a secret; enough for one that is long and random."""
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How a server behaves.

    Attributes:
        root_namespace: What Iceberg clients see the tables of the root in, as Iceberg has none.
        clients: Who may use it; anybody where there are none, and no tokens of others are taken.
        oidc: Whose tokens are taken beside.
        credentials_file: Where both stand; what changes there counts without a restart.
        allowed_hosts: By which names clients may address it, beside addresses; None for any.
        vending: Who gives clients credentials of the store; None where they get none.
        audit_log: The file that every change is written to.
        tls: How connections are protected; None where they are not.
        token_ttl_s: How long a token is good for.
        token_key: What signs tokens, where several processes serve; random unless given.
        body_limit_bytes: The largest request that is no rows.
        upload_limit_bytes: The most bytes of rows in one request.
        catalog_threads: How many requests about the catalog are worked on at once.
        data_threads: How many requests that read or write rows are worked on at once.
        most_waiting: How many requests of each kind may wait for a thread; others are refused.
        request_timeout_s: How long one may take until its client is told to look later.
        idle_timeout_s: How long a client may send nothing in the middle of a request.
        keep_alive_s: How long a connection stays open on which nothing is asked.
        head_limit_bytes: The longest first line and headers of a request.
        drain_s: How long requests are still taken after the server was told to end.
        last_requests_s: How long what was begun may then go on.
        metrics_anonymous: Whether anybody may read the metrics.
        worker: Which of the processes that serve together this is; what only one of them must do,
            number 0 does.
        background: What the server does by itself.
    """

    root_namespace: str = "root"
    clients: tuple[Client, ...] = ()
    oidc: OidcSettings | None = None
    credentials_file: Path | None = None
    allowed_hosts: tuple[str, ...] | None = None
    vending: VendingSettings | None = None
    audit_log: Path | None = None
    tls: Tls | None = None
    token_ttl_s: int = 3600
    token_key: bytes | None = field(default=None, repr=False)
    body_limit_bytes: int = 16 * _MIB
    upload_limit_bytes: int = 64 * _GIB
    catalog_threads: int = 16
    data_threads: int = 8
    most_waiting: int = 512
    request_timeout_s: float = 300.0
    idle_timeout_s: float = 60.0
    keep_alive_s: float = 75.0
    head_limit_bytes: int = 64 * 1024
    drain_s: float = 0.0
    last_requests_s: float = 30.0
    metrics_anonymous: bool = False
    worker: int = 0
    background: BackgroundSettings = field(default_factory=BackgroundSettings)

    @property
    def asks_nobody(self) -> bool:
        """Whether anybody may do anything."""
        return not self.clients and self.oidc is None

    @property
    def vend_credentials(self) -> bool:
        """Whether clients get credentials of the store."""
        return self.vending is not None
