"""What is known of a catalog as a whole, kept in memory: pages look there, not at each table.

One look shows all names, properties and the trash. It is taken again where the catalog's stamp is
another, which is one request; where a look takes long, pages show the one before meanwhile.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from mooring.clock import SystemClock
from mooring.feed.looking import looker_of
from mooring.server.ui.picture import Picture

if TYPE_CHECKING:
    from mooring.clock import Clock
    from mooring.feed.look import Looker
    from mooring.server.catalogs import Catalogs, Served

__all__ = ["Atlas", "Atlases"]

# So long a picture is shown without another look at the stamp.
_FRESH_S = 0.5


class Atlas:
    """One catalog; safe for threads."""

    def __init__(self, served: Served, clock: Clock | None = None) -> None:
        """Know nothing yet.

        Args:
            served: The catalog.
            clock: Stamps pictures.
        """
        self._served = served
        self._clock = clock or SystemClock()
        self._looker: Looker | None = None
        self._picture: Picture | None = None
        self._stamp: object = None
        self._looked_at_s = 0.0
        self._looking = threading.Lock()

    def picture(self) -> Picture:
        """Return the catalog as it is, or was a moment ago.

        Raises:
            UnsupportedError: it is no catalog of Mooring's.
            MooringError: it cannot be read.
        """
        with self._looking:
            picture = self._picture
            if picture is None or time.monotonic() - self._looked_at_s > _FRESH_S:
                picture = self._look()
            return picture

    def refresh(self) -> None:
        """Look again before anybody is shown something: it was just changed."""
        with self._looking:
            self._looked_at_s = 0.0
            self._stamp = None

    def _look(self) -> Picture:
        if self._looker is None:
            self._looker = looker_of(self._served.backend())
        stamp = self._looker.stamp()
        self._looked_at_s = time.monotonic()
        if self._picture is not None and self._looker.is_decisive and stamp == self._stamp:
            return self._picture
        self._picture = Picture.of(self._looker.look(), self._clock.now_ms())
        self._stamp = stamp
        return self._picture


class Atlases:
    """Those of all catalogs of a server."""

    def __init__(self, catalogs: Catalogs) -> None:
        """Know nothing yet."""
        self._atlases = {served.name: Atlas(served) for served in catalogs}

    def of(self, name: str) -> Atlas:
        """Return that of a catalog."""
        return self._atlases[name]
