"""The deltacat library as a peer: in an environment and a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.interop.peer import NotBuiltError, Peer, PeerError, find_environment, find_python

__all__ = ["Deltacat", "DeltacatError", "NotBuiltError", "find_interpreter"]

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "deltacat_requirements.txt"
DRIVER = HERE / "deltacat_driver.py"
# What the pinned versions have wheels for.
SUPPORTED = "import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 11))"

DeltacatError = PeerError


class Deltacat(Peer):
    """A process that does with the library what it is told."""

    def __init__(self) -> None:
        """Start it; with `start` it opens a catalog.

        Raises:
            NotBuiltError: there is no environment, and none can be built.
        """
        super().__init__(find_interpreter(), DRIVER, {"RAY_DISABLE_IMPORT_WARNING": "1"})


def find_interpreter() -> Path:
    """Return the interpreter of the library's environment, which is built where it is missing.

    Raises:
        NotBuiltError: it cannot be.
    """
    versions = sorted(Path.home().glob(".pyenv/versions/3.10*/bin/python3.10"))
    candidates = ["python3.10", *map(str, versions), "python3.11", sys.executable]
    python = find_python("deltacat", candidates, SUPPORTED)
    return find_environment("deltacat", python, REQUIREMENTS, "import deltacat")
