"""Mooring's own Iceberg REST catalog, as a context manager: in a thread, on a port of its own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.own_server import run_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.catalog import Catalog
    from mooring.server.settings import ServerSettings

__all__ = ["run_own"]


@contextmanager
def run_own(catalog: Catalog, settings: ServerSettings | None = None) -> Iterator[str]:
    """Serve a catalog until the context ends; the value is the server's address."""
    with run_server(catalog, settings) as address:
        yield f"{address}/iceberg"
