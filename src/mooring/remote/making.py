"""Ways in which a table gets into a remote catalog, or to another name in it.

Rows of a new table are sent to the server as they are read.

Spec: lance-rest-openapi.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from mooring.errors import InvalidInputError, MooringError, UnsupportedError
from mooring.identifiers import quote
from mooring.namespace.api import CreateMode
from mooring.tables.api import ElsewhereWritten

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.remote.connection import Connection
    from mooring.remote.tables import Tables

__all__ = ["Making"]

_DIRECTORY = "directory"
# What was sent is yet to be written and committed when the last of it has arrived.
_UPLOAD_TIMEOUT_S = 600.0


class Making:
    """Makes, registers and renames tables."""

    def __init__(self, connection: Connection, tables: Tables) -> None:
        """Work for a catalog.

        Args:
            connection: The server.
            tables: The catalog's tables.
        """
        self._connection = connection
        self._tables = tables

    def declare(
        self, table: ObjectId, location: str | None, properties: Mapping[str, str]
    ) -> TableInfo:
        """Reserve an identifier without data."""
        body = {
            "vend_credentials": self._connection.settings.delegation,
            **({"location": location} if location is not None else {}),
            **({"properties": dict(properties)} if properties else {}),
        }
        answer = self._connection.lance.of_table(table, "declare", body=body, changes=True)
        return self._connection.info(table, answer, is_only_declared=True)

    def create(
        self,
        table: ObjectId,
        rows: pa.RecordBatchReader,
        mode: CreateMode,
        properties: Mapping[str, str],
    ) -> TableInfo:
        """Create a table with data.

        Raises:
            UnsupportedError: workers are to write the rows where the server will put the table.
        """
        from mooring.remote.rows import ARROW_STREAM, stream_chunks  # imports pyarrow
        from mooring.tables.watched_rows import WatchedRows

        if isinstance(rows, ElsewhereWritten):
            msg = (
                f"only its server knows where table {quote(str(table))} will lie, and workers"
                " cannot write there before it is made: create it first, if only with a row or none"
            )
            raise UnsupportedError(msg)
        told = msgspec.json.encode(dict(properties)).decode() if properties else None
        source = WatchedRows(rows)
        try:
            answer = self._connection.lance.of_table(
                table,
                "create",
                query={"mode": mode.value, "properties": told},
                body=stream_chunks(source.reader),
                headers={"Content-Type": ARROW_STREAM},
                changes=True,
                timeout_s=max(_UPLOAD_TIMEOUT_S, self._connection.settings.timeout_s),
            )
        except BaseException as exc:
            # A stream without its end makes no table, whatever else is told about it.
            if source.failure is not None:
                raise source.failure from exc
            raise
        return self._made(table, answer)

    def register(
        self,
        table: ObjectId,
        location: str | None,
        mode: CreateMode,
        properties: Mapping[str, str],
    ) -> TableInfo:
        """Give an identifier to a table that lies in storage."""
        body = {
            "location": self._place_to_register(table) if location is None else location,
            "mode": "Overwrite" if mode is CreateMode.OVERWRITE else "Create",
            **({"properties": dict(properties)} if properties else {}),
        }
        answer = self._connection.lance.of_table(table, "register", body=body, changes=True)
        return self._made(table, answer)

    def _place_to_register(self, table: ObjectId) -> str:
        """Tell where a table lies by its name: only tables of a directory's root do.

        Raises:
            InvalidInputError: its place has to be said.
        """
        facts = self._connection.beside.facts
        if facts is not None and facts.kind == _DIRECTORY and table.level == 1:
            return f"{table.name}.lance"
        msg = f"to register table {quote(str(table))}, say where it lies: a path or a URI"
        raise InvalidInputError(msg)

    def _made(self, table: ObjectId, answer: Mapping[str, Any]) -> TableInfo:
        """Return a table that was made; the answer does not tell who decides about versions."""
        version = answer.get("version")
        with suppress(MooringError):  # it is made, whatever becomes of a look at it
            return replace(self._tables.describe(table), version=version)
        return self._connection.info(table, answer)

    def rename(self, table: ObjectId, new: ObjectId) -> TableInfo:
        """Give a live table another identifier."""
        before = self._tables.describe(table)
        body = {"new_table_name": new.name, "new_namespace_id": list(new.parent.names)}

        def change() -> TableInfo:
            self._connection.lance.of_table(table, "rename", body=body, changes=True)
            with suppress(MooringError):  # it is done, and others may do more
                return self._tables.describe(new)
            return replace(before, id=new)

        def look() -> TableInfo | None:
            return self._tables.describe(new) if self._tables.look(table) is None else None

        return self._connection.settle(change, look)
