"""What is known of a catalog as a whole, kept in memory: pages look there, not at each table.

One look shows all names, properties and the trash. It is taken again where the catalog's stamp is
another, which is one request. Nobody waits long for that: where it takes its time, pages show the
picture before meanwhile. Only after a change by this server itself they wait until it is seen.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mooring.clock import SystemClock
from mooring.config import mask_uris
from mooring.errors import MooringError
from mooring.feed.looking import looker_of
from mooring.server.ui.atlas.finder import Finder
from mooring.server.ui.atlas.inspector import Inspector
from mooring.server.ui.atlas.picture import Picture
from mooring.server.ui.atlas.surveyor import Surveyor

if TYPE_CHECKING:
    from mooring.clock import Clock
    from mooring.feed.look import Looker
    from mooring.server.catalogs import Served
    from mooring.server.feeds import Feed, Feeds
    from mooring.server.service import Service
    from mooring.server.ui.atlas.findings import Findings

__all__ = ["Atlas", "Atlases", "Trouble"]

logger = logging.getLogger(__name__)

# So long a picture is shown without another look at the stamp.
_FRESH_S = 0.5
# And longer where a look takes long: one is under way for a tenth of the time at most.
_REST = 9.0
_MOST_REST_S = 60.0
_AFTER_FAILURE_S = 5.0
# So long pages wait for a look that would show them something newer.
_PATIENCE_S = 0.05


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a picture is older than it should be.

    Attributes:
        message: What failed.
        since_ms: When the catalog could still be looked at.
    """

    message: str
    since_ms: int


class Atlas:
    """One catalog; safe for threads.

    Attributes:
        feed: Its changes.
        surveyor: Finds out what is in its tables.
        finder: Finds objects by what somebody types.
        inspector: Audits it.
    """

    def __init__(
        self,
        served: Served,
        feed: Feed,
        *,
        surveyor: Surveyor | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Know nothing yet.

        Args:
            served: The catalog.
            feed: Its changes.
            surveyor: Finds out what is in its tables; nobody does unless given.
            clock: Stamps pictures.
        """
        self.feed = feed
        self.inspector = Inspector(clock)
        self._served = served
        self._clock = clock or SystemClock()
        self.surveyor = surveyor or Surveyor(served.backend, is_wanted=False)
        self.finder = Finder(self.surveyor.findings)
        self._looker: Looker | None = None
        self._picture: Picture | None = None
        self._stamp: object = None
        self._trouble: Trouble | None = None
        self._confirmed_at_ms = 0
        self._look_again_at_s = 0.0
        # Changes of this server are counted: a look has seen those that were done before it began.
        self._changes = self._seen = 0
        self._under_way: Future[None] | None = None
        self._deciding = threading.Lock()

    @property
    def findings(self) -> Findings:
        """What is known of its tables."""
        return self.surveyor.findings

    @property
    def trouble(self) -> Trouble | None:
        """Why the picture is older than it should be; None where it is not."""
        return self._trouble

    def picture(self) -> Picture:
        """Return the catalog as it is, or was a moment ago.

        Raises:
            UnsupportedError: it is no catalog of Mooring's.
            MooringError: it cannot be read, and never could.
        """
        with self._deciding:
            changes = self._changes
        while True:
            with self._deciding:
                picture, has_seen = self._picture, self._seen >= changes
                if picture is not None and has_seen and time.monotonic() < self._look_again_at_s:
                    break
                look = self._under_way or self._begin()
            wait([look], None if picture is None or not has_seen else _PATIENCE_S)
            if picture is None:
                look.result()
            picture = self._picture
            if self._seen >= changes:
                break
        assert picture is not None  # noqa: S101  # else the look has failed
        self.surveyor.show(picture)
        return picture

    def refresh(self) -> None:
        """Look again before anybody is shown something: it was just changed."""
        with self._deciding:
            self._changes += 1

    def _begin(self) -> Future[None]:
        look: Future[None] = Future()
        self._under_way = look
        work = partial(self._run, look, self._changes)
        threading.Thread(target=work, name="mooring-look", daemon=True).start()
        return look

    def _run(self, look: Future[None], changes: int) -> None:
        """Look, and tell those who wait what came of it."""
        began_s = time.monotonic()
        try:
            self._look()
        except Exception as exc:  # noqa: BLE001  # it is raised where somebody waits for the first
            failure: Exception | None = exc
        else:
            failure = None
        took_s = time.monotonic() - began_s
        rest_s = min(max(_FRESH_S, took_s * _REST), _MOST_REST_S)
        with self._deciding:
            self._under_way = None
            self._trouble = self._explain(failure)
            # Where nothing can be seen, the picture before is all there is.
            self._seen = max(self._seen, changes)
            self._look_again_at_s = time.monotonic() + (_AFTER_FAILURE_S if failure else rest_s)
        if failure is not None:
            look.set_exception(failure)
            return
        look.set_result(None)
        if self._picture is not None:
            # Nobody waits for it here; whoever searches first would.
            self.finder.keep_up(self._picture)

    def _explain(self, failure: Exception | None) -> Trouble | None:
        if failure is None:
            self._confirmed_at_ms = self._clock.now_ms()
            return None
        message = mask_uris(str(failure)) if isinstance(failure, MooringError) else "see the log"
        logger.warning(
            "catalog %s cannot be looked at: %s",
            self._served.name,
            message,
            exc_info=None if isinstance(failure, MooringError) else failure,
        )
        return Trouble(message, self._confirmed_at_ms)

    def _look(self) -> None:
        if self._looker is None:
            self._looker = looker_of(self._served.backend())
        stamp = self._looker.stamp()
        if self._picture is not None and self._looker.is_decisive and stamp == self._stamp:
            return
        picture = Picture.of(self._looker.look(), self._clock.now_ms())
        self._picture, self._stamp = picture, stamp


class Atlases:
    """Those of all catalogs of a server."""

    def __init__(self, service: Service, feeds: Feeds) -> None:
        """Know nothing yet.

        Args:
            service: The server.
            feeds: The changes of its catalogs.
        """
        self._service = service
        self._atlases = {
            served.name: Atlas(served, feeds.of(served.name), surveyor=self._surveyor_of(served))
            for served in service.catalogs
        }

    def of(self, name: str) -> Atlas:
        """Return that of a catalog."""
        return self._atlases[name]

    def _surveyor_of(self, served: Served) -> Surveyor:
        wanted = self._service.settings.background.survey
        return Surveyor(served.backend, is_busy=self._is_busy, is_wanted=wanted)

    def _is_busy(self) -> bool:
        """Whether the server has enough to do with requests."""
        return sum(self._service.workers.under_way.values()) > 1

    def close(self) -> None:
        """Leave undone what takes long: the server ends. Waits for nothing."""
        for atlas in self._atlases.values():
            atlas.surveyor.end()
            atlas.inspector.close()

    def finish(self) -> None:
        """Wait until nothing is done any more beside requests."""
        self.close()
        for atlas in self._atlases.values():
            atlas.surveyor.close()
