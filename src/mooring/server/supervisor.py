"""Several processes that serve one socket, and one that watches over them.

The watching process takes the socket and opens no catalog. Each worker is the same command once
more: it gets the socket, and a channel on which it hears the key that signs tokens and says when it
serves. A worker that dies is replaced; the channel of a watcher that died ends, and so do they.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping, Sequence

__all__ = ["Supervisor", "Worker", "this_command"]

logger = logging.getLogger(__name__)

_VARIABLE = "MOORING_WORKER"
_SHARED_METRICS = "PROMETHEUS_MULTIPROC_DIR"
_KEY_BYTES = 32
_READY = b"r"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _LONG_LIFE_S = 0.1, 10.0, 30.0
_ENDED_BY_SIGNAL = 128


def this_command() -> list[str]:
    """Return the command line that this process was started by."""
    return [sys.executable, *sys.orig_argv[1:]]


@dataclass(frozen=True, slots=True)
class Worker:
    """What a worker gets from the process that watches over it.

    Attributes:
        number: Which of them it is.
        taken: Where to serve.
        channel: Ends with the watcher.
        key: What signs tokens.
    """

    number: int
    taken: socket.socket
    channel: socket.socket
    key: bytes

    @classmethod
    def here(cls, environ: MutableMapping[str, str]) -> Worker | None:
        """Return what this process got; None where it is no worker.

        Raises:
            InvalidInputError: the variable of the environment is not what a watcher sets.
        """
        text = environ.pop(_VARIABLE, None)
        if text is None:
            return None
        try:
            number, taken, channel = (int(part) for part in text.split(":"))
            talk = socket.socket(fileno=channel)
            key = talk.recv(_KEY_BYTES, socket.MSG_WAITALL)
            return cls(number, socket.socket(fileno=taken), talk, key)
        except (ValueError, OSError) as exc:
            msg = f"{_VARIABLE} is set by 'mooring serve --workers' alone: unset it"
            raise InvalidInputError(msg) from exc

    def say_ready(self) -> None:
        """Say that this process serves."""
        with suppress(OSError):  # the watcher is gone, which is seen elsewhere
            self.channel.send(_READY)


class _Child:
    """A worker, as it is watched."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.channel: socket.socket | None = None
        self.is_ready = False
        self.was_ready = False
        self.failures = 0
        self.began_s = 0.0
        self.due_s: float | None = 0.0

    @property
    def ended(self) -> int | None:
        """The code that it ended with; None while it runs, or where it does not."""
        return None if self.process is None else self.process.poll()


class Supervisor:
    """Watches over workers."""

    def __init__(self, taken: socket.socket, count: int, key: bytes) -> None:
        """Be ready to start workers.

        Args:
            taken: Where they serve.
            count: How many.
            key: What signs tokens in all of them.
        """
        self._taken = taken
        self._key = key
        self._children = [_Child(number) for number in range(count)]
        self._selector = selectors.DefaultSelector()
        self._ended_by = 0
        self._is_ending = False
        self._code = 0
        self._is_told = False

    def run(self, command: Sequence[str], ready: Callable[[], None]) -> int:
        """Keep the workers running until told to end; return the code to end with.

        The first worker is started alone: what is wrong with its settings is told once.

        Args:
            command: What starts a worker.
            ready: Called when all serve.
        """
        with (
            tempfile.TemporaryDirectory(prefix="mooring-metrics-") as metrics,
            self._hearing() as heard,
        ):
            environ = {**os.environ, _SHARED_METRICS: metrics}
            while not self._is_over():
                self._start_due(command, environ)
                self._wait(heard)
                self._end_if_told()
                self._bury(metrics)
                self._tell(ready)
        return self._code

    # -- starting ----------------------------------------------------------------------------------

    def _start_due(self, command: Sequence[str], environ: MutableMapping[str, str]) -> None:
        for child in self._children:
            if self._ended_by or (child.number and not self._children[0].was_ready):
                return
            if child.due_s is not None and child.due_s <= time.monotonic():
                self._start(child, command, environ)

    def _start(
        self, child: _Child, command: Sequence[str], environ: MutableMapping[str, str]
    ) -> None:
        ours, theirs = socket.socketpair()
        handed = (self._taken.fileno(), theirs.fileno())
        with theirs:
            child.process = subprocess.Popen(  # noqa: S603  # the command of this very process
                command,
                pass_fds=handed,
                env={**environ, _VARIABLE: f"{child.number}:{handed[0]}:{handed[1]}"},
                # Ctrl-C reaches a whole group: workers shall hear of it once, from here.
                process_group=0,
            )
        with suppress(OSError):  # it ended already, which is seen elsewhere
            ours.sendall(self._key)
        self._selector.register(ours, selectors.EVENT_READ, child)
        child.channel, child.is_ready = ours, False
        child.began_s, child.due_s = time.monotonic(), None

    # -- watching ----------------------------------------------------------------------------------

    @contextmanager
    def _hearing(self) -> Iterator[socket.socket]:
        """Hear signals, also those that tell of a child that ended."""
        heard, told = socket.socketpair()
        for one in (heard, told):
            one.settimeout(0)
        self._selector.register(heard, selectors.EVENT_READ)
        woken = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        before = {number: signal.signal(number, self._hear) for number in _SIGNALS}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            yield heard
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(woken)
            self._selector.close()
            heard.close()
            told.close()

    def _hear(self, number: int, _: object) -> None:
        if self._ended_by:  # told again
            self._signal(signal.SIGKILL)
            self._code = _ENDED_BY_SIGNAL + number
            return
        # No more here: a worker may be about to be started, which would not be told.
        self._ended_by = number

    def _end_if_told(self) -> None:
        if self._ended_by and not self._is_ending:
            self._is_ending = True
            self._taken.close()
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        for child in self._children:
            if child.process is not None and child.ended is None:
                child.process.send_signal(number)

    def _wait(self, heard: socket.socket) -> None:
        due = [child.due_s for child in self._children if child.due_s]
        pause_s = max(0.0, min(due) - time.monotonic()) if due and not self._ended_by else None
        for key, _ in self._selector.select(pause_s):
            if key.fileobj is heard:
                with suppress(BlockingIOError):
                    heard.recv(4096)
                continue
            self._listen(key.data)

    def _listen(self, child: _Child) -> None:
        """Hear that a worker serves, or that it will say nothing any more."""
        if child.channel is None:
            return
        try:
            said = child.channel.recv(1)
        except OSError:
            said = b""
        if said == _READY:
            child.is_ready = child.was_ready = True
            child.began_s = time.monotonic()
            return
        self._hang_up(child)

    def _hang_up(self, child: _Child) -> None:
        if child.channel is not None:
            self._selector.unregister(child.channel)
            child.channel.close()
            child.channel = None

    def _bury(self, metrics: str) -> None:
        """Take note of workers that ended, and of when others begin in their place."""
        for child in self._children:
            code, process = child.ended, child.process
            if code is None or process is None:
                continue
            self._hang_up(child)
            child.process = None
            _forget_gauges(process.pid, metrics)
            if self._ended_by:
                # Who was told before it served is ended by the signal itself.
                self._code = self._code or int(code not in {0, -signal.SIGTERM})
                continue
            if not child.was_ready:
                # It never served: what it said is why, and another would say the same.
                self._code = code if code > 0 else 1
                self._ended_by = signal.SIGTERM
                self._end_if_told()
                continue
            self._replace(child, process.pid, code)

    def _replace(self, child: _Child, pid: int, code: int) -> None:
        lived_s = time.monotonic() - child.began_s
        child.failures = 0 if child.is_ready and lived_s > _LONG_LIFE_S else child.failures + 1
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (child.failures - 1))
        child.due_s = time.monotonic() + pause_s
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        told = "worker %d (process %d) ended %s: another begins in %.1f s"
        logger.warning(told, child.number, pid, how, pause_s)

    def _tell(self, ready: Callable[[], None]) -> None:
        if not self._is_told and all(child.was_ready for child in self._children):
            self._is_told = True
            ready()

    def _is_over(self) -> bool:
        return bool(self._ended_by) and all(child.process is None for child in self._children)


def _forget_gauges(pid: int, metrics: str) -> None:
    """Leave out of the metrics what a process was just doing."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(pid, metrics)  # type: ignore[no-untyped-call]  # has none
