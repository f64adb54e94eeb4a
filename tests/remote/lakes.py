"""Lakes behind a server: opened as remote catalogs, and meddled with as any other."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import mooring
from mooring.catalog import Catalog
from mooring.remote.opening import open_remote
from tests.lakes import Kind, Lake
from tests.own_server import run_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.namespace.api import Backend
    from mooring.remote.backend import RemoteBackend
    from tests.lakes import FakeClock

__all__ = ["RemoteLake"]


@dataclass(frozen=True)
class RemoteKind(Kind):
    """A kind of catalog behind a server."""

    @property
    def namespace(self) -> str:
        """The class by which clients of the specification open it."""
        return "mooring.RemoteNamespace"


class RemoteLake(Lake):
    """A lake whose users see a server of Mooring's; one for each author, as nobody signs in."""

    _stack: ExitStack
    _servers: dict[str, str]

    def __init__(self, kind: Kind, uri: str, options: Mapping[str, str], clock: FakeClock) -> None:
        super().__init__(RemoteKind(**vars(kind)), uri, options, clock)

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._servers = {}
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def address(self, author: str = "alice") -> str:
        """Return where Lance REST is, in somebody's name; it is served from then on."""
        if author not in self._servers:
            served = self.beneath_catalog(author)
            self._servers[author] = self._stack.enter_context(run_server(served))
        return f"{self._servers[author]}/lance"

    def settle(self) -> None:
        """End the servers: whoever gives a request up does not wait for what is undone of it."""
        self._stack.close()
        self._servers.clear()
        self._backend = None

    def open(  # type: ignore[override]  # a backend all the same
        self, *, author: str = "alice", read_only: bool = False, **_: object
    ) -> RemoteBackend:
        """Open the catalog anew, as another process would."""
        return open_remote(
            {"uri": self.address(author)}, {}, author=author, read_only=read_only, clock=self.clock
        )

    def beneath(self) -> Backend:
        """Open what is served, without the server."""
        return super().open()

    def beneath_catalog(self, author: str = "alice") -> Catalog:
        """Open what is served as people do."""
        scheme = "metastore+" if self.kind.metastore else ""
        return Catalog(super().open(author=author), f"{scheme}{self.uri}")

    def connect(self, **options: Any) -> Catalog:
        """Open the catalog as people do."""
        given = {key: value for key, value in options.items() if key in {"read_only", "author"}}
        return mooring.connect(f"lance+{self.address()}", **given)

    @property
    def properties(self) -> dict[str, str]:
        """What `mooring.RemoteNamespace` needs to open the catalog."""
        return {"uri": self.address()}

    @property
    def managed(self) -> dict[str, str]:
        """The same: the server says who commits."""
        return self.properties
