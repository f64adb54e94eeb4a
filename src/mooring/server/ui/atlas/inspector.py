"""The audits of a catalog that pages show: one at a time, and the last one is kept."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mooring.clock import SystemClock
from mooring.errors import ConcurrentModificationError, MooringError

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.clock import Clock
    from mooring.upkeep.audit import Audit

__all__ = ["Inspection", "Inspector"]

logger = logging.getLogger(__name__)

# Looking through a catalog must leave something of a machine for those who use it.
_THREADS = 2


@dataclass(frozen=True, slots=True)
class Inspection:
    """How far audits have come.

    Attributes:
        is_running: Whether one goes on.
        began_at_ms: When that began.
        done: How many tables it has looked at.
        total: Of how many; None before that is known.
        audit: What the last finished one found; None before there was one.
        ended_at_ms: When that was.
        took_ms: How long it took.
        by: Who asked for it; None for nobody with a name.
        error: Why the last one failed; None where it did not.
    """

    is_running: bool = False
    began_at_ms: int = 0
    done: int = 0
    total: int | None = None
    audit: Audit | None = None
    ended_at_ms: int = 0
    took_ms: int = 0
    by: str | None = None
    error: str | None = None


class Inspector:
    """Audits one catalog; safe for threads."""

    def __init__(self, clock: Clock | None = None) -> None:
        """Know nothing yet.

        Args:
            clock: Stamps audits.
        """
        self._clock = clock or SystemClock()
        self._guard = threading.Lock()
        self._is_closed = False
        self.state = Inspection()

    def run(self, catalog: Catalog, by: str | None) -> None:
        """Audit a catalog, and return when that is done.

        Raises:
            ConcurrentModificationError: somebody else has begun.
        """
        self._claim()
        self._work(catalog, by)

    def begin(self, catalog: Catalog, by: str | None) -> None:
        """Audit a catalog while nobody waits for it.

        Raises:
            ConcurrentModificationError: somebody else has begun.
        """
        self._claim()
        threading.Thread(target=self._work, args=(catalog, by), daemon=True).start()

    def close(self) -> None:
        """Stop at the next table."""
        self._is_closed = True

    def _claim(self) -> None:
        with self._guard:
            if self.state.is_running:
                msg = "an audit of this catalog is going on already: wait for what it finds"
                raise ConcurrentModificationError(msg)
            now_ms = self._clock.now_ms()
            self.state = replace(
                self.state, is_running=True, began_at_ms=now_ms, done=0, total=None, error=None
            )

    def _work(self, catalog: Catalog, by: str | None) -> None:
        error: str | None = "it failed unexpectedly: the server's log tells more"
        found = None
        try:
            found, error = self._audit(catalog), None
        except _StoppedError:
            error = "the server ended"
        except MooringError as exc:
            error = str(exc)
        except Exception:  # a worker: nobody above could tell it better
            logger.exception("an audit failed unexpectedly")
        finally:
            self._finish(found, by, error)

    def _finish(self, found: Audit | None, by: str | None, error: str | None) -> None:
        with self._guard:
            now_ms = self._clock.now_ms()
            ended = replace(self.state, is_running=False, error=error)
            if found is not None:
                took_ms = now_ms - ended.began_at_ms
                ended = replace(ended, audit=found, ended_at_ms=now_ms, took_ms=took_ms, by=by)
            self.state = ended

    def _audit(self, catalog: Catalog) -> Audit:
        from mooring.jobs.runner import Threads
        from mooring.upkeep.audit import audit  # imports Lance

        return audit(catalog, runner=Threads(_THREADS), progress=self._progress)

    def _progress(self, done: int, total: int) -> None:
        if self._is_closed:
            raise _StoppedError
        with self._guard:
            self.state = replace(self.state, done=done, total=total)


class _StoppedError(Exception):
    """The server ends."""
