"""Properties on the command line: any by its key, the common ones by options of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.session import parse_pairs
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.cli.output import Output, Row

__all__ = [
    "DESCRIPTION",
    "LABELS",
    "OWNER",
    "Description",
    "Labels",
    "Owner",
    "Properties",
    "Retention",
    "Unset",
    "gather_properties",
    "require_updates",
    "show_properties",
    "tell_set",
]

DESCRIPTION, OWNER, LABELS = "description", "owner", "labels"

Properties = Annotated[
    list[str] | None,
    typer.Option("--property", "-p", metavar="KEY=VALUE", help="A property; may be repeated."),
]
Description = Annotated[
    str | None, typer.Option("--description", metavar="TEXT", help="What it is for.")
]
Owner = Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Whose it is.")]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="LABEL", help="A label; may be repeated."),
]
Unset = Annotated[
    list[str] | None,
    typer.Option("--unset", metavar="KEY", help="Remove a property; may be repeated."),
]
Retention = Annotated[
    str | None,
    typer.Option(
        "--retention",
        metavar="DURATION",
        help="How long what is dropped in it stays in the trash: 30d, never.",
    ),
]


def gather_properties(
    pairs: Sequence[str] | None,
    *,
    description: str | None = None,
    owner: str | None = None,
    labels: Sequence[str] | None = None,
    retention: str | None = None,
    protect: bool | None = None,
    unset: Sequence[str] | None = None,
) -> dict[str, str | None]:
    """Put together what options say; None stands for a property that is to go.

    Raises:
        InvalidInputError: two options speak of one property, or one makes no sense.
    """
    from mooring.clock import parse_ttl
    from mooring.namespace.properties import PROTECTED, RETENTION

    if retention is not None:
        parse_ttl(retention)
    named = {
        DESCRIPTION: description,
        OWNER: owner,
        LABELS: _join(labels) if labels else None,
        RETENTION: retention,
    }
    said: list[tuple[str, str | None]] = list(parse_pairs(pairs or (), "property").items())
    said += [(key, value) for key, value in named.items() if value is not None]
    said += [] if protect is None else [(PROTECTED, "true" if protect else None)]
    said += [(key, None) for key in dict.fromkeys(unset or ())]
    gathered = dict(said)
    if len(gathered) < len(said):
        keys = [key for key, _ in said]
        twice = next(key for key in keys if keys.count(key) > 1)
        msg = f"property '{twice}' is given twice"
        raise InvalidInputError(msg)
    return gathered


def show_properties(output: Output, properties: Mapping[str, str]) -> None:
    """Show properties to people, below what they belong to; nothing where there are none."""
    if properties:
        output.gap()
        rows = [{"property": key, "value": properties[key]} for key in sorted(properties)]
        output.rows(["property", "value"], rows)


def require_updates(updates: Mapping[str, str | None]) -> None:
    """Refuse a change of nothing.

    Raises:
        InvalidInputError: no property is named.
    """
    if not updates:
        msg = "nothing to change: give a property with -p KEY=VALUE, or another option"
        raise InvalidInputError(msg)


def tell_set(output: Output, about: Row, shown: str, kept: Mapping[str, str]) -> None:
    """Tell that properties were changed.

    Args:
        output: Where to.
        about: What has them, for programs.
        shown: The same, for people.
        kept: All that it has now.
    """
    many = how_many(len(kept), "property", "properties")
    output.change({**about, "result": "set", "properties": kept}, f"{shown} has {many} now")


def _join(labels: Sequence[str]) -> str:
    for label in labels:
        if not label.strip() or "," in label:
            msg = f"'{label}' cannot be a label: it is empty or holds a comma"
            raise InvalidInputError(msg)
    return ",".join(dict.fromkeys(labels))
