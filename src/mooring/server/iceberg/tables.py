"""What can be done with tables that are there.

Spec: iceberg-rest-openapi, "listTables" to "reportMetrics".
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from mooring.errors import InvalidInputError, UnsupportedError
from mooring.iceberg.entries import is_forgotten
from mooring.identifiers import quote
from mooring.namespace.api import Ttl
from mooring.server.iceberg.calls import NO_CONTENT, Answer
from mooring.server.iceberg.locations import to_iceberg as to_location
from mooring.server.iceberg.metadata import derive
from mooring.server.iceberg.pages import take
from mooring.server.iceberg.storage import credentials_of, credentials_of_new, settings_of

if TYPE_CHECKING:
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.server.iceberg.calls import Call

__all__ = [
    "TableName",
    "answer_with",
    "drop_table",
    "list_tables",
    "load_credentials",
    "load_table",
    "rename_table",
    "report_metrics",
    "table_exists",
]

NOT_MODIFIED = 304


class TableName(msgspec.Struct, frozen=True):
    """A table as requests name it."""

    namespace: list[str]
    name: str


class _Rename(msgspec.Struct, frozen=True):
    source: TableName
    destination: TableName


def list_tables(call: Call) -> Answer:
    """Name the tables of a namespace, by one look a page."""
    namespace = call.namespace
    is_whole = call.identity.role_in(call.catalog, namespace) is not None
    names, token = take(
        call,
        lambda after, limit: call.backend.list_tables(namespace, after=after, limit=limit),
        None if is_whole else lambda name: _is_seen(call, namespace, name),
    )
    above = call.names.show(namespace)
    found = [{"namespace": above, "name": name} for name in names]
    return Answer({"identifiers": found, "next-page-token": token})


def _is_seen(call: Call, namespace: ObjectId, name: str) -> bool:
    return call.identity.role_in(call.catalog, namespace.child(name)) is not None


def load_table(call: Call) -> Answer:
    """Describe a table; nothing but that it is unchanged where the client has it so."""
    asked = call.query.get("snapshots", "all")
    if asked not in {"all", "refs"}:
        raise InvalidInputError(f"'snapshots' is 'all' or 'refs', not {quote(asked)}")
    answer = answer_with(call, call.backend.describe_table(call.table), refs_only=asked == "refs")
    asked_of = call.headers.get("if-none-match", "").split(",")
    # A proxy that compresses answers makes their tags weak ones.
    known = {one.strip().removeprefix("W/") for one in asked_of}
    if answer.headers["ETag"] in known:
        return Answer(status=NOT_MODIFIED, headers=answer.headers)
    return answer


def answer_with(
    call: Call, info: TableInfo, *, refs_only: bool = False, is_new: bool = False
) -> Answer:
    """Return a table as a client loads it: without a location of metadata, for there is none.

    Args:
        call: Who asks.
        info: The table.
        refs_only: Whether only the snapshots are told that have a name.
        is_new: Whether it was just made.
    """
    found: dict[str, Any] = {
        "metadata": derive(call.backend, info, refs_only=refs_only),
        "config": settings_of(info),
    }
    if call.wants_credentials and call.vendor is not None:
        vend = credentials_of_new if is_new else credentials_of
        vended = vend(call, info, found["metadata"]["location"])
        found["storage-credentials"] = vended
        # PyIceberg chooses among them by the location of the metadata, which there is none of.
        found["config"] = {**found["config"], **(vended[0]["config"] if vended else {})}
    tag = sha256(msgspec.json.encode(found)).hexdigest()[:32]
    return Answer(found, headers={"ETag": f'"{tag}"'})


def table_exists(call: Call) -> Answer:
    """Tell whether there is such a table."""
    call.backend.describe_table(call.table)
    return NO_CONTENT


def drop_table(call: Call) -> Answer:
    """Hide a table, reversibly; where a purge is asked for, it can be purged at once.

    What another Mooring deregisters through this server is moved to a name that says so, and then
    dropped: in a trash, its bytes would go one day.
    """
    asked = call.query.get("purgeRequested", "false").lower()
    if asked not in {"true", "false", ""}:
        raise InvalidInputError(f"'purgeRequested' is true or false, not {quote(asked)}")
    table = call.table
    call.backend.describe_table(table)  # what is no Lance table is not seen here
    if is_forgotten(table):
        call.backend.deregister_table(table)
        return NO_CONTENT
    call.backend.drop_table(table, Ttl(0) if asked == "true" else None)
    return NO_CONTENT


def rename_table(call: Call) -> Answer:
    """Give a table another name."""
    asked = call.read(_Rename)
    source, target = asked.source, asked.destination
    old = call.names.table(source.namespace, source.name)
    new = call.names.table(target.namespace, target.name)
    call.backend.describe_table(old)  # what is no Lance table is not seen here
    call.backend.rename_table(old, new)
    return NO_CONTENT


def load_credentials(call: Call) -> Answer:
    """Hand out the credentials of the store that a table lies in."""
    info = call.backend.describe_table(call.table)
    if call.vendor is None:
        raise UnsupportedError(
            f"this server hands out no credentials: bring your own for '{info.location}', or serve"
            " with --vend-credentials"
        )
    return Answer({"storage-credentials": credentials_of(call, info, to_location(info.location))})


def report_metrics(call: Call) -> Answer:
    """Take note of what an engine measured; nobody keeps it."""
    call.read(dict[str, Any])
    call.backend.describe_table(call.table)
    return NO_CONTENT
