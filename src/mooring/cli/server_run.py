"""A server that a command runs: what it needs, which catalogs it opens, until it is told to end."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mooring.errors import MissingExtraError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from mooring.cli.operating import Operating
    from mooring.cli.served_catalogs import WantedCatalog
    from mooring.server.service import Service
    from mooring.server.settings import ServerSettings

__all__ = ["ServerRun", "require_server"]

_NEEDED_LATER = ("httpx2", "jwt")  # by webhooks and by tokens of others


def require_server() -> None:
    """Refuse where what serves is not installed.

    Raises:
        MissingExtraError: with the line that installs it.
    """
    try:
        import mooring.server.metrics
        import mooring.server.running  # noqa: F401  # what both need is looked for

        _find(*_NEEDED_LATER)
    except ModuleNotFoundError as exc:
        if (exc.name or "mooring").startswith("mooring"):
            raise
        msg = f"to serve a catalog, package '{exc.name}' is needed: pip install 'mooring[server]'"
        raise MissingExtraError(msg) from exc


def _find(*packages: str) -> None:
    """Look for packages without importing them.

    Raises:
        ModuleNotFoundError: one is not there.
    """
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)


@dataclass(frozen=True, slots=True)
class ServerRun:
    """A server that is to be run in this process.

    Attributes:
        catalogs: What it serves.
        settings: How.
        operating: How it is run.
        quiet: Whether requests are not logged.
    """

    catalogs: Sequence[WantedCatalog]
    settings: ServerSettings
    operating: Operating
    quiet: bool = False

    def run(
        self,
        taken: socket.socket,
        ready: Callable[[Service], None],
        parent: socket.socket | None = None,
    ) -> None:
        """Serve on a socket until told to end.

        Args:
            taken: The socket.
            ready: Called when it is served.
            parent: A socket to the process that watches over this one, if one does.
        """
        from mooring.server.app import app_of, create_service
        from mooring.server.metrics import Metrics
        from mooring.server.running import Run, run
        from mooring.store.reported import report_stores

        metrics = Metrics()
        with report_stores(metrics.count_store_request):
            opened = {one.name: one.open() for one in self.catalogs}
            service = create_service(opened, self.settings, metrics)
            how = Run(
                lambda: ready(service),
                self.settings,
                self.operating.access_log(quiet=self.quiet),
                service.ending,
                parent,
            )
            run(app_of(service), taken, how)
