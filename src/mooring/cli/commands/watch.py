"""``mooring watch``: what changes in a catalog, as it happens."""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.completion import complete_namespaces
from mooring.cli.options import OptionalUri, command
from mooring.cli.session import Session
from mooring.clock import format_time, parse_ttl
from mooring.config import mask_uris
from mooring.errors import InvalidInputError, MooringError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mooring.feed.event import Event
    from mooring.feed.watcher import Watcher
    from mooring.identifiers import ObjectId

__all__ = ["watch_command"]

_COLUMNS = ("id", "at", "kind", "name", "by", "details")
_KIND_WIDTH = len("namespace.properties_changed")


class Since(StrEnum):
    """From when on changes are told."""

    NOW = "now"
    BEGINNING = "beginning"


@command
def watch_command(
    session: Session,
    uri: OptionalUri = None,
    since: Annotated[
        Since,
        typer.Option(
            "--since",
            help="From when on: now, or the beginning, which tells all there is as created first.",
        ),
    ] = Since.NOW,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            metavar="NAME",
            help="Only what happens to this namespace and in it.",
            autocompletion=complete_namespaces,
        ),
    ] = None,
    interval: Annotated[
        str, typer.Option("--interval", metavar="DURATION", help="How often to look.")
    ] = "2s",
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", min=1, help="End after so many changes.")
    ] = None,
    until_idle: Annotated[
        str | None,
        typer.Option(
            "--until-idle",
            metavar="DURATION",
            help="End when nothing changed for so long: 30s; 0s looks once.",
        ),
    ] = None,
) -> None:
    """Tell what changes in the catalog, whoever changes it, until it is ended with Ctrl-C.

    Namespaces and tables that are created, dropped, brought back, renamed and purged, and their
    properties; in a metastore also new versions of tables. What is undone before the next look is
    not told.
    """
    from mooring.feed.watcher import Watcher

    session = session.at(uri)
    interval_s = _seconds(interval, "--interval")
    idle_s = None if until_idle is None else _seconds(until_idle, "--until-idle")
    catalog = session.open_catalog()
    within = None if namespace is None else catalog.identifier(namespace)
    watcher = Watcher(catalog.backend, from_nothing=since is Since.BEGINNING)
    looks = _Looks(session, watcher, interval_s, idle_s)
    with _ending_by(signal.SIGINT, looks.end):
        _show(session, _first(_within(looks.events(), within), count))


class _Looks:
    """Looks now and then."""

    def __init__(
        self, session: Session, watcher: Watcher, interval_s: float, idle_s: float | None
    ) -> None:
        self._session = session
        self._watcher = watcher
        self._interval_s = interval_s
        self._idle_s = idle_s
        self._ended = threading.Event()

    def end(self) -> None:
        """Tell no more changes than those that were seen."""
        self._ended.set()

    def events(self) -> Iterator[Event]:
        """Tell changes until nothing happens for long enough, or somebody ends it.

        Raises:
            MooringError: the catalog cannot be read at all.
        """
        found = self._watcher.poll()
        where = mask_uris(self._session.uri)
        self._session.output.message(f"watching {where}, Ctrl-C ends it")
        last_s = time.monotonic()
        while True:
            if found:
                yield from found
                last_s = time.monotonic()
            sys.stdout.flush()  # whoever reads a pipe wants to know now
            if self._idle_s is not None and time.monotonic() - last_s >= self._idle_s:
                return
            if self._ended.wait(self._interval_s):
                return
            found = self._poll()

    def _poll(self) -> list[Event]:
        """Look again; where a store is down for a while, the next look tells it all."""
        try:
            return self._watcher.poll()
        except MooringError as exc:
            if not exc.retryable:
                raise
            self._session.output.notice(f"warning: {exc}; watching goes on")
            return []


@contextmanager
def _ending_by(number: signal.Signals, end: Callable[[], None]) -> Iterator[None]:
    """Have a signal end what is done in a block, in good order; when it comes twice, at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(number)

    def hear(*_: object) -> None:
        signal.signal(number, before)
        end()

    signal.signal(number, hear)
    try:
        yield
    finally:
        signal.signal(number, before)


def _within(events: Iterable[Event], namespace: ObjectId | None) -> Iterator[Event]:
    return (event for event in events if namespace is None or event.lies_in(namespace))


def _first(events: Iterator[Event], count: int | None) -> Iterator[Event]:
    """Take so many, without a look for one more."""
    for number, event in enumerate(events, 1):
        yield event
        if number == count:
            return


def _show(session: Session, events: Iterator[Event]) -> None:
    output = session.output
    if not output.is_for_people:
        output.rows(_COLUMNS, map(_row, events))
        return
    for event in events:
        output.names([_line(event)])


def _row(event: Event) -> dict[str, object]:
    return {
        "id": str(event.cursor),
        "at": format_time(event.at_ms),
        "kind": event.kind.value,
        "name": str(event.id),
        "by": event.by,
        "details": dict(event.details),
    }


def _line(event: Event) -> str:
    """Write an event for people."""
    words = [format_time(event.at_ms), event.kind.value.ljust(_KIND_WIDTH), str(event.id)]
    if event.old_id is not None:
        words.append(f"(was {event.old_id})")
    changed = event.details.get("changed")
    if isinstance(changed, dict):
        shown = (key if value is None else f"{key}={value}" for key, value in changed.items())
        words.append(" ".join(shown))
    if "version" in event.details and event.kind.value == "table.written":
        words.append(f"version {event.details['version']}")
    if event.by is not None:
        words.append(f"by {event.by}")
    return "  ".join(words)


def _seconds(text: str, option: str) -> float:
    duration_ms = parse_ttl(text)
    if duration_ms is None:
        raise InvalidInputError(f"{option} is a duration, as in 2s, not '{text}'")
    return duration_ms / 1000
