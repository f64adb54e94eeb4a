"""A request as the operations see it, and their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from mooring.errors import InvalidInputError
from mooring.server.iceberg.names import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.identifiers import ObjectId
    from mooring.namespace.api import Backend
    from mooring.server.auth import Authority
    from mooring.server.iceberg.names import Names
    from mooring.server.roles import Identity
    from mooring.server.settings import ServerSettings
    from mooring.server.vending import Vendor

__all__ = ["NO_CONTENT", "Answer", "Call"]

T = TypeVar("T")
_DELEGATION = "x-iceberg-access-delegation"
_VENDED = "vended-credentials"


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to a client.

    Attributes:
        body: To be written as JSON; None for nothing.
        status: Of HTTP.
        headers: What else is told.
    """

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


NO_CONTENT = Answer(status=204)


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        backend: The catalog, in the name of whoever asks.
        catalog: Its name.
        is_only: Whether the server has no other.
        names: What names mean in it.
        settings: Of the server.
        identity: Who asks.
        authority: Gives out tokens.
        vendor: Gives out credentials of the store; None where clients get none.
        path: The variable segments of the path, by name.
        query: The parameters.
        headers: By name in small letters.
        body: As it was sent.
    """

    backend: Backend
    catalog: str
    is_only: bool
    names: Names
    settings: ServerSettings
    identity: Identity
    authority: Authority
    vendor: Vendor | None
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def namespace(self) -> ObjectId:
        """The namespace that the path names.

        Raises:
            InvalidNameError: it cannot be one.
            NamespaceNotFoundError: there can be no such namespace.
        """
        return self.names.namespace(self.path["namespace"].split(SEPARATOR))

    @property
    def table(self) -> ObjectId:
        """The table that the path names.

        Raises:
            InvalidNameError: it cannot be one.
            NamespaceNotFoundError: there can be no such namespace.
        """
        return self.namespace.child(self.path["table"])

    @property
    def wants_credentials(self) -> bool:
        """Whether the client would take credentials of the store."""
        asked = self.headers.get(_DELEGATION, "")
        return _VENDED in {one.strip().lower() for one in asked.split(",")}

    def read(self, shape: type[T]) -> T:
        """Read the body.

        Raises:
            InvalidInputError: it is not JSON, or not of this shape.
        """
        try:
            return msgspec.json.decode(self.body, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
            raise InvalidInputError(f"the request is not as it should be: {exc}") from exc
