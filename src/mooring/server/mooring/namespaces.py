"""What can be done with namespaces beyond Lance's REST protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.mooring import shapes

if TYPE_CHECKING:
    from mooring.server.mooring.calls import Call

__all__ = ["describe_namespaces", "undrop_namespace", "update_namespace"]


def describe_namespaces(call: Call) -> shapes.Namespaces:
    """List the namespaces that whoever asks may see, with properties where they may be read."""
    who, catalog = call.identity, call.served.name
    return shapes.Namespaces(
        [
            shapes.Namespace(list(one.names), dict(told) if who.role_in(catalog, one) else {})
            for one, told in call.whole.describe_namespaces()
            if who.sees(catalog, one)
        ]
    )


def undrop_namespace(call: Call) -> shapes.Counted:
    """Bring a dropped namespace back with all that was dropped with it."""
    return shapes.Counted(call.backend.undrop_namespace(call.about))


def update_namespace(call: Call) -> shapes.Properties:
    """Change properties of a namespace."""
    asked: shapes.PropertyUpdates = call.asked
    return shapes.Properties(dict(call.backend.update_namespace(call.about, asked.updates)))
