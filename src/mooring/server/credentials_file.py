"""The file that says who may use a server, and what each may do there.

One table a client; its name is of no meaning beyond the file. Of a secret only a digest is kept:

    [etl]
    id = "etl"
    secret_sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    role = "writer"
    catalog = "lake"
    namespace = "sales$raw"

Several roles are tables `[[etl.grants]]` of `role`, `catalog` and `namespace`. A table `[oidc]`
says whose tokens are taken beside: see `mooring.server.oidc`.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from mooring.errors import ConflictError, InvalidInputError, NotFoundError
from mooring.identifiers import DELIMITER, ObjectId, quote
from mooring.private_file import replace_private
from mooring.server.oidc import OidcGrant, OidcSettings
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, digest_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = [
    "Credentials",
    "add_client",
    "is_readable_by_others",
    "make_secret",
    "read_clients",
    "read_credentials",
    "remove_client",
]

_OIDC = "oidc"
_SECRET_BYTES = 32
_DIGEST = re.compile(r"[0-9a-f]{64}")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_MAKE_DIGEST = (
    'make one with "mooring token create ID --file FILE", or the digest of this one with'
    ' "mooring token digest"'
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who may use a server.

    Attributes:
        clients: Those who have a secret.
        oidc: Whose tokens are taken beside; None where nobody's are.
    """

    clients: tuple[Client, ...] = ()
    oidc: OidcSettings | None = None


class _Held(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A role somewhere, as the file has it."""

    role: Role
    catalog: str | None = None
    namespace: str | list[str] = ""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    secret_sha256: str
    role: Role | None = None
    catalog: str | None = None
    namespace: str | list[str] = ""
    grants: list[_Held] = []


class _OidcHeld(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    role: Role
    group: str | None = None
    subject: str | None = None
    catalog: str | None = None
    namespace: str | list[str] = ""


class _Oidc(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    issuer: str
    audience: str | list[str]
    jwks_uri: str | None = None
    jwks_file: str | None = None
    ca_file: str | None = None
    algorithms: list[str] | None = None
    subject_claim: str = "sub"
    groups_claim: str = "groups"
    leeway_s: int = 30
    grants: list[_OidcHeld] = []


# -- reading ---------------------------------------------------------------------------------------


def read_clients(path: Path) -> tuple[Client, ...]:
    """Read who may use a server by a secret.

    Raises:
        NotFoundError: there is no such file.
        InvalidInputError: it is not as it should be, or names nobody.
    """
    found = read_credentials(path)
    if not found.clients and found.oidc is None:
        msg = (
            f"the credentials file '{path}' names no client: add one with"
            f' "mooring token create ID --file {path}"'
        )
        raise InvalidInputError(msg)
    return found.clients


def read_credentials(path: Path) -> Credentials:
    """Read who may use a server, which may be nobody.

    Raises:
        NotFoundError: there is no such file.
        InvalidInputError: it is not as it should be.
    """
    return _parse(_read(path), path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as exc:
        raise NotFoundError(f"there is no credentials file '{path}'") from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInputError(f"the credentials file '{path}' cannot be read: {exc}") from exc


def _parse(text: str, path: Path) -> Credentials:
    where = f"the credentials file '{path}'"
    try:
        tables: dict[str, Any] = tomllib.loads(text)
        _refuse_secrets(tables, where)
        oidc = tables.pop(_OIDC, None)
        entries = msgspec.convert(tables, dict[str, _Entry])
        settings = None if oidc is None else msgspec.convert(oidc, _Oidc)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as exc:
        msg = (
            f"{where} is not as it should be: {exc}; it has a table for each client, with 'id',"
            ' \'secret_sha256\' and \'role\' of "reader", "writer" or "admin"'
        )
        raise InvalidInputError(msg) from exc
    clients = tuple(_client(entry, where) for entry in entries.values())
    ids = [client.id for client in clients]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise InvalidInputError(f"{where} names client {quote(twice)} twice")
    return Credentials(clients, None if settings is None else _oidc(settings, path))


def _refuse_secrets(tables: Mapping[str, Any], where: str) -> None:
    for name, table in tables.items():
        if isinstance(table, dict) and "secret" in table:
            msg = (
                f"[{name}] of {where} holds a secret itself, where only its digest belongs, as"
                f" 'secret_sha256': {_MAKE_DIGEST}"
            )
            raise InvalidInputError(msg)


def _client(entry: _Entry, where: str) -> Client:
    whose = f"client {quote(entry.id)} of {where}"
    if not entry.id or ":" in entry.id or not entry.id.isprintable():
        raise InvalidInputError(f"{whose} needs an id without a colon")
    if not _DIGEST.fullmatch(entry.secret_sha256) or entry.secret_sha256 == digest_of(""):
        msg = f"{whose} needs 64 hexadecimal digits as 'secret_sha256': {_MAKE_DIGEST}"
        raise InvalidInputError(msg)
    if entry.grants and (entry.role or entry.catalog or entry.namespace):
        msg = f"{whose} has both roles of its own and 'grants': say all of it in 'grants'"
        raise InvalidInputError(msg)
    held = entry.grants or [_Held(entry.role or Role.READER, entry.catalog, entry.namespace)]
    grants = tuple(_grant(one.role, one.catalog, one.namespace, whose) for one in held)
    return Client(entry.id, entry.secret_sha256, grants)


def _grant(role: Role, catalog: str | None, namespace: str | list[str], whose: str) -> Grant:
    if catalog == "":
        raise InvalidInputError(f"{whose} has a role in a catalog without a name: leave it out")
    try:
        within = ObjectId.parse(namespace) if isinstance(namespace, str) else ObjectId.of(namespace)
    except InvalidInputError as exc:
        raise InvalidInputError(f"{whose} has a role in no namespace: {exc}") from exc
    return Grant(role, catalog, within)


def _oidc(given: _Oidc, path: Path) -> OidcSettings:
    whose = f"[{_OIDC}] of the credentials file '{path}'"
    grants = []
    for one in given.grants:
        if (one.group is None) == (one.subject is None) or "" in {one.group, one.subject}:
            msg = f"each grant of {whose} needs the 'group' or the 'subject' that it is for"
            raise InvalidInputError(msg)
        grant = _grant(one.role, one.catalog, one.namespace, whose)
        grants.append(OidcGrant(grant, group=one.group, subject=one.subject))
    audience = [given.audience] if isinstance(given.audience, str) else given.audience
    settings = OidcSettings(
        issuer=given.issuer,
        audience=tuple(audience),
        jwks_uri=given.jwks_uri,
        # What is named beside the file lies beside it.
        jwks_file=None if given.jwks_file is None else path.parent / given.jwks_file,
        ca_file=None if given.ca_file is None else path.parent / given.ca_file,
        subject_claim=given.subject_claim,
        groups_claim=given.groups_claim,
        leeway_s=given.leeway_s,
        grants=tuple(grants),
    )
    if given.algorithms is not None:
        settings = replace(settings, algorithms=tuple(given.algorithms))
    settings.check(whose)
    return settings


def is_readable_by_others(path: Path) -> bool:
    """Whether others than the file's owner can read it."""
    return os.name == "posix" and bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


# -- changing --------------------------------------------------------------------------------------


def make_secret() -> str:
    """Return a secret that nobody can guess, so that its plain digest tells nothing about it."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def add_client(path: Path, client: Client) -> None:
    """Add a client; the file is made where there is none, and only its owner can read it.

    Raises:
        ConflictError: there is one of this id.
        InvalidInputError: the file is not as it should be, or the id cannot be one.
    """
    with _changing(path):
        text = _read(path) if path.exists() else ""
        known = _parse(text, path).clients
        if any(one.id == client.id for one in known):
            msg = (
                f"there is a client {quote(client.id)} in '{path}' already: choose another id, or"
                f' "mooring token revoke {client.id} --file {path}" first'
            )
            raise ConflictError(msg)
        entry = _format(_free_name(client.id, text), client)
        _replace(path, f"{text.rstrip()}\n\n{entry}".lstrip("\n"), (*known, client))


def remove_client(path: Path, client_id: str) -> None:
    """Remove a client; a running server that uses the file notices.

    Raises:
        NotFoundError: there is none of this id, or no file.
        InvalidInputError: the file is not as it should be, or cannot be changed safely.
    """
    with _changing(path):
        text = _read(path)
        known = _parse(text, path).clients
        if all(one.id != client_id for one in known):
            raise NotFoundError(f"there is no client {quote(client_id)} in '{path}'")
        tables = tomllib.loads(text)
        name = next(key for key, table in tables.items() if table.get("id") == client_id)
        kept = tuple(one for one in known if one.id != client_id)
        _replace(path, _without(text, name), kept)


@contextmanager
def _changing(path: Path) -> Iterator[None]:
    """Keep others from changing a file at the same time; whoever dies keeps nobody."""
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, text: str, expected: Sequence[Client]) -> None:
    if _parse(text, path).clients != tuple(expected):
        raise InvalidInputError(f"'{path}' cannot be changed safely: edit it by hand")
    replace_private(path.resolve(), text)


def _without(text: str, name: str) -> str:
    """Leave out a table and those in it, and keep comments and everything else."""
    kept: list[str] = []
    keep = True
    for line in text.splitlines(keepends=True):
        if line.lstrip()[:1] == "[":
            keep = _table_of(line) != name
        if keep or line.lstrip()[:1] == "#":
            kept.append(line)
    return "".join(kept)


def _table_of(header: str) -> str | None:
    try:
        return next(iter(tomllib.loads(header)), None)
    except tomllib.TOMLDecodeError:
        return None


def _free_name(client_id: str, text: str) -> str:
    """Name a client's table by its id, or nearly so where that is taken or means something else."""
    taken = {*tomllib.loads(text), _OIDC}
    name = client_id
    while name in taken:
        name += "_"
    return name


def _format(name: str, client: Client) -> str:
    key = name if _BARE_KEY.fullmatch(name) else _value(name)
    head = f"[{key}]\nid = {_value(client.id)}\nsecret_sha256 = {_value(client.digest)}\n"
    if len(client.grants) == 1:
        return head + _format_grant(client.grants[0])
    return head + "".join(f"\n[[{key}.grants]]\n{_format_grant(one)}" for one in client.grants)


def _format_grant(grant: Grant) -> str:
    lines = [f"role = {_value(grant.role.value)}"]
    if grant.catalog is not None:
        lines.append(f"catalog = {_value(grant.catalog)}")
    names = list(grant.namespace.names)
    if names:
        is_plain = not any(DELIMITER in name for name in names)
        lines.append(f"namespace = {_value(DELIMITER.join(names) if is_plain else names)}")
    return "".join(f"{line}\n" for line in lines)


def _value(value: object) -> str:
    # What JSON escapes TOML escapes likewise, save for the delete character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
