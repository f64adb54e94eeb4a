"""What a server is told: who may use it, what it hands out, and where its limits are."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Client", "Role", "ServerSettings"]

_MIB = 1024 * 1024


class Role(StrEnum):
    """What a client may do."""

    READER = "reader"
    WRITER = "writer"


@dataclass(frozen=True, slots=True)
class Client:
    """Somebody who may use the server.

    Attributes:
        id: The name, in which changes are recorded.
        secret: What proves it.
        role: What the client may do.
    """

    id: str
    secret: str = field(repr=False)
    role: Role = Role.READER


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How a server behaves.

    Attributes:
        root_namespace: What Iceberg clients see the tables of the root in, as Iceberg has none.
        clients: Who may use it; anybody where there are none.
        vend_credentials: Whether writers get the credentials of the store.
        token_ttl_s: How long a token is good for.
        body_limit_bytes: The largest request.
        threads: How many requests are worked on at once; others wait.
    """

    root_namespace: str = "root"
    clients: tuple[Client, ...] = ()
    vend_credentials: bool = False
    token_ttl_s: int = 3600
    body_limit_bytes: int = 16 * _MIB
    threads: int = 16
