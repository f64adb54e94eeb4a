"""What a request touches, so that nobody reaches what they may not, and sees names they may.

What is looked at is the request as it will be carried out, not as it was written. A location is a
way around names, and so are options of the store: to give one asks for the role in the whole
catalog. Whoever may see only some of a listing gets pages of these alone: a token holds the last
name of a page, and it must be one of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mooring.identifiers import DELIMITER, ROOT, ObjectId
from mooring.namespace.paging import cut, take_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mooring.server.lance.operation import Operation
    from mooring.server.roles import Identity

__all__ = ["Part", "check", "touched"]

# Where each listing has its names.
_LISTINGS = {"ListNamespaces": "namespaces", "ListTables": "tables", "ListAllTables": "tables"}
_TRANSACTIONS = {"DescribeTransaction", "AlterTransaction"}
_WAYS_AROUND = ("location", "storage_options")
_BATCHES = ("entries", "operations")
_STEPS = ("declare_table", "create_table_version", "delete_table_versions", "deregister_table")
_OF_A_TABLE = 2
_NAMED = "{id}"


def check(
    who: Identity, catalog: str, operation: Operation, *, about: ObjectId, fields: Mapping[str, Any]
) -> None:
    """Refuse what is not allowed.

    Args:
        who: Asks.
        catalog: Where.
        operation: For what.
        about: What the path names; the root where it names nothing.
        fields: Of the request that will be carried out.

    Raises:
        PermissionDeniedError: it is not allowed.
        InvalidInputError: something in it cannot be the name of anything.
    """
    if operation.name in _LISTINGS and who.sees(catalog, _listed(operation, about)):
        return  # what is below and not allowed is left out of the answer
    who.require(operation.role, catalog, touched(operation, about, fields))


def touched(operation: Operation, about: ObjectId, fields: Mapping[str, Any]) -> list[ObjectId]:
    """Return all that a request is about.

    Raises:
        InvalidInputError: something in it cannot be the name of anything.
    """
    if operation.name in _LISTINGS:
        return [_listed(operation, about)]
    if operation.name in _TRANSACTIONS:
        # Of a table, after whose names they are named; others are nobody's in particular.
        return [about.parent if about.level >= _OF_A_TABLE else ROOT]
    found = [about, *_others(fields)] if _NAMED in operation.path else [*_in_batches(fields)]
    if operation.name == "RenameTable":
        parent = fields.get("new_namespace_id")
        names = about.parent.names if parent is None else parent
        found.append(ObjectId.of([*names, fields.get("new_table_name") or ""]))
    return found


def _listed(operation: Operation, about: ObjectId) -> ObjectId:
    """Return what a listing is of: where its path names nothing, it is of all there is."""
    return about if _NAMED in operation.path else ROOT


def _others(fields: Mapping[str, Any]) -> Iterator[ObjectId]:
    if any(fields.get(way) for way in _WAYS_AROUND):
        yield ROOT


def _in_batches(fields: Mapping[str, Any]) -> Iterator[ObjectId]:
    """Go through the tables of a batch, whatever is done to each."""
    for batch in _BATCHES:
        for entry in fields.get(batch) or ():
            # What is one of several steps has the table inside.
            for one in [entry[step] for step in _STEPS if entry.get(step)] or [entry]:
                yield ObjectId.of(one.get("id"))  # without one, it is nobody's in particular
                yield from _others(one)


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a listing that somebody may see.

    Attributes:
        who: They.
        catalog: Where.
        operation: Which listing.
        about: Of what.
        flat: Whether names are no paths of several levels.
    """

    who: Identity
    catalog: str
    operation: Operation
    about: ObjectId
    flat: bool = False

    @classmethod
    def of(
        cls, who: Identity, catalog: str, operation: Operation, *, about: ObjectId, flat: bool
    ) -> Part | None:
        """Return the part; None where all may be seen, or nothing is listed."""
        within = _listed(operation, about)
        if operation.name not in _LISTINGS or who.role_in(catalog, within) is not None:
            return None
        return cls(who, catalog, operation, within, flat)

    def ask(self, call: Callable[[Any], Any], request: Any) -> Any:  # noqa: ANN401  # any of the answers
        """List everything, and keep the page that is asked for of what may be seen.

        Args:
            call: Lists.
            request: Which page is asked for.
        """
        key = _LISTINGS[self.operation.name]
        answer = call(request.model_copy(update={"page_token": None, "limit": None}))
        names = list(getattr(answer, key))
        while answer.page_token:  # a catalog of others may choose its pages
            following = {"page_token": answer.page_token, "limit": None}
            answer = call(request.model_copy(update=following))
            names += getattr(answer, key)
        seen = sorted(filter(self._is_seen, names))
        page, token = take_page(
            lambda after, limit: cut(seen, after, limit), request.page_token, request.limit
        )
        return answer.model_copy(update={key: page, "page_token": token})

    def _is_seen(self, name: str) -> bool:
        match self.operation.name:
            case "ListNamespaces":
                return self.who.sees(self.catalog, self.about.child(name))
            case "ListTables":
                table = self.about.child(name)
            case _:
                table = ObjectId((name,) if self.flat else tuple(name.split(DELIMITER)))
        return self.who.role_in(self.catalog, table) is not None
