"""The verbs of ``mooring table`` about what a metastore keeps below a table, and its names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from mooring.cli.listing import as_time, metastore_of
from mooring.cli.options import LiveName, command
from mooring.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.catalog import Catalog
    from mooring.metastore.locator import Locator
    from mooring.metastore.model import Delta, Partition, Stream
    from mooring.metastore.transaction import Found, Transaction

__all__ = ["add_to"]

_STREAM_COLUMNS = ("version", "stream", "format", "state", "partitions", "location")
_PARTITION_COLUMNS = ("version", "stream", "partition", "values", "state", "position", "deltas")
_DELTA_COLUMNS = ("stream", "partition", "position", "type", "files", "rows", "bytes", "by", "at")

AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TXN", help="The state right after a transaction."),
]


@command
def streams_command(session: Session, name: LiveName, as_of: AsOf = None) -> None:
    """List the streams of a table in a metastore."""
    view, table = _find(session.open_catalog(), name, as_of)
    rows = [
        {
            "version": version.id,
            "stream": stream.id,
            "format": cast("Stream", stream.value).format,
            "state": cast("Stream", stream.value).state.value,
            "partitions": len(view.children(stream.locator)),
            "location": cast("Stream", stream.value).properties.get("location"),
        }
        for version in view.children(table)
        for stream in view.children(version.locator)
    ]
    session.output.rows(_STREAM_COLUMNS, rows)


@command
def partitions_command(session: Session, name: LiveName, as_of: AsOf = None) -> None:
    """List the partitions of a table's streams; of a Lance table they are its branches."""
    view, table = _find(session.open_catalog(), name, as_of)
    rows = []
    for stream, partition in _partitions(view, table):
        value = cast("Partition", partition.value)
        rows.append(
            {
                "version": stream.ids[-2],
                "stream": stream.id,
                "partition": partition.id,
                "values": list(value.values),
                "state": value.state.value,
                "position": value.stream_position,
                "deltas": len(view.children(partition.locator)),
            }
        )
    session.output.rows(_PARTITION_COLUMNS, rows)


@command
def deltas_command(
    session: Session,
    name: LiveName,
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="ID", help="Only those of one partition.")
    ] = None,
    as_of: AsOf = None,
) -> None:
    """List the deltas of a table, the newest last; of a Lance table they are its versions."""
    view, table = _find(session.open_catalog(), name, as_of)
    rows = [
        _delta(stream, parent, found)
        for stream, parent in _partitions(view, table)
        if partition in {None, parent.id}
        for found in sorted(view.children(parent.locator), key=_position)
    ]
    session.output.rows(_DELTA_COLUMNS, rows)


@command
def alias_command(
    session: Session,
    name: LiveName,
    alias: Annotated[
        str, typer.Argument(metavar="ALIAS", help="One more name, in the same namespace.")
    ],
) -> None:
    """Give a table of a metastore one more name; it stays where it is."""
    catalog = session.open_catalog()
    backend = metastore_of(catalog)
    backend.alias_table(catalog.identifier(name), alias)
    told = {"table": name, "result": "aliased", "alias": alias}
    session.output.change(told, f"'{name}' is also named '{alias}' in its namespace")


def add_to(app: typer.Typer) -> None:
    """Add the verbs to a noun."""
    app.command("streams")(streams_command)
    app.command("partitions")(partitions_command)
    app.command("deltas")(deltas_command)
    app.command("alias")(alias_command)


def _find(catalog: Catalog, name: str, as_of: str | None) -> tuple[Transaction, Locator]:
    """Find a table's objects, now or as of a transaction.

    Raises:
        NotFoundError: it was not there.
    """
    from mooring.metastore.lance_table import locator_of

    backend = metastore_of(catalog)
    view = catalog.as_of(txn_id=as_of) if as_of else backend.metastore.begin()
    return view, view.get(locator_of(catalog.identifier(name))).locator


def _partitions(view: Transaction, table: Locator) -> Iterator[tuple[Found, Found]]:
    for version in view.children(table):
        for stream in view.children(version.locator):
            for partition in view.children(stream.locator):
                yield stream, partition


def _position(found: Found) -> int:
    return cast("Delta", found.value).stream_position or 0


def _delta(stream: Found, partition: Found, found: Found) -> dict[str, object]:
    delta = cast("Delta", found.value)
    files = delta.manifest.files
    return {
        "stream": stream.id,
        "partition": partition.id,
        "position": delta.stream_position,
        "type": delta.type.value,
        "files": len(files),
        "rows": _total(file.rows for file in files),
        "bytes": _total(file.size_bytes for file in files),
        "by": delta.manifest.author,
        "at": as_time(delta.at_ms),
        "paths": [file.path for file in files],
    }


def _total(numbers: Iterator[int | None]) -> int | None:
    known = list(numbers)
    return None if not known or None in known else sum(one for one in known if one is not None)
