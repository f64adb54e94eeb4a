"""Purging expired tables now and then, where that was asked for.

One table at a time, in the threads of those who read and write rows. To purge twice at the same
time does no harm: each table is decided by its catalog.
"""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from mooring.clock import SystemClock
from mooring.config import mask_uris
from mooring.errors import MooringError, ReadOnlyError
from mooring.namespace.api import PurgeReport
from mooring.server.audit import Change, outcome_of
from mooring.server.catalogs import MooringCatalog
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.clock import Clock
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import Backend
    from mooring.server.service import Service

__all__ = ["Purger"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
SUBJECT = "purger"
_OPERATION = "mooring.PurgeExpired"
_DONE, _FAILED = 200, 500
_SPREAD = 0.1  # servers that were started together do not look together for ever


@runtime_checkable
class _Careful(Protocol):
    """A catalog that purges those drops of a table alone whose time is over."""

    def purge_expired(self, tables: Sequence[ObjectId]) -> PurgeReport: ...


class Purger:
    """Purges expired tables of all catalogs of Mooring's.

    Attributes:
        rounds: How often it looked.
        purged: How many tables it purged.
        failures: How many it could not purge, or catalogs that it could not look at.
    """

    def __init__(self, service: Service, every_s: float, clock: Clock | None = None) -> None:
        """Be ready to purge.

        Args:
            service: The server.
            every_s: How often, more or less.
            clock: Tells which tables have expired.
        """
        self._service = service
        self._every_s = every_s
        self._clock = clock or SystemClock()
        self.rounds = self.purged = self.failures = 0

    async def run(self) -> None:
        """Purge now and then, until it is cancelled."""
        while True:
            spread_s = self._every_s * _SPREAD
            await asyncio.sleep(self._every_s + random.uniform(-spread_s, spread_s))  # noqa: S311  # no secret
            await self.run_once()

    async def run_once(self) -> None:
        """Purge what has expired in each catalog."""
        self.rounds += 1
        for served in self._service.catalogs:
            if not isinstance(served, MooringCatalog):
                continue
            try:
                await self._purge(served)
            except ReadOnlyError:
                logger.debug("catalog %s is read-only: nothing is purged", served.name)
            except Exception as exc:  # noqa: BLE001  # a loop of a worker: the next round tries again
                self.failures += 1
                logger.warning("catalog %s cannot be purged: %s", served.name, mask_uris(str(exc)))

    async def _purge(self, served: MooringCatalog) -> None:
        backend, tables = await self._work(partial(self._look, served))
        if isinstance(backend, _Careful):
            for table in tables:
                work = partial(backend.purge_expired, [table])
                self._tell(served.name, await self._attempt(work, table))
        # What was cut off, and the names of dropped namespaces.
        self._tell(served.name, await self._work(backend.purge_tables))

    def _look(self, served: MooringCatalog) -> tuple[Backend, list[ObjectId]]:
        backend = served.backend(SUBJECT)
        backend.require_writable()
        now_ms = self._clock.now_ms()
        trash = backend.list_purgable_tables()
        return backend, sorted({one.id for one in trash if one.is_expired(now_ms)})

    async def _attempt(self, work: partial[PurgeReport], table: ObjectId) -> PurgeReport:
        try:
            return await self._work(work)
        except MooringError as exc:
            return PurgeReport([], {table: exc})

    async def _work(self, work: Callable[[], T]) -> T:
        return await self._service.workers.run(Lane.DATA, work, changes=True, has_time=True)

    def _tell(self, catalog: str, report: PurgeReport) -> None:
        """Write down what became of tables."""
        self.purged += len(report.purged)
        self.failures += len(report.failed)
        for table in report.purged:
            logger.info("purged table %s of catalog %s", table, catalog)
            self._record(catalog, table, _DONE, None)
        for table, exc in report.failed.items():
            message = mask_uris(str(exc))
            logger.warning("table %s of catalog %s cannot be purged: %s", table, catalog, message)
            status = exc.http_status if isinstance(exc, MooringError) else _FAILED
            self._record(catalog, table, status, message)

    def _record(self, catalog: str, table: ObjectId, status: int, message: str | None) -> None:
        change = Change(
            subject=SUBJECT,
            catalog=catalog,
            operation=_OPERATION,
            objects=[table],
            status=status,
            outcome=outcome_of(status),
            message=message,
        )
        self._service.audit.record(change)
