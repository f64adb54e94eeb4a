"""Changes that are sent to others: requests with the events, signed, until they are taken.

Events of a catalog go to each address in their order, some at a time. One that fails is tried again
until it is taken, so that an event may come twice; each has an id by which that is told. What is
no longer kept by then, and what happened before the server began, is told as a reset.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import random
from typing import TYPE_CHECKING

import httpx2
import msgspec

from mooring.clock import SystemClock
from mooring.config import mask_uris
from mooring.feed.event import Cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.clock import Clock
    from mooring.feed.event import Event
    from mooring.feed.watcher import Watcher
    from mooring.server.background_settings import BackgroundSettings
    from mooring.server.feeds import Feed, Feeds, Told

__all__ = ["Webhook", "Webhooks", "sign"]

logger = logging.getLogger(__name__)

SIGNATURE, TIMESTAMP, DELIVERY = (
    "x-mooring-signature",
    "x-mooring-timestamp",
    "x-mooring-delivery",
)
_AT_ONCE = 100
_TIMEOUT_S = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_NOWHERE = Cursor("", 0)


def sign(secret: str, timestamp_ms: int, body: bytes) -> str:
    """Return what proves that a request comes from who knows the secret."""
    signed = f"{timestamp_ms}.".encode() + body
    return "sha256=" + hmac.new(secret.encode(), signed, "sha256").hexdigest()


class Webhook:
    """Sends the events of one catalog to one address.

    Attributes:
        delivered: How many events were taken.
        attempts: How many requests were sent.
        failures: How many of them failed.
    """

    def __init__(
        self,
        feed: Feed,
        uri: str,
        *,
        secret: str | None,
        client: httpx2.AsyncClient,
        clock: Clock | None = None,
        first_pause_s: float = _FIRST_PAUSE_S,
    ) -> None:
        """Be ready to send.

        Args:
            feed: The changes of the catalog.
            uri: Where to.
            secret: What proves who sends; None to sign nothing.
            client: Sends.
            clock: Stamps requests.
            first_pause_s: How long to wait after the first failure; later ones wait longer.
        """
        self._feed = feed
        self._uri = uri
        self._secret = secret
        self._client = client
        self._clock = clock or SystemClock()
        self._first_pause_s = first_pause_s
        self._woken = asyncio.Event()
        self.delivered = self.attempts = self.failures = 0

    def offer(self, told: Sequence[Told]) -> None:
        """Hear that there are events."""
        del told
        self._woken.set()

    def end(self) -> None:
        """Hear that there will be no more."""

    async def run(self) -> None:
        """Send, until it is cancelled."""
        watcher = await self._begin()
        self._feed.subscribe(self)
        cursor = _NOWHERE  # others do not know what happened before
        try:
            while True:
                self._woken.clear()
                events = watcher.since(cursor)[:_AT_ONCE]
                if not events:
                    await self._woken.wait()
                    continue
                await self._deliver(events)
                cursor = events[-1].cursor or cursor
        finally:
            self._feed.leave(self)

    async def _begin(self) -> Watcher:
        """Look at the catalog for the first time, again and again where it cannot be read."""
        failures = 0
        while True:
            try:
                return await self._feed.begin()
            except Exception as exc:  # noqa: BLE001  # a loop of a worker: it goes on
                logger.warning("catalog %s cannot be watched: %s", self._feed.name, exc)
            failures += 1
            await self._pause(failures)

    async def _deliver(self, events: Sequence[Event]) -> None:
        """Send events until they are taken."""
        body = msgspec.json.encode(
            {"catalog": self._feed.name, "events": [event.to_dict() for event in events]}
        )
        failures = 0
        while (problem := await self._send(body, str(events[-1].cursor))) is not None:
            failures += 1
            self.failures += 1
            shown = mask_uris(self._uri.partition("?")[0])
            told = "changes of catalog %s, to webhook %s, failed %d times in a row: %s"
            logger.warning(told, self._feed.name, shown, failures, problem)
            await self._pause(failures)
        self.delivered += len(events)

    async def _send(self, body: bytes, delivery: str) -> str | None:
        """Send once; tell what went wrong, if something did."""
        self.attempts += 1
        now_ms = self._clock.now_ms()
        headers = {
            "content-type": "application/json",
            "user-agent": "mooring",
            TIMESTAMP: str(now_ms),
            DELIVERY: delivery,
        }
        if self._secret is not None:
            headers[SIGNATURE] = sign(self._secret, now_ms, body)
        try:
            answer = await self._client.post(self._uri, content=body, headers=headers)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as exc:
            return type(exc).__name__  # its text may hold the address, and that a token
        return None if answer.is_success else f"the answer was {answer.status_code}"

    async def _pause(self, failures: int) -> None:
        longest_s = min(self._first_pause_s * 2 ** min(failures - 1, 16), _LONGEST_PAUSE_S)
        await asyncio.sleep(random.uniform(longest_s / 2, longest_s))  # noqa: S311  # no secret


class Webhooks:
    """Sends the events of all catalogs to all addresses."""

    def __init__(self, feeds: Feeds, settings: BackgroundSettings) -> None:
        """Be ready to send.

        Args:
            feeds: The changes of the catalogs.
            settings: Where to, and what proves it.
        """
        self._client = httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False)
        self.all = [
            Webhook(feed, uri, secret=settings.webhook_secret, client=self._client)
            for feed in feeds.all
            if feed.is_possible
            for uri in settings.webhooks
        ]

    async def run(self) -> None:
        """Send, until it is cancelled."""
        async with self._client, asyncio.TaskGroup() as tasks:
            for webhook in self.all:
                tasks.create_task(webhook.run())
