"""What a server does by itself, from its first request to its last."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mooring.server.changes import ChangesEndpoint
from mooring.server.feeds import Feeds
from mooring.server.purger import Purger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from starlette.routing import Route

    from mooring.server.service import Service
    from mooring.server.webhooks import Webhooks

__all__ = ["Background"]

logger = logging.getLogger(__name__)


class Background:
    """The work of a server that nobody asks for by a request.

    Attributes:
        feeds: The changes of its catalogs.
        webhooks: Who sends them to others; None where that is nobody.
        purger: Who purges expired tables; None where that is nobody.
    """

    def __init__(self, service: Service) -> None:
        """Be ready to work; nothing is begun."""
        settings = service.settings.background
        # Of several processes that serve together, one is enough.
        is_first = service.settings.worker == 0
        self.feeds = Feeds(service)
        self.webhooks: Webhooks | None = None
        self.purger: Purger | None = None
        if settings.webhooks and is_first:
            from mooring.server.webhooks import Webhooks  # imports httpx2

            self.webhooks = Webhooks(self.feeds, settings)
        if settings.purge_every_s is not None and is_first:
            self.purger = Purger(service, settings.purge_every_s)
        self._endpoint = ChangesEndpoint(service, self.feeds)
        service.ending.listen(self.feeds.close)

    @property
    def routes(self) -> list[Route]:
        """Where changes can be listened to."""
        return self._endpoint.routes

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work until the context ends; what a thread has begun is finished by its pool."""
        tasks = [asyncio.create_task(_survive(one.run())) for one in self._all()]
        try:
            yield
        finally:
            self.feeds.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _all(self) -> list[Webhooks | Purger]:
        return [one for one in (self.webhooks, self.purger) if one is not None]


async def _survive(work: Coroutine[None, None, None]) -> None:
    """Let work that fails end nothing else, and say so."""
    try:
        await work
    except Exception:
        logger.exception("work in the background ended unexpectedly")
