"""What is added to a failure for whoever typed the line: close names, and lines that can be typed.

The library names a verb that helps and knows nothing of the line; here it gets the catalog that
the line named. Whatever goes wrong meanwhile is left out: the failure itself has to be told.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from mooring.cli.closeness import close_names, did_you_mean, tables_around
from mooring.errors import (
    MooringError,
    NamespaceNotFoundError,
    NotLanceTableError,
    ReadOnlyError,
    TableNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mooring.catalog import Catalog
    from mooring.cli.session import Session

__all__ = ["advise"]

_NO_TABLE = re.compile(r"there is no table '(?P<name>[^']+)'")
_NOT_DROPPED = re.compile(r"nothing dropped is named '(?P<name>[^']+)'")
_NO_NAMESPACE = re.compile(r"there is no namespace '(?P<name>[^']+)'")
# Verbs that work on the catalog of the line.
_LINE = re.compile(r'"mooring (?=(?:table|namespace|trash|changes|compact|publish|audit) )')


def advise(exc: MooringError, session: Session | None) -> str:
    """Write a failure for whoever typed the line.

    Args:
        exc: The failure.
        session: What the line said; None where it was not read to its end.
    """
    text = str(exc)
    if session is None:
        return text
    # By a function, for a path may hold what a pattern's replacement would take for a reference.
    return _LINE.sub(lambda _: f'"{session.program} ', text + _addition(exc, text, session))


def _addition(exc: MooringError, text: str, session: Session) -> str:
    match exc:
        case ReadOnlyError() if session.config.is_read_only:
            source = session.config.settings["read_only"].source
            return f", as is said by: {source}; --no-read-only lifts it"
        case NotLanceTableError():
            return ""
        case TableNotFoundError():
            missing = _NO_TABLE.fullmatch(text)
            if missing:
                name = missing["name"]
                return _close(name, session, lambda catalog: tables_around(catalog, name))
            missing = _NOT_DROPPED.fullmatch(text)
            return _close(missing["name"], session, _dropped) if missing else ""
        case NamespaceNotFoundError():
            missing = _NO_NAMESPACE.fullmatch(text)
            return _about_namespace(missing["name"], session) if missing else ""
        case _:
            return ""


def _about_namespace(name: str, session: Session) -> str:
    close = _close(name, session, _namespaces)
    return close or f'; make it with "mooring namespace create {shlex.quote(name)}"'


def _close(name: str, session: Session, names: Callable[[Catalog], Iterable[str]]) -> str:
    try:
        return did_you_mean(close_names(name, names(session.open_catalog())))
    except MooringError:
        return ""


def _dropped(catalog: Catalog) -> Iterable[str]:
    return (str(table.id) for table in catalog.list_purgable_tables())


def _namespaces(catalog: Catalog) -> Iterable[str]:
    from mooring.cli.listing import LIVE, list_namespaces

    return (listed.name for listed in list_namespaces(catalog) if listed.state == LIVE)
