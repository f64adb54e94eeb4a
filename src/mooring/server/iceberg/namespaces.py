"""What can be done with namespaces.

Spec: iceberg-rest-openapi, "listNamespaces" to "updateProperties".
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import (
    InvalidNameError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    PermissionDeniedError,
    UnsupportedError,
)
from mooring.identifiers import ROOT, ObjectId, quote
from mooring.server.iceberg.calls import NO_CONTENT, Answer
from mooring.server.iceberg.names import read_parent
from mooring.server.iceberg.pages import take
from mooring.server.roles import Role

if TYPE_CHECKING:
    from mooring.errors import MooringError
    from mooring.server.iceberg.calls import Call

__all__ = [
    "create_namespace",
    "drop_namespace",
    "list_namespaces",
    "load_namespace",
    "namespace_exists",
    "update_namespace",
]

UNPROCESSABLE = 422


class _Create(msgspec.Struct, frozen=True):
    namespace: list[str]
    properties: dict[str, str] | None = None


class _Update(msgspec.Struct, frozen=True):
    removals: list[str] | None = None
    updates: dict[str, str] | None = None


def list_namespaces(call: Call) -> Answer:
    """Name the namespaces directly in one, or in none."""
    readings = read_parent(call.query.get("parent", ""), call.headers)
    if not readings:
        return _list(call, ROOT, with_root=True)
    first: MooringError | None = None
    for names in readings:
        try:
            parent = call.names.namespace(names)
            if not call.identity.sees(call.catalog, parent):
                call.identity.require(Role.READER, call.catalog, [parent])
            return _list(call, parent, with_root=False)
        except (NamespaceNotFoundError, InvalidNameError, PermissionDeniedError) as exc:
            first = first or exc
    raise first or AssertionError


def _list(call: Call, parent: ObjectId, *, with_root: bool) -> Answer:
    made_up = call.names.root

    def list_names(after: str | None, limit: int | None) -> list[str]:
        if parent.is_root and not with_root:
            return []  # what stands for the root holds tables only
        names = [*call.backend.list_namespaces(parent, after=after, limit=limit)]
        is_due = with_root and made_up is not None and (after is None or made_up > after)
        if made_up is not None and is_due and made_up not in names:
            insort(names, made_up)
        return names[:limit]

    is_whole = call.identity.role_in(call.catalog, parent) is not None
    is_seen = None if is_whole else lambda name: _is_seen(call, parent.child(name))
    names, token = take(call, list_names, is_seen)
    shown = [[*parent.names, name] for name in names]
    return Answer({"namespaces": shown, "next-page-token": token})


def _is_seen(call: Call, namespace: ObjectId) -> bool:
    if namespace.names == (call.names.root,):
        return call.identity.role_in(call.catalog) is not None
    return call.identity.sees(call.catalog, namespace)


def create_namespace(call: Call) -> Answer:
    """Make a namespace."""
    asked = call.read(_Create)
    if call.names.root is not None and asked.namespace[:1] == [call.names.root]:
        raise _stands_for_root(call.names.root, is_itself=len(asked.namespace) == 1)
    namespace = call.names.namespace(asked.namespace)
    properties = call.backend.create_namespace(namespace, asked.properties or {})
    return Answer({"namespace": list(namespace.names), "properties": dict(properties)})


def load_namespace(call: Call) -> Answer:
    """Tell a namespace's properties."""
    namespace = call.namespace
    properties = dict(call.backend.describe_namespace(namespace))
    return Answer({"namespace": call.names.show(namespace), "properties": properties})


def namespace_exists(call: Call) -> Answer:
    """Tell whether there is such a namespace."""
    call.backend.describe_namespace(call.namespace)
    return NO_CONTENT


def drop_namespace(call: Call) -> Answer:
    """Hide an empty namespace, reversibly."""
    namespace = call.namespace
    if namespace.is_root:
        raise UnsupportedError(
            f"{quote(call.names.show(namespace)[0])} stands for the root of the catalog, which"
            " cannot be dropped"
        )
    call.backend.drop_namespace(namespace)
    return NO_CONTENT


def update_namespace(call: Call) -> Answer:
    """Set and remove properties of a namespace."""
    asked, namespace = call.read(_Update), call.namespace
    updates, removals = asked.updates or {}, list(dict.fromkeys(asked.removals or ()))
    both = sorted(updates.keys() & set(removals))
    if both:
        msg = f"property {quote(both[0])} cannot be set and removed by one request"
        error = {"message": msg, "type": "UnprocessableEntityException", "code": UNPROCESSABLE}
        return Answer({"error": error}, UNPROCESSABLE)
    known = call.backend.describe_namespace(namespace)
    removed = [key for key in removals if key in known]
    if updates or removed:
        call.backend.update_namespace(namespace, {**updates, **dict.fromkeys(removed)})
    missing = [key for key in removals if key not in known]
    return Answer({"updated": list(updates), "removed": removed, "missing": missing})


def _stands_for_root(name: str, *, is_itself: bool) -> MooringError:
    if is_itself:
        msg = f"there is a namespace {quote(name)} already: it stands for the root of the catalog"
        return NamespaceAlreadyExistsError(msg)
    return UnsupportedError(
        f"namespaces cannot be made in {quote(name)}, which stands for the root of the catalog:"
        " name them without it"
    )
