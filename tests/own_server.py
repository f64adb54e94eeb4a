"""A server of Mooring's as a context manager: in a thread, on a port of its own."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

import uvicorn

from mooring.server.app import app_of, create_app
from mooring.server.running import address_of, bind
from mooring.server.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lance_namespace import LanceNamespace

    from mooring.catalog import Catalog
    from mooring.server.settings import ServerSettings

    Catalogs = Catalog | LanceNamespace | Mapping[str, Catalog | LanceNamespace] | Service

__all__ = ["run_server"]


@contextmanager
def run_server(catalogs: Catalogs, settings: ServerSettings | None = None) -> Iterator[str]:
    """Serve catalogs until the context ends; the value is the server's address, of no protocol."""
    app = app_of(catalogs) if isinstance(catalogs, Service) else create_app(catalogs, settings)
    with bind("127.0.0.1", 0) as taken:
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", ws="none")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            yield f"http://{address_of(taken)}"
        finally:
            server.should_exit = True
            thread.join()
