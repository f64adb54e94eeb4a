"""Parameters of a pipeline: their types and defaults, and their values in its texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.pipelines.yaml_file import near

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mooring.pipelines.yaml_file import Place, Value

__all__ = ["Parameter", "ParameterValue", "fill_in", "parse_parameters", "settle"]

ParameterValue = str | int | float | bool | date

_NAME = re.compile(r"\$(\$\{|\{([^}]*)\})")
_TYPES = ("text", "integer", "number", "flag", "date")
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class Parameter:
    """A parameter.

    Attributes:
        name: Its name.
        type: ``text``, ``integer``, ``number``, ``flag`` or ``date``.
        default: Its value unless one is given; None where one has to be.
        place: Where it is defined.
    """

    name: str
    type: str
    default: ParameterValue | None
    place: Place

    def parse(self, text: str) -> ParameterValue:
        """Read a value as it is given on a command line.

        Raises:
            InvalidInputError: it is none of the type.
        """
        try:
            match self.type:
                case "integer":
                    return int(text)
                case "number":
                    return float(text)
                case "flag":
                    return _FLAGS[text.lower()]
                case "date":
                    return date.fromisoformat(text)
                case _:
                    return text
        except (ValueError, KeyError) as exc:
            msg = f"parameter {quote(self.name)} is {_article(self.type)}, not {quote(text)}"
            raise InvalidInputError(msg) from exc


def parse_parameters(
    section: Value | None, check_name: Callable[[str, Place], None]
) -> list[Parameter]:
    """Read the parameters of a file.

    Raises:
        InvalidInputError: something is wrong with one.
    """
    if section is None:
        return []
    found = []
    for name, value in section.mapping("parameters").items():
        check_name(name, value.place)
        found.append(_parse_one(name, value))
    return found


def _parse_one(name: str, value: Value) -> Parameter:
    what = f"parameter {quote(name)}"
    if value.kind != "mapping":
        only = _scalar(value, what)
        return Parameter(name, _type_of(only), only, value.place)
    keys = value.mapping(what, ("type", "default", "required"))
    default = _scalar(keys["default"], what) if "default" in keys else None
    is_required = keys["required"].flag(f"'required' of {what}") if "required" in keys else False
    if default is None and "type" not in keys and not is_required:
        raise value.place.error(f"{what} needs a type or a default")
    if default is not None and is_required:
        raise keys["required"].place.error(f"{what} is required, so its default says nothing")
    kind = keys["type"].choice(f"the type of {what}", _TYPES) if "type" in keys else None
    if kind is None:
        return Parameter(
            name, "text" if default is None else _type_of(default), default, value.place
        )
    made = Parameter(name, kind, None, value.place)
    if default is None:
        return made
    try:
        return Parameter(name, kind, made.parse(_show(default)), value.place)
    except InvalidInputError as exc:
        raise keys["default"].place.error(str(exc)) from exc


def _scalar(value: Value, what: str) -> ParameterValue:
    found = value.scalar()
    if isinstance(found, datetime):
        return found.isoformat()
    if not isinstance(found, str | int | float | bool | date):
        raise value.place.error(f"the default of {what} is a text, number, flag or date")
    return found


def _type_of(value: ParameterValue) -> str:
    match value:
        case bool():
            return "flag"
        case int():
            return "integer"
        case float():
            return "number"
        case date():
            return "date"
        case _:
            return "text"


def settle(
    parameters: Sequence[Parameter], given: Mapping[str, str], file: str
) -> dict[str, ParameterValue]:
    """Give every parameter its value.

    Raises:
        InvalidInputError: one is missing, unknown or of another type.
    """
    known = {one.name for one in parameters}
    for name in given:
        if name not in known:
            told = near(name, known) if known else ": it has none"
            raise InvalidInputError(f"{file} has no parameter {quote(name)}{told}")
    found: dict[str, ParameterValue] = {}
    for one in parameters:
        if one.name in given:
            found[one.name] = one.parse(given[one.name])
        elif one.default is not None:
            found[one.name] = one.default
        else:
            msg = f"parameter {quote(one.name)} has no value: give one with --param {one.name}=..."
            raise one.place.error(msg)
    return found


def fill_in(values: Mapping[str, ParameterValue]) -> Callable[[str, Place], str]:
    """Return what puts values for ``${name}`` into texts; ``$${`` stands for itself."""

    def fill(text: str, place: Place) -> str:
        def one(match: re.Match[str]) -> str:
            name = match[2]
            if name is None:
                return "${"
            if name.strip() not in values:
                told = near(name, values) if values else ": the pipeline has none"
                raise place.error(f"there is no parameter {quote(name)}{told}")
            return _show(values[name.strip()])

        return _NAME.sub(one, text)

    return fill


def _show(value: ParameterValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
