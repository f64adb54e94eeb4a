"""Where everything lies below the root of a metastore.

Spec: deltacat-storage-model, "Directory & File Structure". Entries whose names begin with `_` are
ours; readers of the document's layout do not look at them.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from mooring.store.numbered import SEQ_DIGITS, format_seq

__all__ = [
    "CHECKPOINTS_DIR",
    "COMMITS_DIR",
    "DATA_DIR",
    "KEPT_MARKER",
    "TABLES_DIR",
    "TXN_DIR",
    "Operation",
    "RevisionName",
    "checkpoint_path",
    "commit_path",
    "data_dir",
    "log_path",
    "mapping_path",
    "object_dir",
    "parse_checkpoint",
    "parse_log",
    "parse_mapping",
    "parse_revision",
    "parse_stage",
    "revision_path",
    "revisions_dir",
    "table_dir",
]

TXN_DIR = "txn"
COMMITS_DIR = f"{TXN_DIR}/_commits"
CHECKPOINTS_DIR = f"{TXN_DIR}/_checkpoints"
REVISIONS_DIR = "rev"
DATA_DIR = "_data"
TABLES_DIR = "_tables"
_TABLE_SUFFIX = ".lance"
# In the directory of a table that was forgotten on purpose: no vacuum takes it for a leftover.
KEPT_MARKER = "_kept-by-deregistration"
_LARGEST = 10**SEQ_DIGITS - 1
_FILE = re.compile(rf"([0-9]{{{SEQ_DIGITS}}})_(create|update|delete)_(.+)\.([^.]+)")
# The document writes the name of a log with an underscore, and in its example with a hyphen.
_LOG = re.compile(r"([0-9]+)[_-]([0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12})")


class Operation(StrEnum):
    """What a transaction does to an object."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class RevisionName(NamedTuple):
    """What the name of a revision or mapping file tells."""

    revision: int
    operation: Operation
    txn_id: str
    object_id: str | None = None


def object_dir(ids: tuple[str, ...]) -> str:
    """Return the directory of an object, by the ids from its namespace down; the root has none."""
    return "/".join(ids)


def revisions_dir(ids: tuple[str, ...]) -> str:
    """Return the directory of an object's metadata revision files."""
    return f"{object_dir(ids)}/{REVISIONS_DIR}"


def revision_path(ids: tuple[str, ...], name: RevisionName) -> str:
    """Return the path of a metadata revision file."""
    return f"{revisions_dir(ids)}/{_stem(name)}.mpk"


def mapping_path(parent: tuple[str, ...], digest: str, name: RevisionName) -> str:
    """Return the path of a name mapping file, which leads to one of the parent's children."""
    return "/".join(filter(None, (object_dir(parent), digest, f"{_stem(name)}.{name.object_id}")))


def parse_revision(file_name: str) -> RevisionName | None:
    """Read the name of a metadata revision file; None for any other."""
    match = _FILE.fullmatch(file_name)
    if match is None or match[4] != "mpk":
        return None
    return RevisionName(int(match[1]), Operation(match[2]), match[3])


def parse_mapping(file_name: str) -> RevisionName | None:
    """Read the name of a name mapping file; None for any other."""
    match = _FILE.fullmatch(file_name)
    if match is None:
        return None
    return RevisionName(int(match[1]), Operation(match[2]), match[3], match[4])


def commit_path(seq: int) -> str:
    """Return the path of an entry of the chain of commits."""
    return f"{COMMITS_DIR}/{format_seq(seq)}"


def checkpoint_path(seq: int) -> str:
    """Return the path of a checkpoint; names count down, so that a listing begins with the last."""
    return f"{CHECKPOINTS_DIR}/{format_seq(_LARGEST - seq)}"


def parse_checkpoint(file_name: str) -> int | None:
    """Read up to which entry a checkpoint goes; None for any other file."""
    if len(file_name) != SEQ_DIGITS or not file_name.isdecimal():
        return None
    number = int(file_name)
    return int(_LARGEST - number)


def data_dir(stage_id: str) -> str:
    """Return the directory of data files that were written under an id."""
    return f"{DATA_DIR}/{stage_id}"


def table_dir(stage_id: str) -> str:
    """Return the directory of a Lance table that was written under an id."""
    return f"{TABLES_DIR}/{stage_id}{_TABLE_SUFFIX}"


def parse_stage(path: str) -> tuple[str, str] | None:
    """Read the directory and the id that a file was written under; None for any other file."""
    top, _, rest = path.partition("/")
    name, slash, _ = rest.partition("/")
    if top == DATA_DIR and name and slash:
        return data_dir(name), name
    if top == TABLES_DIR and name.endswith(_TABLE_SUFFIX) and slash:
        return f"{top}/{name}", name.removesuffix(_TABLE_SUFFIX)
    return None


def log_path(txn_id: str) -> str:
    """Return the path of the log of a committed transaction."""
    return f"{TXN_DIR}/{txn_id}"


def parse_log(file_name: str) -> str | None:
    """Read the id of a transaction from the name of its log, in both writings; None for others."""
    match = _LOG.fullmatch(file_name)
    return None if match is None else f"{match[1]}_{match[2]}"


def _stem(name: RevisionName) -> str:
    return f"{format_seq(name.revision)}_{name.operation.value}_{name.txn_id}"
