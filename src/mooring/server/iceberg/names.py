"""Names as Iceberg clients send them, and what they mean in the catalog.

A namespace is one segment of a path, its names joined by the unit separator. Iceberg has no tables
without a namespace: those of a catalog's root are shown in one that is made up.

Clients differ in how they encode. Iceberg's Java client writes a space in a path as `+`, as forms
do, and a plus as `%2B`; to all others a `+` is a plus. PyIceberg encodes the value of `parent`
twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mooring.errors import InvalidInputError, InvalidNameError, NamespaceNotFoundError
from mooring.identifiers import ROOT, ObjectId, quote
from mooring.namespace.home import AtHome
from mooring.server.addresses import decode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.namespace.api import Backend

__all__ = [
    "SEPARATOR",
    "Names",
    "decode_segment",
    "encodes_spaces_as_plus",
    "names_in",
    "read_parent",
]

SEPARATOR = "\x1f"
_JAVA_VERSION, _JAVA_AGENT, _PYICEBERG = "Apache Iceberg", "Java/", "PyIceberg"


@dataclass(frozen=True, slots=True)
class Names:
    """What names of Iceberg's mean in a catalog.

    Attributes:
        root: The namespace that stands for the root; None where no table lies in the root.
    """

    root: str | None

    def namespace(self, names: Sequence[str]) -> ObjectId:
        """Return the catalog's namespace.

        Raises:
            InvalidNameError: one of the names cannot be a name.
            NamespaceNotFoundError: it would lie in the one that stands for the root.
        """
        found = ObjectId.of(names)
        if found.is_root:
            raise InvalidNameError("a namespace needs a name")
        if found.names == (self.root,):
            return ROOT
        if found.names[0] == self.root:
            msg = (
                f"there is no namespace {quote(str(found))}: {quote(found.names[0])} stands for the"
                " root of the catalog, whose namespaces are named without it"
            )
            raise NamespaceNotFoundError(msg)
        return found

    def table(self, namespace: Sequence[str], name: str) -> ObjectId:
        """Return the catalog's table.

        Raises:
            InvalidNameError: one of the names cannot be a name.
            NamespaceNotFoundError: there can be no such namespace.
        """
        return self.namespace(namespace).child(name)

    def show(self, namespace: ObjectId) -> list[str]:
        """Return a namespace as Iceberg clients see it."""
        if namespace.is_root and self.root is not None:
            return [self.root]
        return list(namespace.names)


def names_in(backend: Backend, root_namespace: str) -> Names:
    """Return what names mean in a catalog.

    Args:
        backend: The catalog.
        root_namespace: What is to stand for its root, where tables can lie in that.

    Raises:
        InvalidInputError: the catalog has a namespace of this name.
    """
    if backend.levels not in {None, 1} or not isinstance(backend, AtHome):
        return Names(None)
    try:
        backend.describe_namespace(ROOT.child(root_namespace))
    except NamespaceNotFoundError:
        return Names(root_namespace)
    msg = (
        f"the catalog has a namespace '{root_namespace}', so that this cannot be the name for the"
        " tables of its root: choose another with --root-namespace"
    )
    raise InvalidInputError(msg)


def encodes_spaces_as_plus(headers: Mapping[str, str]) -> bool:
    """Whether whoever sent a request is Iceberg's Java client."""
    return headers.get("x-client-version", "").startswith(_JAVA_VERSION) or (
        _JAVA_AGENT in headers.get("user-agent", "")
    )


def decode_segment(segment: bytes, *, plus_is_space: bool) -> str:
    """Read a segment of a path.

    Raises:
        InvalidNameError: it is not valid Unicode.
    """
    return decode(segment.replace(b"+", b" ") if plus_is_space else segment)


def read_parent(text: str, headers: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return what a `parent` can mean, the likeliest first; none where it means the root."""
    if not text:
        return []
    once, twice = (tuple(one.split(SEPARATOR)) for one in (text, unquote(text)))
    if once == twice:
        return [once]
    is_doubled = headers.get("user-agent", "").startswith(_PYICEBERG)
    return [twice, once] if is_doubled else [once, twice]
