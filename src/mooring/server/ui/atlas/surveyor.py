"""Finds out what is in tables, one after another, beside all requests and behind them.

It begins when somebody first looks at pages, and goes on until every table is known: first those
that somebody looks at, then those that changed, then all others. It works a small part of the time
and waits while the server has much to do. Nothing is written anywhere.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from mooring.clock import SystemClock
from mooring.config import mask_uris
from mooring.errors import (
    MooringError,
    NotLanceTableError,
    PermissionDeniedError,
    TableNotFoundError,
)
from mooring.server.ui.atlas.findings import Absence, Finding, Findings
from mooring.tables.confinement import confined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa

    from mooring.clock import Clock
    from mooring.feed.look import SeenTable
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import Backend
    from mooring.server.ui.atlas.picture import Picture

__all__ = ["Surveyor", "paths_of", "study"]

logger = logging.getLogger(__name__)

# It rests so many times as long as it worked, so that requests miss a tenth of a processor at most;
# and as long as it waited for a store or a server, which others want to use, too.
_REST = 9.0
_LEAST_REST_S = 0.002
_BUSY_REST_S = 0.05
# What somebody looks at is looked at again after so long, where a catalog does not tell of writes.
_AGED_MS = 5_000
_MOST_WANTED = 1_000
_MOST_DEPTH = 8


class Surveyor:
    """Finds out about the tables of one catalog, in a thread of its own.

    Attributes:
        findings: What is known.
    """

    def __init__(
        self,
        open_backend: Callable[[], Backend],
        *,
        is_busy: Callable[[], bool] = lambda: False,
        is_wanted: bool = True,
        clock: Clock | None = None,
    ) -> None:
        """Be ready; nothing is begun.

        Args:
            open_backend: Returns the catalog.
            is_busy: Whether the server has enough to do with requests.
            is_wanted: Whether to do anything at all.
            clock: Tells how old findings are.
        """
        self.findings = Findings()
        self._open_backend = open_backend
        self._is_busy = is_busy
        self._is_wanted = is_wanted
        self._clock = clock or SystemClock()
        self._picture: Picture | None = None
        # Of these two, only the thread knows.
        self._ordered: Picture | None = None
        self._left: Iterator[tuple[ObjectId, SeenTable]] = iter(())
        self._wanted: deque[ObjectId] = deque(maxlen=_MOST_WANTED)
        self._beginning = threading.Lock()
        self._news = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_at_work(self) -> bool:
        """Whether there is a thread."""
        return self._thread is not None and self._thread.is_alive()

    # -- what it is told ---------------------------------------------------------------------------

    def show(self, picture: Picture) -> None:
        """Show the catalog as it is now; what is new in it comes first."""
        if not self._is_wanted or self._ended.is_set() or picture is self._picture:
            return
        self._picture = picture
        with self._beginning:
            self._begin()
        self._news.set()

    def want(self, tables: Iterable[ObjectId]) -> None:
        """Look at some tables before all others: somebody is shown them."""
        if not self._is_wanted:
            return
        aged_ms = self._clock.now_ms() - _AGED_MS
        for table in tables:
            found = self.findings.get(table)
            # Those that tell their version are looked at when that is another.
            if found is None or (found.seen.version is None and found.found_at_ms < aged_ms):
                self._wanted.appendleft(table)
        self._news.set()

    def end(self) -> None:
        """Stop soon; waits for nothing."""
        self._ended.set()
        self._news.set()

    def close(self) -> None:
        """Stop, after the table that is being looked at."""
        self.end()
        if self._thread is not None:
            self._thread.join()

    # -- what it does ------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._thread is None:
            # Also ends with a process that forgets to close it: nothing is written.
            self._thread = threading.Thread(target=self._work, name="mooring-survey", daemon=True)
            self._thread.start()

    def _order(
        self, picture: Picture, before: Picture | None
    ) -> Iterator[tuple[ObjectId, SeenTable]]:
        """Go through the tables that are not known as they are: changed ones, then all others."""
        self.findings.keep_only(picture.look.tables)
        tables = picture.look.tables
        if before is not None:
            was = before.look.tables
            yield from self._unknown(one for one in tables.items() if _is_other(was, *one))
        yield from self._unknown(tables.items())

    def _unknown(
        self, tables: Iterable[tuple[ObjectId, SeenTable]]
    ) -> Iterator[tuple[ObjectId, SeenTable]]:
        return (one for one in tables if not self.findings.is_current(*one))

    def _next(self) -> tuple[ObjectId, SeenTable] | None:
        picture = self._picture
        if picture is None:
            return None
        if picture is not self._ordered:
            self._left, self._ordered = self._order(picture, self._ordered), picture
        with suppress(IndexError):
            while True:
                table = self._wanted.popleft()
                seen = picture.look.tables.get(table)
                if seen is not None:
                    return table, seen
        return next(self._left, None)

    def _work(self) -> None:
        while not self._ended.is_set():
            self._news.clear()
            if self._is_busy():
                self._ended.wait(_BUSY_REST_S)
                continue
            found = self._next()
            if found is None:
                self._news.wait()
                continue
            began_s, worked_s = time.monotonic(), time.thread_time()
            self._study(*found)
            took_s, worked_s = time.monotonic() - began_s, time.thread_time() - worked_s
            self._ended.wait(max(_LEAST_REST_S, _REST * worked_s, took_s))

    def _study(self, table: ObjectId, seen: SeenTable) -> None:
        try:
            # Some who are shown it may see a part of the catalog only.
            with confined():
                finding = study(self._open_backend(), table, seen, self._clock.now_ms())
        except Exception as exc:  # a loop of a worker: other tables can be read
            if not isinstance(exc, MooringError):
                logger.debug("table %s cannot be looked into", table, exc_info=True)
            failure = mask_uris(str(exc))
            now_ms, lack = self._clock.now_ms(), _absence_of(exc)
            finding = Finding(found_at_ms=now_ms, seen=seen, failure=failure, lack=lack)
        self.findings.add(table, finding)


def _absence_of(error: Exception) -> Absence:
    """Say in short why a table that is there cannot be looked into."""
    if isinstance(error, NotLanceTableError):
        return Absence.LANCE
    if isinstance(error, PermissionDeniedError):
        return Absence.OWN_FILES
    return Absence.DATA if isinstance(error, TableNotFoundError) else Absence.OTHER


def _is_other(was: Mapping[ObjectId, SeenTable], table: ObjectId, seen: SeenTable) -> bool:
    known = was.get(table)
    return known is not seen and known != seen


def study(backend: Backend, table: ObjectId, seen: SeenTable, now_ms: int) -> Finding:
    """Find out about a table by opening it; none of its rows are read.

    Args:
        backend: The catalog.
        table: The table.
        seen: How the catalog shows it.
        now_ms: When that is.

    Raises:
        MooringError: it cannot be opened, or is only declared.
    """
    from mooring.namespace.located import locate  # imports lance
    from mooring.tables.shape import shape_of

    info = backend.describe_table(table)
    handle = locate(backend, table, info)
    with handle.reading() as dataset:
        shape, schema = shape_of(dataset), dataset.schema
    newest = handle.ledger.newest(None)
    is_same = newest is not None and newest.version == shape.version
    return Finding(
        found_at_ms=now_ms,
        seen=seen,
        columns="\n".join(paths_of(schema)),
        width=len(schema.names),
        rows=shape.rows,
        version=shape.version,
        size_bytes=shape.size_bytes,
        written_at_ms=newest.at_ms if newest is not None and is_same else None,
        properties=dict(info.properties) if seen.properties is None else None,
    )


def paths_of(schema: pa.Schema) -> Iterator[str]:
    """Name all columns, those within others by their path: ``point.x``."""
    for field in schema:
        yield from _paths(field.name, field.type, _MOST_DEPTH)


def _paths(path: str, kind: pa.DataType, depth: int) -> Iterator[str]:
    from pyarrow import types

    yield path
    if depth == 0:
        return
    if types.is_struct(kind):
        for field in kind:
            yield from _paths(f"{path}.{field.name}", field.type, depth - 1)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = kind.value_type
        if types.is_struct(inner):
            for field in inner:
                yield from _paths(f"{path}.{field.name}", field.type, depth - 1)
