"""The file that says who may use a server.

One table a client; its name is of no meaning beyond the file:

    [etl]
    id = "etl"
    secret = "a long random string"
    role = "writer"
"""

from __future__ import annotations

import os
import stat
import tomllib
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import InvalidInputError, NotFoundError
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = ["is_readable_by_others", "read_clients"]


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    secret: str
    role: Role = Role.READER


def read_clients(path: Path) -> tuple[Client, ...]:
    """Read who may use a server.

    Raises:
        NotFoundError: there is no such file.
        InvalidInputError: it is not as it should be, or names nobody.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as exc:
        raise NotFoundError(f"there is no credentials file '{path}'") from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInputError(f"the credentials file '{path}' cannot be read: {exc}") from exc
    try:
        entries = msgspec.convert(tomllib.loads(text), dict[str, _Entry])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as exc:
        msg = (
            f"the credentials file '{path}' is not as it should be: {exc}; it has a table for each"
            " client, with 'id', 'secret' and 'role' of \"reader\" or \"writer\""
        )
        raise InvalidInputError(msg) from exc
    clients = tuple(
        Client.of(entry.id, entry.secret, Grant(entry.role)) for entry in entries.values()
    )
    _check(entries.values(), path)
    return clients


def _check(clients: Collection[_Entry], path: Path) -> None:
    if not clients:
        raise InvalidInputError(f"the credentials file '{path}' names no client")
    ids = [client.id for client in clients]
    for client in clients:
        if not client.id or not client.secret or ":" in client.id:
            msg = (
                f"client '{client.id}' of the credentials file '{path}' needs an id without a colon"
                " and a secret"
            )
            raise InvalidInputError(msg)
        if ids.count(client.id) > 1:
            msg = f"the credentials file '{path}' names client '{client.id}' twice"
            raise InvalidInputError(msg)


def is_readable_by_others(path: Path) -> bool:
    """Whether others than the file's owner can read it."""
    return os.name == "posix" and bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
