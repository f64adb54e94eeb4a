"""An operation of the protocol: where it is, what it takes and gives, and how it may fail.

Spec: lance-rest-openapi, "paths".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from mooring.server.roles import Role
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ABSENT", "OK", "Gives", "Operation", "Param", "Takes"]

OK, ABSENT = 200, 404


class Takes(Enum):
    """What a request's body is."""

    FIELDS = auto()  # of the request's model, as JSON
    METADATA = auto()  # a map, which is one field of the model
    ROWS = auto()  # an Arrow IPC stream; the model's fields are parameters


class Gives(Enum):
    """What an answer's body is."""

    FIELDS = auto()  # of the answer's model, as JSON
    METADATA = auto()  # a map, which is one field of the model
    NOTHING = auto()
    NUMBER = auto()
    TEXT = auto()
    ROWS = auto()  # an Arrow IPC file


class Param(Enum):
    """How a parameter is written."""

    TEXT = auto()
    FLAG = auto()
    NUMBER = auto()
    TEXTS = auto()  # several, each given on its own, as a name may hold whatever would separate
    MAP = auto()  # as JSON


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Attributes:
        name: As the document calls it.
        method: Of HTTP.
        path: As the document writes it.
        call: The method of Lance's namespaces.
        model: Of the request.
        role: Who may call it.
        lane: Which threads work on it.
        takes: What the body is.
        gives: What the answer is.
        params: What may stand in the query, beside the delimiter.
        status: Of success.
        listed: Statuses of failures, beside those that all have.
    """

    name: str
    method: str
    path: str
    call: str
    model: Any
    role: Role = Role.WRITER
    lane: Lane = Lane.CATALOG
    takes: Takes = Takes.FIELDS
    gives: Gives = Gives.FIELDS
    params: Mapping[str, Param] = field(default_factory=dict)
    status: int = OK
    listed: frozenset[int] = frozenset({ABSENT})

    @property
    def changes(self) -> bool:
        """Whether it changes something."""
        return self.role is not Role.READER

    @property
    def segments(self) -> tuple[str, ...]:
        """The path in parts."""
        return tuple(self.path.strip("/").split("/"))
