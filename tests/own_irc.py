"""Mooring's own Iceberg REST catalog, as a context manager: in a thread, on a port of its own."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

import uvicorn

from mooring.server.app import create_app
from mooring.server.running import address_of, bind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.catalog import Catalog
    from mooring.server.settings import ServerSettings

__all__ = ["run_own"]


@contextmanager
def run_own(catalog: Catalog, settings: ServerSettings | None = None) -> Iterator[str]:
    """Serve a catalog until the context ends; the value is the server's address."""
    with bind("127.0.0.1", 0) as taken:
        config = uvicorn.Config(
            create_app(catalog, settings),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
        )
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            yield f"http://{address_of(taken)}/iceberg"
        finally:
            server.should_exit = True
            thread.join()
