"""Which layout a root has: that of the document, that of the deltacat library, or none yet.

A catalog that deltacat made shows its directories of transactions. One that was made here in its
layout says so in ``txn/_dialect``, which is written before the first commit; its library passes
over names that begin with an underscore. Everything else with a chain is of the document's layout.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from mooring.errors import CatalogFormatError, ConflictError, InvalidInputError
from mooring.identifiers import quote
from mooring.metastore.deltacat.dialect import DeltacatDialect
from mooring.metastore.deltacat.layout import DIALECT_PATH, STATUS_DIRS
from mooring.metastore.dialect import DOCUMENT
from mooring.metastore.layout import TXN_DIR
from mooring.metastore.metastore import Metastore

if TYPE_CHECKING:
    from mooring.clock import Clock, IdSource
    from mooring.metastore.dialect import Dialect
    from mooring.store import Store

__all__ = ["Layout", "create_metastore", "open_metastore", "recognise", "settle_layout"]


class Layout(StrEnum):
    """What a root is."""

    EMPTY = "empty"
    DOCUMENT = "document"
    DELTACAT = "deltacat"


def recognise(store: Store) -> Layout:
    """Tell what a root is, by one listing and, where it has our mark, that.

    Raises:
        CatalogFormatError: its mark names a layout that is not known.
    """
    found = store.list_dir(TXN_DIR)
    if DIALECT_PATH.rpartition("/")[2] in found.files:
        return _marked((store.get(DIALECT_PATH) or b"").decode(errors="replace"))
    if STATUS_DIRS & set(found.directories):
        return Layout.DELTACAT
    return Layout.DOCUMENT if found.directories or found.files else Layout.EMPTY


def create_metastore(
    store: Store,
    *,
    author: str,
    layout: Layout = Layout.DOCUMENT,
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> Metastore:
    """Make a metastore in an empty root, or open the one of this layout that is there.

    Raises:
        ConflictError: there is one of another layout.
        InvalidInputError: the layout is none that a metastore can have.
    """
    settle_layout(store, layout)
    return Metastore(store, author=author, clock=clock, ids=ids, dialect=_dialect(layout, store))


def settle_layout(store: Store, layout: Layout) -> None:
    """Before the first commit: give an empty root its layout.

    Raises:
        ConflictError: there is a metastore of another layout.
        InvalidInputError: the layout is none that a metastore can have.
    """
    if layout is Layout.EMPTY:
        msg = f"a metastore is made with layout {Layout.DOCUMENT.value} or {Layout.DELTACAT.value}"
        raise InvalidInputError(msg)
    if recognise(store) is Layout.EMPTY:
        store.put_new(DIALECT_PATH, layout.value.encode())
    found = recognise(store)
    if found is not layout:
        msg = f"there is a metastore of layout {found.value} already: open it, or take another root"
        raise ConflictError(msg)


def open_metastore(
    store: Store,
    *,
    author: str,
    layout: Layout | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    beside_others: bool = False,
) -> Metastore:
    """Open a metastore in the layout that it has.

    Args:
        store: Where it lies.
        author: In whose name to commit.
        layout: What an empty root is to become, the document's unless given; what is there must be
            of it.
        clock: Stamps commits.
        ids: Makes ids and nonces.
        beside_others: Whether to write while deltacat's own writers do. Its commits are taken into
            the chain as they are seen; a commit of its own at the same moment may be lost, by its
            rules as among its own writers.

    Raises:
        CatalogFormatError: its mark names a layout that is not known.
        ConflictError: it is of another layout.
    """
    found = recognise(store)
    if layout is not None and found not in {Layout.EMPTY, layout}:
        msg = f"the metastore is of layout {found.value}, not {layout.value}: open it as what it is"
        raise ConflictError(msg)
    return Metastore(
        store,
        author=author,
        clock=clock,
        ids=ids,
        dialect=_dialect(layout or found, store),
        beside_others=beside_others,
    )


def _dialect(layout: Layout, store: Store) -> Dialect:
    if layout is not Layout.DELTACAT:
        return DOCUMENT
    return DeltacatDialect(store.location("").partition("://")[2] or store.location(""))


def _marked(name: str) -> Layout:
    if name not in {Layout.DOCUMENT, Layout.DELTACAT}:
        msg = (
            f"'{DIALECT_PATH}' names the layout {quote(name)}: it takes a newer Mooring to read it"
        )
        raise CatalogFormatError(msg)
    return Layout(name)
