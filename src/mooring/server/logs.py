"""The lines that a server writes: for people, or as objects of JSON for programs.

Each has the id of the request that it belongs to. What looks like a secret in a URI is masked.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from mooring.config import mask_uris
from mooring.server.asked import current_request_id

if TYPE_CHECKING:
    from typing import Self

__all__ = ["LogFormat", "LogLevel", "configure_logs", "formatter_of"]


class LogFormat(StrEnum):
    """How a line is written."""

    TEXT = "text"
    JSON = "json"

    @classmethod
    def fitting(cls, stream: TextIO) -> Self:
        """Return what fits a stream: text where somebody reads it."""
        return cls(cls.TEXT if stream.isatty() else cls.JSON)


class LogLevel(StrEnum):
    """From which importance on lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """As Python's logging counts it."""
        return logging.getLevelNamesMapping()[self.upper()]


def configure_logs(form: LogFormat, level: LogLevel, stream: TextIO) -> None:
    """Write what the server logs, from a level on.

    Other libraries are heard from warnings on; a program that has a log already keeps it.
    """
    logging.getLogger("mooring").setLevel(level.number)
    # It tells of each repeated request, but not of which; what fails for good is told otherwise.
    logging.getLogger("stamina").setLevel(logging.ERROR)
    if logging.getLogger().handlers:
        return
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter_of(form))
    logging.getLogger().addHandler(handler)


def formatter_of(form: LogFormat) -> logging.Formatter:
    """Return what writes lines."""
    return _JsonLines() if form is LogFormat.JSON else _TextLines()


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask_uris(record.getMessage()),
            "request_id": current_request_id(),
        }
        if record.exc_info:
            fields["traceback"] = mask_uris(self.formatException(record.exc_info))
        return json.dumps({key: value for key, value in fields.items() if value is not None})


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        request_id = current_request_id()
        which = f" [{request_id}]" if request_id else ""
        line = f"{_at(record)} {record.levelname} {record.name}{which}: {record.getMessage()}"
        if record.exc_info:
            line += f"\n{self.formatException(record.exc_info)}"
        return mask_uris(line)
