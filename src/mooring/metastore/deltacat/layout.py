"""Where everything lies in a catalog of the deltacat library.

It spreads revision and mapping files over two levels of directories by their numbers, and the logs
of transactions over five by the minute in which they began. Files from before it did so lie
directly in their directories and are read as well.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from mooring.metastore.layout import REVISIONS_DIR, TXN_DIR, Operation
from mooring.store.numbered import format_seq

if TYPE_CHECKING:
    from mooring.metastore.timeline import Ids, Parts

__all__ = [
    "DIALECT_PATH",
    "PAUSED_DIR",
    "RUNNING_DIR",
    "STATUS_DIRS",
    "SUCCESS_DIR",
    "FileName",
    "canonical_digest",
    "file_path",
    "is_txn_id",
    "log_dir",
    "minute_parts",
    "parse_file",
    "parse_log",
    "start_ns",
]

SUCCESS_DIR = f"{TXN_DIR}/success"
RUNNING_DIR = f"{TXN_DIR}/running"
PAUSED_DIR = f"{TXN_DIR}/paused"
STATUS_DIRS = frozenset({"success", "running", "failed", "paused"})
# It passes over names that begin with an underscore.
DIALECT_PATH = f"{TXN_DIR}/_dialect"

_MILLION, _THOUSAND = 1_000_000, 1_000
_MINUTE_DEPTH = 5
_TXN_ID = r"[0-9]+_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_IS_TXN_ID = re.compile(_TXN_ID)
_FILE = re.compile(rf"([0-9]{{20}})_(create|update|replace|delete)_({_TXN_ID})\.([^.]+)")
_DIGEST = re.compile(r"[0-9a-f]{40}")
_LOG = re.compile(rf"{SUCCESS_DIR}/(?:([0-9/]{{16}})/)?({_TXN_ID})/([0-9]+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FileName:
    """What the path of a revision or mapping file tells.

    Attributes:
        ids: The ids from the namespace down to the object.
        revision: The number of the file.
        operation: What the transaction did; a replacement counts as an update.
        txn_id: The transaction.
        digest: Of the name that is mapped; None for a revision of the object itself.
    """

    ids: Ids
    revision: int
    operation: Operation
    txn_id: str
    digest: str | None = None


def canonical_digest(parts: Parts) -> str:
    """Return the digest of a name: of its own parts alone, without those of the parent."""
    return hashlib.sha1("|".join(parts).encode(), usedforsecurity=False).hexdigest()


def is_txn_id(name: str) -> bool:
    """Whether a name is that of a transaction."""
    return _IS_TXN_ID.fullmatch(name) is not None


def start_ns(txn_id: str) -> int:
    """Return when a transaction began, by the clock of who began it."""
    return int(txn_id.partition("_")[0])


def minute_parts(time_ns: int) -> tuple[str, ...]:
    """Return year, month, day, hour and minute, as directories are named."""
    moment = _EPOCH + timedelta(microseconds=time_ns // 1000)
    return tuple(f"{moment:%Y %m %d %H %M}".split())


def log_dir(txn_id: str) -> str:
    """Return the directory whose only file is the log of a committed transaction."""
    return "/".join((SUCCESS_DIR, *minute_parts(start_ns(txn_id)), txn_id))


def parse_log(path: str) -> tuple[str, int] | None:
    """Read a transaction and the time of its end from the path of its log; None for other files."""
    match = _LOG.fullmatch(path)
    return None if match is None else (match[2], int(match[3]))


def file_path(name: FileName) -> str:
    """Return the path of a revision file, or of the mapping file of a digest."""
    stem = f"{format_seq(name.revision)}_{name.operation.value}_{name.txn_id}"
    spread = _spread(name.revision)
    if name.digest is None:
        return "/".join((*name.ids, REVISIONS_DIR, *spread, f"{stem}.mpk"))
    return "/".join((*name.ids[:-1], name.digest, *spread, f"{stem}.{name.ids[-1]}"))


def parse_file(path: str) -> FileName | None:
    """Read the path of a revision or mapping file; None for any other."""
    *above, file_name = path.split("/")
    match = _FILE.fullmatch(file_name)
    if match is None:
        return None
    revision, operation, txn_id, extension = match.groups()
    if tuple(above[-2:]) == _spread(int(revision)):
        above = above[:-2]
    operation = Operation.UPDATE if operation == "replace" else Operation(operation)
    *ids, last = above or [""]
    if last == REVISIONS_DIR and extension == "mpk" and ids:
        return FileName(tuple(ids), int(revision), operation, txn_id)
    if _DIGEST.fullmatch(last):
        return FileName((*ids, extension), int(revision), operation, txn_id, last)
    return None


def _spread(revision: int) -> tuple[str, str]:
    """Return the two directories of a number: rounded up to millions, and what is left of it."""
    millions = -(-revision // _MILLION)
    rest = revision - (millions - 1) * _MILLION
    thousands = -(-rest // _THOUSAND)
    return str(millions * _MILLION), str(thousands * _THOUSAND)
