"""What a server is told: who may use it, what it hands out, and where its limits are."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

from mooring.server.roles import Grant, Role

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
        clients: Who may use it; anybody where there are none.
        vend_credentials: Whether writers get credentials of the store.
        token_ttl_s: How long a token is good for.
        body_limit_bytes: The largest request that is no rows.
        upload_limit_bytes: The most bytes of rows in one request.
        catalog_threads: How many requests about the catalog are worked on at once.
        data_threads: How many requests that read or write rows are worked on at once.
        most_waiting: How many requests of each kind may wait for a thread; others are refused.
        request_timeout_s: How long one may take until its client is told to look later.
        idle_timeout_s: How long a client may send nothing in the middle of a request.
    """

    root_namespace: str = "root"
    clients: tuple[Client, ...] = ()
    vend_credentials: bool = False
    token_ttl_s: int = 3600
    body_limit_bytes: int = 16 * _MIB
    upload_limit_bytes: int = 64 * _GIB
    catalog_threads: int = 16
    data_threads: int = 8
    most_waiting: int = 512
    request_timeout_s: float = 300.0
    idle_timeout_s: float = 60.0
