"""Records that do not fit: what they are, how many may be left out, and the file they go to."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Reject", "RejectRules", "too_many", "write_rejects"]

_SHOWN = 300


@dataclass(frozen=True, order=True)
class Reject:
    """A record that was left out.

    Attributes:
        file: Where it stands.
        row: Which record of the file it is, from 1; the header of CSV does not count.
        reason: Why.
        record: The record: as JSON, or its text where it could not be read.
    """

    file: str
    row: int
    reason: str
    record: str

    def __str__(self) -> str:
        """Say it in a message."""
        return f"{quote(self.file)}, record {self.row}: {self.reason}"


@dataclass(frozen=True)
class RejectRules:
    """How many records may be left out.

    Attributes:
        limit: At most so many; None for any number.
        path: The file that they go to; none unless given.
    """

    limit: int | None = 0
    path: str | None = None

    @classmethod
    def of(cls, path: str | None, limit: int | None) -> RejectRules:
        """Read what was asked for: a file for them allows any number unless a limit is given.

        Raises:
            InvalidInputError: a limit makes no sense, or the file cannot be written.
        """
        if limit is not None and limit < 0:
            msg = f"{limit} records cannot be rejected: the limit starts at 0"
            raise InvalidInputError(msg)
        if path is not None and not Path(path).absolute().parent.is_dir():
            msg = f"{quote(path)} cannot be written: its directory is not there"
            raise InvalidInputError(msg)
        return cls(limit if limit is not None or path is not None else 0, path)


def too_many(rejects: Iterable[Reject], limit: int) -> InvalidInputError:
    """Say that more records do not fit than may be left out."""
    first = str(min(rejects))
    first = first if len(first) < _SHOWN else f"{first[:_SHOWN]}..."
    if not limit:
        msg = (
            f"a record does not fit: {first}; repair it, or leave such records out with"
            " --rejects FILE, which keeps them there"
        )
    else:
        msg = f"more than {limit} records do not fit, which is the limit; the first is {first}"
    return InvalidInputError(msg)


def write_rejects(path: str, rejects: Iterable[Reject]) -> None:
    """Write records that were left out to a file, one JSON object a line; all of it or nothing.

    Raises:
        InvalidInputError: the file cannot be written.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(_line(reject) for reject in sorted(rejects))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as exc:
        msg = f"{quote(path)} cannot be written: {exc.strerror or exc}"
        raise InvalidInputError(msg) from exc
    finally:
        temporary.unlink(missing_ok=True)


def _line(reject: Reject) -> str:
    record: object = reject.record
    with contextlib.suppress(ValueError):
        record = json.loads(reject.record)
    found = {
        "file": reject.file,
        "row": reject.row,
        "reason": reject.reason,
        "record": record,
    }
    return json.dumps(found, ensure_ascii=False) + "\n"
