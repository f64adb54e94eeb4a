"""Properties of namespaces and tables, edited as lines.

What is sent is compared with the lines that were shown, not with what the catalog has by then:
somebody else's change of another property stays.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mooring.amounts import how_many
from mooring.errors import InvalidInputError, NamespaceNotFoundError
from mooring.identifiers import quote
from mooring.namespace.properties import PROTECTED, RETENTION
from mooring.server.ui.actions.wording import named
from mooring.server.ui.view import Done, Field, Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.identifiers import ObjectId
    from mooring.server.ui.visit import Visit

__all__ = [
    "ask_namespace_properties",
    "ask_table_properties",
    "parse_lines",
    "properties_field",
    "set_namespace_properties",
    "set_table_properties",
]

_PROPERTIES, _BEFORE = "properties", "before"
_BREAK = re.compile(r"\r\n|\r|\n")
_NO_PROPERTIES = (
    "A plain directory keeps no properties. One that is opened with its manifest keeps them."
)
_NO_ROOT_PROPERTIES = "The root of a metastore keeps no properties: set those of a namespace."


def properties_field(value: str = "", *, hint: str) -> Field:
    """Ask for properties."""
    return Field(
        name=_PROPERTIES,
        label="Properties",
        value=value,
        hint=hint,
        kind="textarea",
        required=False,
    )


def parse_lines(text: str) -> dict[str, str]:
    """Read properties, one on a line.

    Raises:
        InvalidInputError: a line is none, or one key stands on two.
    """
    found: dict[str, str] = {}
    for line in _BREAK.split(text):
        if not line.strip():
            continue
        key, equals, value = line.partition("=")
        key = key.strip()
        if not equals or not key:
            raise InvalidInputError(f"{quote(line.strip())} is no property: write KEY=VALUE")
        if key in found:
            raise InvalidInputError(f"property {quote(key)} stands on two lines: keep one")
        found[key] = value.strip()
    return found


def ask_namespace_properties(visit: Visit) -> Question:
    """Show the properties of a namespace.

    Raises:
        NamespaceNotFoundError: there is none.
    """
    namespace = visit.namespace
    if visit.kind == "metastore" and namespace.is_root:
        return _question(visit, namespace, {}, obstacle=_NO_ROOT_PROPERTIES)
    if not visit.atlas.picture().has_namespace(namespace):
        raise NamespaceNotFoundError(f"there is no namespace {named(namespace)}")
    told = visit.backend.describe_namespace(namespace)
    return _question(visit, namespace, told, obstacle=_obstacle(visit))


def set_namespace_properties(visit: Visit, form: Mapping[str, str]) -> Done:
    """Change properties of a namespace."""
    namespace = visit.namespace
    updates = _updates(form)
    if updates:
        visit.backend.update_namespace(namespace, updates)
    return Done(visit.links.namespace(namespace), _sentence(namespace, updates))


def ask_table_properties(visit: Visit) -> Question:
    """Show the properties of a table.

    Raises:
        TableNotFoundError: there is none.
    """
    told = visit.backend.describe_table(visit.table).properties
    return _question(visit, visit.table, told, obstacle=_obstacle(visit), is_table=True)


def set_table_properties(visit: Visit, form: Mapping[str, str]) -> Done:
    """Change properties of a table."""
    updates = _updates(form)
    if updates:
        visit.backend.update_table(visit.table, updates)
    return Done(visit.links.table(visit.table), _sentence(visit.table, updates))


def _question(
    visit: Visit,
    about: ObjectId,
    properties: Mapping[str, str],
    *,
    obstacle: str,
    is_table: bool = False,
) -> Question:
    kept = {key: value for key, value in sorted(properties.items()) if _fits(key, value)}
    lines = "\n".join(f"{key}={value}" for key, value in kept.items())
    left = len(properties) - len(kept)
    explanation = ["The lines become the properties: one that is taken out is removed."]
    if left:
        those = how_many(left, "property", "properties")
        explanation.append(f"Left as it is, for it fits on no line: {those}.")
    explanation.append("Undo: put the lines back as they are now.")
    back = visit.links.table(about) if is_table else visit.links.namespace(about)
    return Question(
        cli=visit.cli(
            "table" if is_table else "namespace", "set", "-p", "KEY=VALUE", names=[str(about)]
        ),
        title=f"Properties of {named(about)}",
        explanation=explanation,
        obstacle=obstacle,
        fields=[
            properties_field(lines, hint=_hint(is_table=is_table)),
            Field(name=_BEFORE, label="", value=lines, kind="hidden"),
        ],
        submit="Save",
        back=back,
    )


def _hint(*, is_table: bool) -> str:
    said = f"KEY=VALUE, one on a line. {PROTECTED}=true makes drops of it"
    if is_table:
        return f"{said} refuse."
    kept = f"{RETENTION}=30d is how long what is dropped in it stays in the trash"
    return f"{said}, and of all in it, refuse; {kept}."


def _obstacle(visit: Visit) -> str:
    return _NO_PROPERTIES if visit.served.levels == 1 else ""


def _fits(key: str, value: str) -> bool:
    """Whether a property can be written as a line and read back."""
    return parse_lines_or_none(f"{key}={value}") == {key: value}


def parse_lines_or_none(text: str) -> dict[str, str] | None:
    """Read properties; None where they cannot be."""
    try:
        return parse_lines(text)
    except InvalidInputError:
        return None


def _updates(form: Mapping[str, str]) -> dict[str, str | None]:
    """Return what was changed, against what was shown."""
    before = parse_lines(form.get(_BEFORE, ""))
    after = parse_lines(form.get(_PROPERTIES, ""))
    changed: dict[str, str | None] = {
        key: value for key, value in after.items() if before.get(key) != value
    }
    return changed | dict.fromkeys(before.keys() - after.keys())


def _sentence(about: ObjectId, updates: Mapping[str, str | None]) -> str:
    if not updates:
        return "Nothing was changed."
    keys = ", ".join(quote(key) for key in sorted(updates))
    return f"Changed {keys} of {named(about)}."
