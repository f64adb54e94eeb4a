"""What an Iceberg REST catalog says about itself before anything else is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mooring.http.address import is_address, trim_address
from mooring.iceberg.paths import Paths, read_separator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.iceberg.settings import ClientSettings

__all__ = ["ServerConfig"]


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """A server's configuration for one of its catalogs.

    Attributes:
        address: Where requests go: the server may send its clients elsewhere.
        prefix: What goes before everything in paths.
        separator: What joins the parts of a namespace in paths, encoded.
        endpoints: What it offers, as ``GET /v1/{prefix}/namespaces``; None where it does not tell.
        properties: Its defaults, over them what the user gave, over that what it insists on.
    """

    address: str
    prefix: str | None
    separator: str
    endpoints: frozenset[str] | None
    properties: Mapping[str, str] = field(repr=False)  # it may hold tokens

    @classmethod
    def read(cls, answer: Mapping[str, Any], settings: ClientSettings) -> ServerConfig:
        """Read a server's answer.

        Args:
            answer: As it was sent.
            settings: What the user gave.
        """
        defaults, overrides = _texts(answer.get("defaults")), _texts(answer.get("overrides"))
        properties = {**defaults, **settings.given(), **overrides}
        moved = overrides.get("uri", "")
        listed = answer.get("endpoints")
        return cls(
            trim_address(moved) if is_address(moved) else settings.address,
            settings.prefix or properties.get("prefix"),
            read_separator(properties.get("namespace-separator")),
            frozenset(map(_normalize, listed)) if isinstance(listed, list) and listed else None,
            properties,
        )

    @property
    def paths(self) -> Paths:
        """Where things are."""
        return Paths(self.prefix, self.separator)

    def offers(self, method: str, path: str) -> bool:
        """Whether the server has an endpoint; one that does not list them may have any.

        Args:
            method: Of HTTP.
            path: As the specification writes it, with its names in braces.
        """
        return self.endpoints is None or _normalize(f"{method} {path}") in self.endpoints


def _texts(found: object) -> dict[str, str]:
    if not isinstance(found, dict):
        return {}
    return {str(key): str(value) for key, value in found.items() if value is not None}


def _normalize(endpoint: object) -> str:
    """Write an endpoint in one way: some servers leave out the first slash."""
    method, _, path = str(endpoint).strip().partition(" ")
    return f"{method.upper()} /{path.strip().strip('/')}"
