"""``mooring token``: who may use a server, in its credentials file.

Of a secret the file holds a digest alone: it is shown once, when it is made.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mooring.cli.options import command, group
from mooring.cli.session import Session
from mooring.errors import InvalidInputError

__all__ = ["app"]

app = typer.Typer()

_FEWEST_CHARACTERS = 20
_ROLES = ("reader", "writer", "admin")

ClientId = Annotated[str, typer.Argument(metavar="ID", help="The client's name.")]
File = Annotated[
    Path,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help='The credentials file of "mooring serve --credentials".',
    ),
]


@app.callback(invoke_without_command=True)
@group
def token() -> None:
    """Clients of a server, in its credentials file."""


@app.command("create")
@command
def create_command(
    session: Session,
    client_id: ClientId,
    file: File,
    role: Annotated[
        str,
        typer.Option("--role", metavar="ROLE", help="What it may do: reader, writer or admin."),
    ] = "reader",
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            metavar="NAME",
            help="In which of the served catalogs, by its name there; in all unless given.",
        ),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            metavar="NAME",
            help="In which namespace, and all that lies in it: a, or a$b; in all unless given.",
        ),
    ] = "",
) -> None:
    """Add a client, and print its id and secret, which nobody can read again.

    The file is made where there is none, and only its owner can read it. A server that uses it
    knows the client at once.
    """
    from mooring.identifiers import ObjectId
    from mooring.server.credentials_file import add_client, make_secret
    from mooring.server.roles import Grant, Role
    from mooring.server.settings import Client

    if role not in _ROLES:
        raise InvalidInputError(f"'{role}' is no role: choose one of {', '.join(_ROLES)}")
    secret = make_secret()
    grant = Grant(Role(role), catalog, ObjectId.parse(namespace))
    add_client(file, Client.of(client_id, secret, grant))
    session.output.change(
        {"id": client_id, "token": f"{client_id}:{secret}", **_where(grant), "result": "created"},
        f"client '{client_id}' is in '{file}'; its token is shown this once:",
    )
    if session.output.is_for_people:
        sys.stdout.write(f"{client_id}:{secret}\n")


@app.command("list")
@command
def list_command(session: Session, file: File) -> None:
    """List the clients and what each may do; no secret is there to be shown."""
    from mooring.server.credentials_file import read_credentials

    rows = [
        {"id": client.id, **_where(grant)}
        for client in read_credentials(file).clients
        for grant in client.grants
    ]
    session.output.rows(["id", "role", "catalog", "namespace"], rows)


@app.command("revoke")
@command
def revoke_command(session: Session, client_id: ClientId, file: File) -> None:
    """Remove a client; a server that uses the file refuses it, and its tokens, at once."""
    from mooring.server.credentials_file import remove_client

    remove_client(file, client_id)
    session.output.change(
        {"id": client_id, "result": "revoked"}, f"client '{client_id}' is no longer in '{file}'"
    )


@app.command("digest")
@command
def digest_command(session: Session) -> None:
    """Print the digest of a secret that is read from standard input, for a file made elsewhere.

    A secret is long and random, as of "openssl rand -base64 32": whoever gets hold of the file can
    try words and short ones one by one.
    """
    from mooring.server.settings import digest_of

    if sys.stdin.isatty():
        session.output.message("type the secret, then Enter:")
    secret = sys.stdin.readline().rstrip("\r\n")
    if len(secret) < _FEWEST_CHARACTERS:
        msg = (
            f"a secret has at least {_FEWEST_CHARACTERS} random characters: make one with"
            ' "openssl rand -base64 32"'
        )
        raise InvalidInputError(msg)
    found = digest_of(secret)
    if session.output.is_for_people:
        sys.stdout.write(f"{found}\n")
    else:
        session.output.record({"secret_sha256": found})


def _where(grant: Any) -> dict[str, str | None]:  # noqa: ANN401  # of a module that is imported late
    return {
        "role": str(grant.role),
        "catalog": grant.catalog,
        "namespace": str(grant.namespace) or None,
    }
