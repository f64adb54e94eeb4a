"""How a table's files are reached, as Lance's clients are told.

What is known to be harmless goes to everybody. Credentials are made for a client and a table, where
the server was told to hand them out; its own are nobody else's. Lance asks for the next by
DescribeTable, when those that it has are about to end.

Spec: lance-rest-openapi, "DescribeTableResponse".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mooring.config import mask_uris
from mooring.errors import ServiceUnavailableError
from mooring.server.roles import Role
from mooring.server.vending import harmless_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.identifiers import ObjectId
    from mooring.server.lance.operation import Operation
    from mooring.server.roles import Identity
    from mooring.server.vending import Vendor

__all__ = ["hand_out"]

logger = logging.getLogger(__name__)

_PLACES = ("location", "table_uri")


def hand_out(
    answer: Any,  # noqa: ANN401  # any of the answers
    vendor: Vendor | None,
    identity: Identity,
    *,
    catalog: str,
    operation: Operation,
    table: ObjectId,
    wanted: bool | None,
) -> None:
    """Replace how an answer says that files are reached by what its client may know; may wait.

    Args:
        answer: Of a namespace, changed in place.
        vendor: Gives credentials; None where clients get none.
        identity: Who asks.
        catalog: Where.
        operation: What was asked for.
        table: Of which table.
        wanted: Whether the client wants credentials; None where it did not say.

    Raises:
        ServiceUnavailableError: credentials are not to be had.
    """
    location = getattr(answer, "location", None)
    if getattr(answer, "storage_options", None) is not None or (vendor and _has_options(answer)):
        own: Mapping[str, str] = answer.storage_options or {}
        shown = harmless_options(own)
        if vendor is not None and wanted is not False and location:
            writes = identity.may(Role.WRITER, catalog, table)
            try:
                vended = vendor.vend(location, own, subject=identity.subject, writes=writes)
            except ServiceUnavailableError as exc:
                if not operation.changes:
                    raise
                # The change is done: nothing may make it look failed.
                logger.warning("a new table is told without credentials: %s", exc)
                vended = None
            shown |= vended.options if vended else {}
        answer.storage_options = shown or None
    for place in _PLACES:
        if isinstance(getattr(answer, place, None), str):
            setattr(answer, place, mask_uris(getattr(answer, place)))


def _has_options(answer: object) -> bool:
    return "storage_options" in getattr(type(answer), "model_fields", ())
