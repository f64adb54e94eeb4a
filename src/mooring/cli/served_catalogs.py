"""Which catalogs a server serves, and under which names."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.session import Session
from mooring.config import mask_uris
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.foreign import Servable

__all__ = [
    "CATALOGS",
    "DEFAULT_NAME",
    "CatalogName",
    "NamedCatalogs",
    "ServedUri",
    "WantedCatalog",
    "wanted_catalogs",
]

# As the server demands it; a path that looks like it is written with a ./ before it.
_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,62})=(.+)", re.DOTALL)
_FOREIGN = "impl+"
DEFAULT_NAME = "default"

# How the help groups them.
CATALOGS = "Catalogs"

ServedUri = Annotated[
    str | None,
    typer.Argument(metavar="URI", help="The catalog; others come beside it by --catalog NAME=URI."),
]
NamedCatalogs = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog",
        "-c",
        metavar="[NAME=]URI",
        rich_help_panel=CATALOGS,
        help="A catalog under a name, may be repeated: a URI as elsewhere; @PROFILE for that of a"
        " profile; impl+CLASS?KEY=VALUE for another implementation of Lance's namespaces, as in"
        " impl+dir?root=/data. Without a name, the same as URI.",
    ),
]
CatalogName = Annotated[
    str,
    typer.Option(
        "--name",
        metavar="NAME",
        rich_help_panel=CATALOGS,
        help="The name of the catalog that was given as URI.",
    ),
]


@dataclass(frozen=True, slots=True)
class WantedCatalog:
    """A catalog to serve.

    Attributes:
        name: By which clients choose it.
        session: Knows its URI, and how to open it.
    """

    name: str
    session: Session

    @property
    def shown(self) -> str:
        """Where it is, without secrets."""
        return mask_uris(self.session.uri)

    @property
    def is_foreign(self) -> bool:
        """Whether it is another implementation of Lance's namespaces."""
        return self.session.uri.startswith(_FOREIGN)

    def open(self) -> Servable:
        """Open it.

        Raises:
            InvalidInputError: it cannot be opened so.
            NamespaceNotFoundError: a catalog on disk does not exist.
        """
        if not self.is_foreign:
            return self.session.open_catalog()
        if self.session.config.is_read_only:
            msg = f"--read-only cannot be kept for '{self.shown}': name clients that are readers"
            raise InvalidInputError(msg)
        from mooring.server.foreign import open_foreign

        return open_foreign(self.session.uri)


def wanted_catalogs(
    session: Session, uri: str | None, given: Sequence[str], name: str
) -> list[WantedCatalog]:
    """Return the catalogs to serve; what environment or profile name counts where none is given.

    Args:
        session: The command's.
        uri: What was given as the catalog.
        given: What was given as options, with a name or without.
        name: The name of the one without.

    Raises:
        InvalidInputError: two are given without a name, or with the same, or one is no catalog; or
            the name is that of none.
    """
    plain = [one for one in given if not _NAMED.fullmatch(one)]
    for one in plain:
        if one.startswith("=") or one.endswith("="):
            raise InvalidInputError(f"'{mask_uris(one)}' names no catalog: write NAME=URI")
        if uri not in {None, one}:
            raise InvalidInputError(
                f"two catalogs without a name are given, '{mask_uris(uri or '')}' and"
                f" '{mask_uris(one)}': name one of them with --catalog NAME=URI"
            )
        uri = one
    named = [match.groups() for one in given if (match := _NAMED.fullmatch(one))]
    wanted = [] if uri is None and named else [WantedCatalog(name, session.at(uri))]
    wanted += [WantedCatalog(called, _session_of(session, where)) for called, where in named]
    names = [one.name for one in wanted]
    if name != DEFAULT_NAME and name not in names:
        raise InvalidInputError(f"--name {name} is of no use: every catalog has a name already")
    for twice in {called for called in names if names.count(called) > 1}:
        msg = f"two catalogs are named '{twice}': name one otherwise, with NAME=URI or --name"
        raise InvalidInputError(msg)
    return wanted


def _session_of(session: Session, where: str) -> Session:
    if where.startswith("@"):
        flags = replace(session.flags, catalog=None, profile=where.removeprefix("@"))
        # The profile counts more than what the environment says about any catalog.
        environ = {key: value for key, value in session.environ.items() if key != "MOORING_CATALOG"}
        return Session(flags, environ)
    return Session(replace(session.flags, catalog=where), session.environ)
