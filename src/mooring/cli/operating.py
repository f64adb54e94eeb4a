"""How a server is run: the options of ``mooring serve`` about processes, limits and logs."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.server.access_log import Access
    from mooring.server.settings import ServerSettings
    from mooring.server.supervisor import Worker

__all__ = [
    "DataThreads",
    "Drain",
    "Grace",
    "LogAs",
    "LogForm",
    "LogFrom",
    "LogImportance",
    "MetricsAnonymous",
    "MostWaiting",
    "Operating",
    "RequestTimeout",
    "Threads",
    "WorkerCount",
]


class LogForm(StrEnum):
    """How lines of the log are written; as the server's, whose import takes long."""

    TEXT = "text"
    JSON = "json"


class LogImportance(StrEnum):
    """From which importance on lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


# How the help groups them.
_RUN, _LOGS = "Processes and limits", "Logs and metrics"

WorkerCount = Annotated[
    int,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        max=256,
        rich_help_panel=_RUN,
        help="How many processes serve; one that dies is replaced.",
    ),
]
Threads = Annotated[
    int,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        max=1024,
        rich_help_panel=_RUN,
        help="How many requests about the catalog a process works on at once.",
    ),
]
DataThreads = Annotated[
    int,
    typer.Option(
        "--data-threads",
        metavar="N",
        min=1,
        max=1024,
        rich_help_panel=_RUN,
        help="How many requests that read or write rows a process works on at once.",
    ),
]
MostWaiting = Annotated[
    int,
    typer.Option(
        "--most-waiting",
        metavar="N",
        min=0,
        rich_help_panel=_RUN,
        help="How many requests of each kind may wait for that; more are told to come back.",
    ),
]
RequestTimeout = Annotated[
    float,
    typer.Option(
        "--request-timeout",
        metavar="SECONDS",
        min=0.1,
        rich_help_panel=_RUN,
        help="How long a request may take until its client is told to look later.",
    ),
]
Drain = Annotated[
    float,
    typer.Option(
        "--drain",
        metavar="SECONDS",
        min=0,
        rich_help_panel=_RUN,
        help="How long to take requests after the signal to end, while /health/ready says no.",
    ),
]
Grace = Annotated[
    float,
    typer.Option(
        "--grace",
        metavar="SECONDS",
        min=1,
        rich_help_panel=_RUN,
        help="How long requests that were begun may go on after that.",
    ),
]
MetricsAnonymous = Annotated[
    bool,
    typer.Option(
        "--metrics-anonymous",
        rich_help_panel=_LOGS,
        help="Show /metrics to clients without a token, too.",
    ),
]
LogAs = Annotated[
    LogForm | None,
    typer.Option(
        "--log-format",
        rich_help_panel=_LOGS,
        help="How to write the log to standard error: text on a terminal, else json.",
        show_default=False,
    ),
]
LogFrom = Annotated[
    LogImportance,
    typer.Option(
        "--log-level",
        rich_help_panel=_LOGS,
        help="What to log: info has a line for each request, -q has none of these.",
    ),
]


@dataclass(frozen=True, slots=True)
class Operating:
    """What was said about how a server is run."""

    workers: int = 1
    threads: int = 16
    data_threads: int = 8
    most_waiting: int = 512
    request_timeout_s: float = 300.0
    drain_s: float = 0.0
    grace_s: float = 30.0
    metrics_anonymous: bool = False
    log_format: LogForm | None = None
    log_level: LogImportance = LogImportance.INFO

    def apply(self, settings: ServerSettings, worker: Worker | None) -> ServerSettings:
        """Return settings with all of it, for one of several processes if it is one."""
        told = replace(
            settings,
            catalog_threads=self.threads,
            data_threads=self.data_threads,
            most_waiting=self.most_waiting,
            request_timeout_s=self.request_timeout_s,
            drain_s=self.drain_s,
            last_requests_s=self.grace_s,
            metrics_anonymous=self.metrics_anonymous,
        )
        if worker is None:
            return told
        return replace(told, token_key=worker.key, worker=worker.number)

    def configure_logs(self) -> None:
        """Write what the server logs to standard error."""
        from mooring.server.logs import LogFormat, LogLevel, configure_logs

        form = LogFormat(self.log_format) if self.log_format else LogFormat.fitting(sys.stderr)
        configure_logs(form, LogLevel(self.log_level), sys.stderr)

    def access_log(self, *, quiet: bool) -> Callable[[Access], None] | None:
        """Return who writes a line for each request; None where none are wanted."""
        from mooring.server.access_log import write_access
        from mooring.server.logs import LogFormat

        if quiet or self.log_level not in {LogImportance.DEBUG, LogImportance.INFO}:
            return None
        form = LogFormat(self.log_format) if self.log_format else None
        return lambda access: write_access(access, sys.stderr, form)
