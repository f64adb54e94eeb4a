"""A page, a picture or an action: where it is, who may have it, and what makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from mooring.server.roles import Role
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mooring.identifiers import ObjectId
    from mooring.server.ui.view import Attachment, Done, Question, View
    from mooring.server.ui.visit import Visit

__all__ = [
    "Action",
    "Page",
    "Picture",
    "Route",
    "everything",
    "its_namespace",
    "its_table",
    "nothing_more",
    "seen",
]


def its_table(visit: Visit) -> Sequence[ObjectId]:
    """Ask for the role with the table in the path."""
    return [visit.table]


def its_namespace(visit: Visit) -> Sequence[ObjectId]:
    """Ask for the role in the namespace in the path."""
    return [visit.namespace]


def seen(_: Visit) -> Sequence[ObjectId]:
    """Ask for nothing more: what may not be seen is left out of the page."""
    return []


def nothing_more(_: Visit, __: Mapping[str, str]) -> Sequence[ObjectId]:
    """Ask for no role beyond what the path names."""
    return []


def everything(_: Visit) -> Sequence[ObjectId]:
    """Ask for the role in the whole catalog: what is shown could be about any part of it."""
    from mooring.identifiers import ROOT

    return [ROOT]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Addressed:
    """What stands at an address.

    Attributes:
        name: By which logs and metrics have it.
        path: Below a catalog, with names in braces for what varies; its last word is fixed.
        role: Who may have it.
        touches: What that role is needed for.
        lane: Which threads work on it.
    """

    name: str
    path: str
    role: Role = Role.READER
    touches: Callable[[Visit], Sequence[ObjectId]] = its_table
    lane: Lane = Lane.CATALOG

    @property
    def segments(self) -> tuple[str, ...]:
        """The path in parts."""
        return tuple(self.path.strip("/").split("/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(_Addressed):
    """Something to look at.

    Attributes:
        view: Gathers what is shown, in a thread.
        template: Makes HTML of it.
    """

    view: Callable[[Visit], View]
    template: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture(_Addressed):
    """Bytes that a page shows; it has no twin.

    Attributes:
        make: Makes them, in a thread.
    """

    make: Callable[[Visit], Attachment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(_Addressed):
    """Something to do: it is asked first, and says what will happen.

    Attributes:
        role: Who may do it.
        ask: Says what will happen, and asks for what is needed.
        perform: Does it, with the fields of the form.
        also: What else the role is needed for, by the fields of the form.
        goes_on: Where to look for what comes of it while it takes longer than a browser waits;
            None where it hardly ever does.
    """

    role: Role = Role.WRITER
    ask: Callable[[Visit], Question]
    perform: Callable[[Visit, Mapping[str, str]], Done]
    also: Callable[[Visit, Mapping[str, str]], Sequence[ObjectId]] = nothing_more
    goes_on: Callable[[Visit], Done] | None = None


Route: TypeAlias = Page | Picture | Action
