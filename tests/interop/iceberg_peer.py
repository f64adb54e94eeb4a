"""Clients of Iceberg catalogs as peers: in an environment and processes of their own.

PyIceberg, polars, daft and DuckDB run in an environment that is built for them; Spark runs in the
project's own, with a jar of Iceberg's.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.interop.peer import NotBuiltError, Peer, PeerError, find_environment, find_python

__all__ = ["DRIVER", "IcebergClient", "NotBuiltError", "PeerError", "find_interpreter"]

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "iceberg_requirements.txt"
DRIVER = HERE / "iceberg_client_driver.py"
SUPPORTED = "import sys; sys.exit(sys.version_info < (3, 11))"
CHECK = (
    "import daft, duckdb, duckdb_extension_iceberg, polars, pyiceberg.catalog.rest, schemathesis"
)


class IcebergClient(Peer):
    """A process that does with one of the clients what it is told."""

    def __init__(self, python: Path | str, home: Path) -> None:
        """Start it; `start` names the client and the catalog.

        Args:
            python: Of the client's environment.
            home: Where it runs, and may leave things.
        """
        super().__init__(python, DRIVER, {"DO_NOT_TRACK": "true"}, cwd=home)


def find_interpreter() -> Path:
    """Return the interpreter of the clients' environment, which is built where it is missing.

    Raises:
        NotBuiltError: it cannot be.
    """
    python = find_python("the Iceberg clients", [sys.executable], SUPPORTED)
    return find_environment("iceberg", python, REQUIREMENTS, CHECK)
