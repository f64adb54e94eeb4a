"""Spans of OpenTelemetry, where its API is installed; the application brings the SDK.

A request is a span, below that of the client where it sent one (``traceparent``). It has the
operation and the route, not whose request it was: its id leads to the access log.

Spec: OpenTelemetry semantic conventions, "HTTP server".
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mooring import __version__
from mooring.server.asked import named_of, state_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Traced", "can_trace"]

_SERVER_FAILURES = 500


def can_trace() -> bool:
    """Whether the API of OpenTelemetry is installed."""
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.trace") is not None


class Traced:
    """Makes a span of each request to an application."""

    def __init__(self, app: ASGIApp, provider: TracerProvider | None = None) -> None:
        """Watch an application.

        Args:
            app: The application.
            provider: Makes spans; that of the process unless given.
        """
        from opentelemetry import propagate, trace

        self._app = app
        self._tracer = trace.get_tracer("mooring", __version__, provider)
        self._kind = trace.SpanKind.SERVER
        self._failed = trace.Status(trace.StatusCode.ERROR)
        self._extract = propagate.extract
        self._has_provider = provider is not None
        self._find_provider = trace.get_tracer_provider
        self._no_provider = trace.ProxyTracerProvider

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, within a span."""
        if scope["type"] != "http" or not self._is_on():
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        with self._tracer.start_as_current_span(
            scope["method"],
            context=self._extract(headers),
            kind=self._kind,
            attributes=_asked(scope),
        ) as span:

            async def watch(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._answered(span, message["status"])
                await send(message)

            try:
                await self._app(scope, receive, watch)
            finally:
                _name(span, scope)

    def _is_on(self) -> bool:
        """Whether somebody hears of spans; without an SDK each would cost and go nowhere."""
        return self._has_provider or not isinstance(self._find_provider(), self._no_provider)

    def _answered(self, span: Span, status: int) -> None:
        span.set_attribute("http.response.status_code", status)
        if status >= _SERVER_FAILURES:
            span.set_status(self._failed)


def _asked(scope: Scope) -> dict[str, Any]:
    """Return what is known when a request comes; parameters may hold secrets."""
    known = {
        "http.request.method": scope["method"],
        "url.scheme": scope.get("scheme"),
        "url.path": scope["path"],
        "client.address": (scope.get("client") or (None,))[0],
        "mooring.request_id": state_of(scope).get("request_id"),
    }
    return {key: value for key, value in known.items() if value is not None}


def _name(span: Span, scope: Scope) -> None:
    """Name a span by its route, which is known when it was found."""
    named = named_of(scope)
    if not named.route:
        return
    span.update_name(f"{scope['method']} {named.route}")
    span.set_attribute("http.route", named.route)
    span.set_attribute("mooring.dialect", named.dialect)
    span.set_attribute("mooring.operation", named.operation)
