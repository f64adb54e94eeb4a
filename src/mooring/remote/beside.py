"""What a server offers beside Lance REST: the lives of tables, as Mooring's servers tell them.

Whether it does is found out once, by asking, when something of it is first needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from mooring.errors import (
    InvalidInputError,
    NotFoundError,
    PermissionDeniedError,
    UnreadableError,
    UnsupportedError,
)
from mooring.http.address import show_address
from mooring.remote.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.remote.settings import RemoteSettings

__all__ = ["Beside", "Facts"]

_FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says about its catalog.

    Attributes:
        name: By which the server has it.
        kind: What kind of catalog stands behind the server.
        levels: The level of every table where there is one level only.
        managed_versioning: Whether whoever opens a table is to commit through the server.
        keeps_versions: Whether versions are records of the catalog's own.
        read_only: Whether it refuses every change.
        version: Of Mooring, there.
    """

    name: str
    kind: str
    levels: int | None
    managed_versioning: bool
    keeps_versions: bool
    read_only: bool
    version: str

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Facts | None:
        """Read an answer; None where it is none of Mooring's."""
        kind, levels = answer.get("kind"), answer.get("levels")
        if not isinstance(kind, str):
            return None
        return cls(
            str(answer.get("name") or ""),
            kind,
            levels if isinstance(levels, int) else None,
            answer.get("managed_versioning") is True,
            answer.get("keeps_versions") is True,
            answer.get("read_only") is True,
            str(answer.get("version") or ""),
        )


class Beside:
    """The part of a server that is not Lance REST; safe for threads."""

    def __init__(self, settings: RemoteSettings) -> None:
        """Know where it would be; nothing is asked yet.

        Args:
            settings: How the server is reached.
        """
        self._server = show_address(settings.address)
        address = settings.mooring_address
        self._endpoint = None if address is None else Endpoint(settings, address, self._levels)
        self._lock = Lock()
        self._is_known = self._endpoint is None
        self._facts: Facts | None = None

    def _levels(self) -> int | None:
        return self.facts.levels if self.facts else None

    @property
    def facts(self) -> Facts | None:
        """What the server says about its catalog; None where it has only Lance REST.

        Raises:
            ServiceUnavailableError: it does not answer.
            UnauthenticatedError: it knows nobody of this name.
        """
        if self._is_known:
            return self._facts
        with self._lock:
            if not self._is_known:
                self._facts = self._ask()
                self._is_known = True
            return self._facts

    def _ask(self) -> Facts | None:
        if self._endpoint is None:
            return None
        try:
            answer = self._endpoint.of_catalog("catalog", "the catalog", method="GET")
        except (
            InvalidInputError,
            NotFoundError,
            PermissionDeniedError,  # where all else is refused, too, that is soon told
            UnreadableError,
            UnsupportedError,
        ):
            return None
        return Facts.read(answer)

    def offered(self) -> Endpoint | None:
        """Return where things are asked for; None where the server has only Lance REST.

        A foreign catalog behind a server of Mooring's has no more, either.
        """
        is_there = self.facts is not None and self.facts.kind != _FOREIGN
        return self._endpoint if is_there else None

    def require(self, wish: str) -> Endpoint:
        """Return where things are asked for.

        Args:
            wish: What is wanted, for the message.

        Raises:
            UnsupportedError: the server has only Lance REST.
        """
        found = self.offered()
        if found is None:
            msg = (
                f"'{self._server}' cannot {wish}: it is a server of Lance REST alone, which has no"
                ' way to say that; a catalog that is served by "mooring serve" can, or do it where'
                " the catalog lies"
            )
            raise UnsupportedError(msg)
        return found
