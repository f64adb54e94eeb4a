"""A publication: what of a change table is published, where to, and with which indexes.

It is kept with the change table, in the catalog, so that whoever publishes it again need not say
it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec.structs import replace as with_fields

from mooring.changes.objects import require_objects
from mooring.changes.vectors import Vector, parse_vector
from mooring.errors import InvalidInputError, UnreadableError
from mooring.identifiers import ObjectId, quote
from mooring.jobs.address import CatalogAddress
from mooring.opening import connect
from mooring.tables.index_kinds import IndexKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.catalog import Catalog, Name
    from mooring.changes.table import ChangeTable
    from mooring.metastore import Table
    from mooring.metastore.transaction import Transaction

__all__ = [
    "Publication",
    "PublishedIndex",
    "choose_publication",
    "forget_publication",
    "parse_index",
    "save_publication",
    "saved_publications",
]

PROPERTY = "mooring.publications"


@dataclass(frozen=True)
class PublishedIndex:
    """An index of a published table.

    Attributes:
        column: The column, as it is published.
        kind: Its kind, as Lance names it.
        parameters: Those of the kind.
    """

    column: str
    kind: str
    parameters: dict[str, str | int | bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The index's name."""
        return f"{self.column}_{self.kind}".lower()


@dataclass(frozen=True)
class Publication:
    """What is published, and where to.

    Attributes:
        into: The Lance table's identifier, level by level.
        catalog: Its catalog; None where it is that of the change table.
        columns: Columns, each ``a`` or ``a as b``; all unless given.
        vector: A column of vectors, if any.
        indexes: The indexes.
    """

    into: tuple[str, ...]
    catalog: str | None = None
    columns: tuple[str, ...] | None = None
    vector: Vector | None = None
    indexes: tuple[PublishedIndex, ...] = ()

    @property
    def target(self) -> ObjectId:
        """The Lance table's identifier."""
        return ObjectId(self.into)

    def is_same(self, other: Publication) -> bool:
        """Whether both are of one Lance table."""
        return (self.into, self.catalog) == (other.into, other.catalog)

    def open_catalog(self, own: Catalog) -> Catalog:
        """Open the catalog that it publishes into.

        Args:
            own: The change table's, whose options of the store are used, too.
        """
        if self.catalog is None:
            return own
        shared = {"read_only", "author", "storage_options"}
        return connect(self.catalog, **{k: v for k, v in own.options.items() if k in shared})


def parse_index(text: str) -> PublishedIndex:
    """Read ``COLUMN:KIND``, or ``COLUMN:KIND:parameter=value,...``.

    Raises:
        InvalidInputError: it is neither, or there is no such kind.
    """
    column, colon, rest = text.partition(":")
    kind, _, given = rest.partition(":")
    if not (column and colon and kind):
        msg = f"{quote(text)} is no index: write COLUMN:KIND, as in id:BTREE or v:IVF_PQ"
        raise InvalidInputError(msg)
    parameters: dict[str, str | int | bool] = {}
    for pair in filter(None, given.split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInputError(f"{quote(pair)} of {quote(text)} is no PARAMETER=VALUE")
        parameters[name.strip()] = _value(value.strip())
    return PublishedIndex(column, IndexKind.parse(kind).name, parameters)


def _value(text: str) -> str | int | bool:
    if text.isdecimal():
        return int(text)
    return text == "true" if text in {"true", "false"} else text


def choose_publication(
    table: ChangeTable,
    into: Name | None,
    *,
    catalog: Catalog | None = None,
    columns: Sequence[str] | None = None,
    vector: Vector | str | None = None,
    indexes: Sequence[PublishedIndex | str] | None = None,
) -> Publication:
    """Say what is to be published: what is given, and for the rest what is kept.

    Raises:
        InvalidInputError: nothing says where to, or something makes no sense.
    """
    found = _find(table, into, catalog)
    if columns is not None:
        found = replace(found, columns=tuple(columns))
    if vector is not None:
        found = replace(found, vector=parse_vector(vector) if isinstance(vector, str) else vector)
    if indexes is not None:
        parsed = (parse_index(one) if isinstance(one, str) else one for one in indexes)
        found = replace(found, indexes=tuple(parsed))
    return found


def _find(table: ChangeTable, into: Name | None, catalog: Catalog | None) -> Publication:
    saved = saved_publications(table)
    if into is None:
        if len(saved) == 1:
            return saved[0]
        known = ", ".join(str(one.target) for one in saved)
        msg = f"{quote(str(table.id))} is not published yet: say into which table, with --into"
        if saved:
            msg = f"{quote(str(table.id))} is published into {known}: say which, with --into"
        raise InvalidInputError(msg)
    target = (catalog or table.catalog).identifier(into)
    if target.is_root:
        raise InvalidInputError("say the name of the table to publish into")
    wanted = Publication(target.names, None if catalog is None else _uri(table, catalog))
    for one in saved:
        if one.is_same(wanted) or (catalog is None and one.into == wanted.into):
            return one
    return wanted


def _uri(table: ChangeTable, catalog: Catalog) -> str | None:
    """Name a catalog so that it is found again; that of the table itself may move."""
    found = CatalogAddress.of(catalog).uri
    return None if found == CatalogAddress.of(table.catalog).uri else found


def saved_publications(table: ChangeTable) -> list[Publication]:
    """Return what is kept of a table's publications.

    Raises:
        UnreadableError: it is damaged.
        TableNotFoundError: the table is gone.
    """
    view = table.catalog.metastore.begin()
    return _read(view, table.id)


def save_publication(table: ChangeTable, publication: Publication) -> None:
    """Keep a publication with its table, in place of one into the same Lance table."""
    if publication in saved_publications(table):
        return

    def change(known: list[Publication]) -> list[Publication]:
        return [*(one for one in known if not one.is_same(publication)), publication]

    _save(table, change, f"publish {table.id} into {publication.target}")


def forget_publication(table: ChangeTable, publication: Publication) -> None:
    """Keep a publication no longer; the Lance table stays."""

    def change(known: list[Publication]) -> list[Publication]:
        return [one for one in known if not one.is_same(publication)]

    _save(table, change, f"publish {table.id} into {publication.target} no more")


def _save(
    table: ChangeTable, change: Callable[[list[Publication]], list[Publication]], message: str
) -> None:
    def work(txn: Transaction) -> None:
        locator = require_objects(txn, table.id).locator
        value = cast("Table", txn.get(locator).value)
        kept = msgspec.json.encode(change(_read(txn, table.id))).decode()
        txn.update(locator, with_fields(value, properties={**value.properties, PROPERTY: kept}))

    table.catalog.metastore.run(work, message=message)


def _read(txn: Transaction, table: ObjectId) -> list[Publication]:
    found = txn.get(require_objects(txn, table).locator)
    text = cast("Table", found.value).properties.get(PROPERTY, "[]")
    try:
        return msgspec.json.decode(text, type=list[Publication])
    except msgspec.DecodeError as exc:
        msg = f"what is kept of the publications of {quote(str(table))} is damaged: {exc}"
        raise UnreadableError(msg) from exc
