"""The audit log: every change that was asked for, by whom, when, and what came of it.

A change is a line of JSON. A thread of its own writes lines, so that no disk keeps a request
waiting; a line that cannot be written goes to the server's own log instead, and the server goes on.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

from mooring.clock import SystemClock
from mooring.config import mask_uris
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mooring.clock import Clock
    from mooring.identifiers import ObjectId

__all__ = ["Audit", "AuditLog", "Change", "NoAudit", "outcome_of"]

logger = logging.getLogger(__name__)

_FAILURES, _SERVER_FAILURES = 400, 500
_MOST_WAITING = 10_000
_AT_ONCE = 256
_LONGEST_MESSAGE = 2000
_MODE = 0o640


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was asked for.

    Attributes:
        subject: By whom; None where nobody is asked for a name.
        catalog: In which catalog.
        operation: What, as its protocol calls it, as in ``lance.DropTable``.
        objects: What it is about.
        status: What was answered, of HTTP.
        outcome: ``done``, ``refused`` or ``failed``.
        message: Why it was not done; None where it was.
        address: Of the client.
        request_id: By which all logs have it.
    """

    subject: str | None
    catalog: str
    operation: str
    objects: Sequence[ObjectId]
    status: int
    outcome: str
    message: str | None = None
    address: str | None = None
    request_id: str | None = None


class Audit(Protocol):
    """Hears of every change."""

    def record(self, change: Change) -> None:
        """Take note of a change that was answered; called in the loop, so that it must not wait."""
        ...

    def close(self) -> None:
        """Wait until all that was noted is kept."""
        ...


class NoAudit:
    """Takes no note."""

    def record(self, change: Change) -> None:
        """Forget it."""
        del change

    def close(self) -> None:
        """Do nothing: nothing was noted."""


class AuditLog:
    """Writes a line for each change to a file, after whatever is there."""

    def __init__(
        self, path: Path, *, most_waiting: int = _MOST_WAITING, clock: Clock | None = None
    ) -> None:
        """Begin to write.

        Args:
            path: The file; one that is moved away is begun anew.
            most_waiting: How many lines may wait for the disk; those beyond go to the other log.
            clock: Tells when.

        Raises:
            InvalidInputError: the file cannot be written.
        """
        self._path = path
        self._clock = clock or SystemClock()
        self._lines: queue.Queue[bytes | None] = queue.Queue(most_waiting)
        try:
            self._file = _open(path)
        except OSError as exc:
            raise InvalidInputError(f"the audit log '{path}' cannot be written: {exc}") from exc
        self._thread = threading.Thread(target=self._write_all, name="mooring-audit", daemon=True)
        self._thread.start()

    def record(self, change: Change) -> None:
        """Take note of a change; never waits."""
        line = _line(change, self._clock.now_ms())
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            _tell_lost([line], "the disk does not keep up")

    def close(self) -> None:
        """Wait until all that was noted is written."""
        if self._thread.is_alive():
            self._lines.put(None)
            self._thread.join()
            os.close(self._file)

    def _write_all(self) -> None:
        while True:
            lines = self._next()
            kept = [line for line in lines if line is not None]
            if kept:
                self._write(kept)
            if len(kept) < len(lines):
                return

    def _next(self) -> list[bytes | None]:
        """Return what waits, some of it at a time; waits for the first."""
        lines = [self._lines.get()]
        while len(lines) < _AT_ONCE and lines[-1] is not None and not self._lines.empty():
            lines.append(self._lines.get_nowait())
        return lines

    def _write(self, lines: Sequence[bytes]) -> None:
        left = b"".join(lines)
        try:
            self._follow()
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as exc:
            _tell_lost(left.splitlines(), str(exc))

    def _follow(self) -> None:
        """Begin the file anew where the one that is open was moved or removed."""
        try:
            is_same = os.path.samestat(self._path.stat(), os.fstat(self._file))
        except FileNotFoundError:
            is_same = False
        if not is_same:
            opened = _open(self._path)
            os.close(self._file)
            self._file = opened


def outcome_of(status: int) -> str:
    """Return what a status of HTTP says about a change."""
    if status < _FAILURES:
        return "done"
    return "failed" if status >= _SERVER_FAILURES else "refused"


def _open(path: Path) -> int:
    # What several processes append does not mix, as each line is one write.
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)


def _line(change: Change, at_ms: int) -> bytes:
    at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    message = change.message
    fields = {
        "at": at,
        "subject": change.subject,
        "operation": change.operation,
        "catalog": change.catalog,
        "objects": [list(one.names) for one in change.objects],
        "outcome": change.outcome,
        "status": change.status,
        "message": None if message is None else mask_uris(message)[:_LONGEST_MESSAGE],
        "address": change.address,
        "request_id": change.request_id,
    }
    return msgspec.json.encode(fields) + b"\n"


def _tell_lost(lines: Sequence[bytes], why: str) -> None:
    for line in lines:
        text = line.decode(errors="replace").rstrip()
        logger.critical("a line of the audit log could not be written (%s): %s", why, text)
