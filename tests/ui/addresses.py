"""The address of every page and action for something that is there, made from the routes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from mooring.server.ui.route import Action, Page
from mooring.server.ui.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mooring.server.ui.route import Route

__all__ = ["ACTIONS", "PAGES", "address_of", "addresses"]

PAGES: tuple[Page, ...] = tuple(one for one in ROUTES if isinstance(one, Page))
ACTIONS: tuple[Action, ...] = tuple(one for one in ROUTES if isinstance(one, Action))
_VARIABLE = re.compile(r"\{(\w+)\}")


def address_of(route: Route, known: Mapping[str, str]) -> str:
    """Return where a route leads to something, below the catalog.

    Args:
        route: The page or action.
        known: What stands for each variable; for one route alone, by its name and the variable's:
            ``Undrop table``.
    """

    def find(match: re.Match[str]) -> str:
        return quote(known.get(f"{route.name} {match[1]}", known.get(match[1], "")), safe="")

    path = _VARIABLE.sub(find, route.path).strip("/")
    assert "//" not in path, f"nothing stands for a variable of {route.path}"
    return path + known.get(f"{route.name}?", "")


def addresses(known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return the names and addresses of all pages."""
    for one in PAGES:
        yield one.name, address_of(one, known)
