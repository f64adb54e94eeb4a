"""What a request touches, so that nobody reaches what they may not, and sees names they may.

A location is a way around names: to give one asks for the role in the whole catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.identifiers import DELIMITER, ROOT, ObjectId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mooring.server.lance.operations import Operation
    from mooring.server.roles import Identity

__all__ = ["check", "touched", "visible"]

_LISTINGS = {"ListNamespaces", "ListTables", "ListAllTables"}
_PLACING = {"RegisterTable", "DeclareTable"}
_BATCHES = ("entries", "operations")


def check(
    who: Identity, catalog: str, operation: Operation, *, about: ObjectId, fields: Mapping[str, Any]
) -> None:
    """Refuse what is not allowed.

    Raises:
        PermissionDeniedError: it is not.
    """
    if operation.name in _LISTINGS and who.sees(catalog, about):
        return  # what is below and not allowed is left out of the answer
    who.require(operation.role, catalog, touched(operation, about, fields))


def touched(operation: Operation, about: ObjectId, fields: Mapping[str, Any]) -> list[ObjectId]:
    """Return all that a request is about."""
    found = [] if operation.name.startswith("Batch") and about.is_root else [about]
    found += _in_batches(fields)
    if operation.name == "RenameTable":
        parent = fields.get("new_namespace_id")
        names = list(about.parent.names) if parent is None else parent
        found.append(ObjectId.of([*names, fields.get("new_table_name") or ""]))
    if operation.name in _PLACING and fields.get("location"):
        found.append(ROOT)
    return found


def _in_batches(fields: Mapping[str, Any]) -> Iterator[ObjectId]:
    """Go through the tables of a batch, whatever is done to each."""
    for key in _BATCHES:
        for entry in fields.get(key) or ():
            for part in (entry, *(entry.values() if isinstance(entry, dict) else ())):
                if isinstance(part, dict) and isinstance(part.get("id"), list):
                    yield ObjectId.of(part["id"])
                    if part.get("location"):
                        yield ROOT


def visible(
    who: Identity, catalog: str, operation: Operation, *, about: ObjectId, body: dict[str, Any]
) -> dict[str, Any]:
    """Leave out of a listing what may not be seen."""
    match operation.name:
        case "ListNamespaces":
            names = body["namespaces"]
            seen = [one for one in names if who.sees(catalog, about.child(one))]
            return {**body, "namespaces": seen}
        case "ListTables":
            names = body["tables"]
            seen = [one for one in names if who.role_in(catalog, about.child(one))]
            return {**body, "tables": seen}
        case "ListAllTables":
            names = body["tables"]
            seen = [
                one for one in names if who.role_in(catalog, ObjectId(tuple(one.split(DELIMITER))))
            ]
            return {**body, "tables": seen}
    return body
