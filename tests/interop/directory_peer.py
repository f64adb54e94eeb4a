"""Libraries that open a directory of Lance tables without a server, as peers.

pylance runs in the project's own environment, lancedb and DuckDB in those that are built for them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.interop.lance_peer import find_lancedb
from tests.interop.peer import Peer, find_environment, find_python

__all__ = ["LIBRARIES", "DirectoryClient"]

HERE = Path(__file__).parent
DRIVER = HERE / "directory_driver.py"
SUPPORTED = "import sys; sys.exit(sys.version_info < (3, 11))"


def _find_duckdb() -> Path:
    python = find_python("DuckDB", [sys.executable], SUPPORTED)
    requirements = HERE / "duckdb_requirements.txt"
    return find_environment("duckdb_lance", python, requirements, "import duckdb_extension_lance")


# Each with what finds its interpreter.
LIBRARIES = {
    "pylance-dir": lambda: sys.executable,
    "lancedb": find_lancedb,
    "duckdb-lance": _find_duckdb,
}


class DirectoryClient(Peer):
    """A process that does with one of the libraries what it is told."""

    def __init__(self, library: str, root: Path, settings: dict[str, str], **more: bool) -> None:
        """Start it and open a directory.

        Args:
            library: One of `LIBRARIES`.
            root: The directory.
            settings: As the reference implementation takes them.
            more: Of one of the libraries.

        Raises:
            NotBuiltError: its environment cannot be built.
        """
        super().__init__(LIBRARIES[library](), DRIVER, {"PYTHONPATH": ""})
        self("start", library=library, root=str(root), settings=settings, **more)
