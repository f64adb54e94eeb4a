"""The request that is being answered, as logs, metrics, spans and the audit log know it.

What is found out on the way is kept in the request's ``state``: whoever answers tells what the
operation is and how it failed, whoever watches reads it. Names of objects do not belong there.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from starlette.types import Scope

__all__ = [
    "Named",
    "code_of",
    "current_request_id",
    "current_subject",
    "enter",
    "name_operation",
    "named_of",
    "note_code",
    "state_of",
]

_OTHER = "other"
_state: ContextVar[MutableMapping[str, Any] | None] = ContextVar("mooring_request", default=None)


@dataclass(frozen=True, slots=True)
class Named:
    """What a request asks for, in words of which there are few.

    Attributes:
        dialect: The protocol: ``lance``, ``iceberg``, ``mooring`` or ``server``.
        operation: As the protocol calls it.
        route: The path, with names of variables instead of their values.
        changes: Whether it changes something.
    """

    dialect: str
    operation: str
    route: str = ""
    changes: bool = False


_UNKNOWN = Named(_OTHER, _OTHER)


def state_of(scope: Scope) -> MutableMapping[str, Any]:
    """Return what is known of a request so far."""
    state: MutableMapping[str, Any] = scope.setdefault("state", {})
    return state


def enter(scope: Scope) -> None:
    """Make a request the one that is being answered, for everything that is called from here."""
    _state.set(state_of(scope))


def name_operation(scope: Scope, named: Named) -> None:
    """Tell what a request asks for."""
    state_of(scope)["operation"] = named


def named_of(scope: Scope) -> Named:
    """Return what a request asks for, as far as anybody told."""
    found: Named = state_of(scope).get("operation", _UNKNOWN)
    return found


def note_code(scope: Scope, code: int) -> None:
    """Tell by which of Lance's codes a request failed."""
    state_of(scope)["code"] = code


def code_of(scope: Scope) -> int | None:
    """Return the code by which a request failed; None where it did not, or nobody told."""
    found: int | None = state_of(scope).get("code")
    return found


def current_request_id() -> str | None:
    """Return the id of the request that is being answered, if one is."""
    state = _state.get()
    return None if state is None else state.get("request_id")


def current_subject() -> str | None:
    """Return who sent the request that is being answered, where that is known."""
    state = _state.get()
    return None if state is None else state.get("subject")
