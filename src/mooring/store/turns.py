"""Taking turns among the processes of one machine, so that fewer of them lose a race.

Nothing depends on a turn: whoever waits too long goes ahead without, and what is decided is
decided by a conditional put. The operating system ends a turn with its process.
"""

from __future__ import annotations

import hashlib
import os
import random
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["take_turn"]

_FILES = 64
_PATIENCE_S = 2.0
_FIRST_NAP_S, _LONGEST_NAP_S = 0.002, 0.02


@contextmanager
def take_turn(key: str) -> Iterator[None]:
    """Wait until no other process of this user has its turn at ``key``, but not for long."""
    descriptor = _open(key)
    try:
        if descriptor is not None:
            _wait(descriptor)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _open(key: str) -> int | None:
    user = os.getuid() if hasattr(os, "getuid") else 0
    # A fixed number of files: two catalogs that share one only wait a little more.
    number = hashlib.sha256(key.encode()).digest()[0] % _FILES
    path = Path(tempfile.gettempdir()) / f"mooring-{user}-{number:02}.turn"
    with suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    return None


def _wait(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # not a POSIX system: no turns there
        return
    arrived_s = time.time()
    nap_s = _FIRST_NAP_S
    # As long as turns change hands it is worth to wait, however many are in line.
    while time.time() - max(arrived_s, os.fstat(descriptor).st_mtime) < _PATIENCE_S:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(random.uniform(0, nap_s))  # noqa: S311  # no secret
            nap_s = min(1.5 * nap_s, _LONGEST_NAP_S)
        else:
            os.utime(descriptor)
            return
