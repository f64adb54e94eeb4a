"""What the server counts and times, for Prometheus.

Labels are words of which there are few: protocols, operations, statuses, names of catalogs; never
names of objects or clients. Where several processes serve one socket, they keep what they count in
a directory that ``PROMETHEUS_MULTIPROC_DIR`` names, and each of them answers for all.
"""

from __future__ import annotations

import logging
import os
import platform
import time
from functools import cache
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    multiprocess,
)
from prometheus_client.exposition import choose_encoder
from starlette.responses import Response
from starlette.routing import Route

from mooring import __version__
from mooring.clock import SystemClock
from mooring.errors import (
    ConcurrentModificationError,
    MooringError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnsupportedError,
)
from mooring.server.asked import Named, code_of, name_operation, named_of
from mooring.server.auth import Expired
from mooring.server.errands import Errand
from mooring.server.problems import explain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mooring.server.catalogs import Catalogs
    from mooring.server.service import Service
    from mooring.server.work import Lane

__all__ = ["Measured", "Metrics", "MetricsEndpoint"]

logger = logging.getLogger(__name__)

_METRICS = Named("server", "metrics", "/metrics")
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_FAILURES, _SERVER_FAILURES = 400, 500
_SHARED = "PROMETHEUS_MULTIPROC_DIR"
_TRASH_FRESH_S, _TRASH_LIMIT_S = 60.0, 2.0


class Metrics:
    """The numbers of a server."""

    def __init__(self) -> None:
        """Begin with none."""
        # Twice as many lines, which nobody asks for.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # has none
        registry = self._registry = CollectorRegistry()
        self._is_shared = bool(os.environ.get(_SHARED))
        if not self._is_shared:
            ProcessCollector(registry=registry)
        self._requests = Counter(
            "mooring_requests",
            "Requests that were answered.",
            ("dialect", "operation", "method", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "mooring_request_seconds",
            "How long requests took, to the last byte of the answer.",
            ("dialect", "operation"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "mooring_requests_in_flight",
            "Requests that are being answered.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._bytes = Counter(
            "mooring_body_bytes",
            "Bytes of bodies: in of requests, out of answers.",
            ("dialect", "direction"),
            registry=registry,
        )
        self._changes = Counter(
            "mooring_changes",
            "Changes that were asked for, by what came of them.",
            ("dialect", "operation", "outcome"),
            registry=registry,
        )
        self._conflicts = Counter(
            "mooring_commit_conflicts",
            "Changes that lost a race for good.",
            ("dialect", "operation"),
            registry=registry,
        )
        self._errors = Counter(
            "mooring_errors",
            "Requests that failed, by Lance's code.",
            ("dialect", "code"),
            registry=registry,
        )
        self._working = Gauge(
            "mooring_work",
            "Requests in the threads of a lane, worked on or waiting.",
            ("lane", "state"),
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._refused = Counter(
            "mooring_refused",
            "Requests that were refused as too many waited already.",
            ("lane",),
            registry=registry,
        )
        self._store_requests = Counter(
            "mooring_store_requests",
            "Requests of the catalogs to their stores; Lance's own for rows are not counted.",
            ("verb",),
            registry=registry,
        )
        self._store_seconds = Counter(
            "mooring_store_seconds",
            "How long those took.",
            ("verb",),
            registry=registry,
        )
        self._trash = Gauge(
            "mooring_trash_tables",
            "Dropped tables: all of them, and those whose time is over.",
            ("catalog", "state"),
            registry=registry,
            multiprocess_mode="mostrecent",
        )
        built = Gauge(
            "mooring_build_info",
            "What serves.",
            ("version", "python"),
            registry=registry,
            multiprocess_mode="max",
        )
        built.labels(__version__, platform.python_version()).set(1)
        # What every request touches is looked up once.
        self._requests_of = cache(self._requests.labels)
        self._seconds_of = cache(self._seconds.labels)
        self._bytes_of = cache(self._bytes.labels)
        self._working_of = cache(self._working.labels)
        self._store_requests_of = cache(self._store_requests.labels)
        self._store_seconds_of = cache(self._store_seconds.labels)

    # -- told by others ----------------------------------------------------------------------------

    def begin_request(self) -> None:
        """Count a request that came."""
        self._in_flight.inc()

    def end_request(self, scope: Scope, status: int, taken_s: float) -> None:
        """Count a request that was answered; without an answer, the status is 0."""
        named = named_of(scope)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._in_flight.dec()
        self._requests_of(named.dialect, named.operation, method, str(status)).inc()
        self._seconds_of(named.dialect, named.operation).observe(taken_s)
        if named.changes:
            self._changes.labels(named.dialect, named.operation, _outcome(status)).inc()
        code = code_of(scope)
        if code is not None:
            self._errors.labels(named.dialect, str(code)).inc()
        if named.changes and code == ConcurrentModificationError.code:
            self._conflicts.labels(named.dialect, named.operation).inc()

    def count_bytes(self, scope: Scope, received: int, sent: int) -> None:
        """Count the bytes of bodies."""
        dialect = named_of(scope).dialect
        self._bytes_of(dialect, "in").inc(received)
        self._bytes_of(dialect, "out").inc(sent)

    def show_work(self, lane: Lane, working: int, waiting: int) -> None:
        """Show what a lane has to do."""
        self._working_of(lane.value, "working").set(working)
        self._working_of(lane.value, "waiting").set(waiting)

    def count_refused(self, lane: Lane) -> None:
        """Count a request that a lane had no place for."""
        self._refused.labels(lane.value).inc()

    def count_store_request(self, verb: str, taken_s: float) -> None:
        """Count a request to a store."""
        self._store_requests_of(verb).inc()
        self._store_seconds_of(verb).inc(taken_s)

    def show_trash(self, sizes: Mapping[str, tuple[int, int]]) -> None:
        """Show how many tables are in the trash of each catalog, and how many have expired."""
        for catalog, (dropped, expired) in sizes.items():
            self._trash.labels(catalog, "dropped").set(dropped)
            self._trash.labels(catalog, "expired").set(expired)

    # -- shown -------------------------------------------------------------------------------------

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return all numbers, and of what kind the text is."""
        encode, kind = choose_encoder(accept)
        return encode(self._all()), kind

    def _all(self) -> CollectorRegistry:
        if not self._is_shared:
            return self._registry
        found = CollectorRegistry()
        multiprocess.MultiProcessCollector(found)  # type: ignore[no-untyped-call]  # has none
        return found


def _outcome(status: int) -> str:
    if status < _FAILURES:
        return "done" if status else "cut off"
    return "failed" if status >= _SERVER_FAILURES else "refused"


class Measured:
    """Counts and times what an application answers."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        """Watch an application.

        Args:
            app: The application.
            metrics: Hears of each request.
        """
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_s, status, received, sent = time.perf_counter(), 0, 0, 0

        async def hear() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def tell(message: Message) -> None:
            nonlocal status, sent
            status = message.get("status", status)
            sent += len(message.get("body", b""))
            await send(message)

        self._metrics.begin_request()
        try:
            await self._app(scope, hear, tell)
        finally:
            self._metrics.end_request(scope, status, time.perf_counter() - began_s)
            self._metrics.count_bytes(scope, received, sent)


class MetricsEndpoint:
    """Shows the numbers to whoever may use the server, or to anybody where the settings say so."""

    def __init__(self, service: Service, metrics: Metrics) -> None:
        """Show the numbers of a server."""
        self._service = service
        self._metrics = metrics
        self._trash = Errand(lambda: _trash_of(service.catalogs), fresh_s=_TRASH_FRESH_S)

    @property
    def routes(self) -> list[Route]:
        """Where it answers."""
        return [Route(_METRICS.route, self._show)]

    async def _show(self, request: Request) -> Response:
        name_operation(request.scope, _METRICS)
        try:
            self._require_somebody(request)
        except MooringError as exc:
            return explain(exc).answer(request.scope)
        sizes = await self._trash.answer(_TRASH_LIMIT_S)
        self._metrics.show_trash(sizes or {})
        text, kind = self._metrics.render(request.headers.get("accept", ""))
        return Response(text, headers={"Content-Type": kind, "Cache-Control": "no-store"})

    def _require_somebody(self, request: Request) -> None:
        if self._service.settings.metrics_anonymous:
            return
        found = self._service.identify(request, changes=False)
        if isinstance(found, Expired):
            raise UnauthenticatedError("the token has expired: ask for another")
        if not found.grants:
            raise PermissionDeniedError(f"'{found.subject}' has no role on this server")


def _trash_of(catalogs: Catalogs) -> Mapping[str, tuple[int, int]]:
    """Count dropped tables: one listing for each catalog that has a trash."""
    sizes: dict[str, tuple[int, int]] = {}
    now_ms = SystemClock().now_ms()
    for served in catalogs:
        try:
            found = served.backend().list_purgable_tables()
        except UnsupportedError:
            continue
        except Exception as exc:  # noqa: BLE001  # what fails is left out, the rest is shown
            logger.warning("the trash of catalog '%s' cannot be listed: %s", served.name, exc)
            continue
        sizes[served.name] = len(found), sum(one.is_expired(now_ms) for one in found)
    return sizes
