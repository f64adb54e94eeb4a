"""A YAML file as its values, each of which knows its line and column."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from mooring.errors import InvalidInputError, MissingExtraError, NotFoundError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

__all__ = ["Place", "Value", "near", "read_yaml"]

_KINDS = {"MappingNode": "a mapping", "SequenceNode": "a list", "ScalarNode": "a value"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a file, counted from 1."""

    file: str
    line: int
    column: int

    def error(self, message: str) -> InvalidInputError:
        """Say what is wrong here."""
        return InvalidInputError(f"{self}: {message}")

    def __str__(self) -> str:
        """Show it as messages do."""
        return f"{self.file}, line {self.line}, column {self.column}"


def near(name: str, known: Collection[str]) -> str:
    """Tell what may be meant by a name that is not known."""
    found = get_close_matches(name, known, n=1, cutoff=0.6)
    if found:
        return f"; is {quote(found[0])} meant?"
    return f": known are {', '.join(sorted(known))}" if known else ""


def read_yaml(path: Path) -> Value:
    """Read a file.

    Raises:
        NotFoundError: there is none.
        InvalidInputError: it is no YAML; the line and column are named.
        MissingExtraError: the package that reads YAML is not installed.
    """
    try:
        import yaml
    except ImportError as exc:
        msg = (
            "pipelines are written in YAML, whose package is missing: pip install 'mooring[spark]'"
        )
        raise MissingExtraError(msg) from exc
    text = _read(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        place = Place(str(path), mark.line + 1, mark.column + 1) if mark else _first(path)
        begun = exc.context_mark
        context = f"{exc.context} that begins in line {begun.line + 1}" if begun else exc.context
        told = ", ".join(part for part in (context, exc.problem) if part)
        raise place.error(f"this is no YAML: {told}") from exc
    except yaml.YAMLError as exc:
        before = text[: getattr(exc, "position", 0)]
        place = Place(str(path), before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise place.error(f"this is no YAML: {getattr(exc, 'reason', exc)}") from exc
    if node is None:
        raise _first(path).error("the file is empty: a pipeline has sources, steps and outputs")
    return Value(node, str(path))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as exc:
        raise NotFoundError(f"there is no file {quote(str(path))}") from exc
    except IsADirectoryError as exc:
        raise InvalidInputError(f"{quote(str(path))} is a directory: name a YAML file") from exc
    except UnicodeDecodeError as exc:
        raise InvalidInputError(f"{quote(str(path))} is no text in UTF-8: {exc}") from exc


def _first(path: Path) -> Place:
    return Place(str(path), 1, 1)


class Value:
    """A value of a file: a mapping, a list, or a text, number or flag."""

    def __init__(
        self,
        node: Any,  # noqa: ANN401  # PyYAML has no types
        file: str,
        fill: Callable[[str, Place], str] | None = None,
    ) -> None:
        """Wrap a node.

        Args:
            node: As PyYAML composed it.
            file: Where it was read.
            fill: Puts values for names like ``${day}`` into texts.
        """
        self._node = node
        self._file = file
        self._fill = fill
        self.place = Place(file, node.start_mark.line + 1, node.start_mark.column + 1)

    def filled(self, fill: Callable[[str, Place], str]) -> Value:
        """Return the same with values for names in texts."""
        return Value(self._node, self._file, fill)

    @property
    def kind(self) -> str:
        """What it is: ``mapping``, ``list`` or ``value``."""
        return _KINDS[type(self._node).__name__].rpartition(" ")[2]

    # -- several values --------------------------------------------------------------------------

    def mapping(self, what: str, known: Collection[str] | None = None) -> dict[str, Value]:
        """Read a mapping.

        Args:
            what: What it is, as messages name it.
            known: The keys that it may have; any unless given.

        Raises:
            InvalidInputError: it is none, a key comes twice, or is unknown.
        """
        if self.kind != "mapping":
            raise self._wrong(what, "a mapping of names to values")
        found: dict[str, Value] = {}
        for key_node, node in self._node.value:
            key = Value(key_node, self._file)
            name = key.name(f"a key of {what}")
            if name in found:
                first = found[name].place.line
                raise key.place.error(f"{quote(name)} comes twice in {what}: see line {first}")
            if known is not None and name not in known:
                told = f"{what} has no key {quote(name)}{near(name, known)}"
                told += "; in braces a comma ends a text without quotes" if " " in name else ""
                raise key.place.error(told)
            found[name] = Value(node, self._file, self._fill)
        return found

    def items(self, what: str) -> list[Value]:
        """Read a list.

        Raises:
            InvalidInputError: it is none.
        """
        if self.kind != "list":
            raise self._wrong(what, "a list")
        return [Value(node, self._file, self._fill) for node in self._node.value]

    # -- one value -------------------------------------------------------------------------------

    def name(self, what: str) -> str:
        """Read a key as it is written.

        Raises:
            InvalidInputError: it is no text.
        """
        if self.kind != "value":
            raise self._wrong(what, "a name")
        return str(self._node.value)

    def text(self, what: str) -> str:
        """Read a text; numbers and dates are taken as they are written.

        Raises:
            InvalidInputError: it is none, or empty.
        """
        if self.kind != "value" or self.scalar() is None or not str(self._node.value).strip():
            raise self._wrong(what, "a text")
        return self._text()

    def texts(self, what: str) -> tuple[str, ...]:
        """Read one text, or a list of them.

        Raises:
            InvalidInputError: it is neither, or the list is empty.
        """
        if self.kind != "list":
            return (self.text(what),)
        found = tuple(one.text(f"an item of {what}") for one in self.items(what))
        if not found:
            raise self._wrong(what, "at least one text")
        return found

    def number(self, what: str, *, least: int = 0) -> int:
        """Read a whole number.

        Raises:
            InvalidInputError: it is none, or too small.
        """
        found = self.scalar()
        if isinstance(found, bool) or not isinstance(found, int) or found < least:
            raise self._wrong(what, f"a whole number from {least} on")
        return found

    def fraction(self, what: str) -> float:
        """Read a number from 0 to 1.

        Raises:
            InvalidInputError: it is none.
        """
        found = self.scalar()
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
            raise self._wrong(what, "a number from 0 to 1")
        return float(found)

    def flag(self, what: str) -> bool:
        """Read true or false.

        Raises:
            InvalidInputError: it is neither.
        """
        found = self.scalar()
        if not isinstance(found, bool):
            raise self._wrong(what, "true or false")
        return found

    def choice(self, what: str, options: Sequence[str]) -> str:
        """Read one of some words.

        Raises:
            InvalidInputError: it is none of them.
        """
        found = self._text() if self.kind == "value" else ""
        if found not in options:
            raise self._wrong(what, f"one of {', '.join(options)}")
        return found

    def scalar(self) -> object:
        """Read a text, number, flag, date or nothing, as YAML understands it.

        Raises:
            InvalidInputError: it is a mapping or a list, or no such value.
        """
        import yaml

        if self.kind != "value":
            raise self._wrong("this", "a single value")
        text, node = self._text(), self._node
        loader = yaml.SafeLoader("")
        try:
            if text != node.value:  # it may be a number once names are filled in, quoted or not
                tag = loader.resolve(yaml.ScalarNode, text, (True, False))
                node = yaml.ScalarNode(tag, text, node.start_mark, node.end_mark)
            return loader.construct_object(node)
        except (yaml.YAMLError, ValueError) as exc:
            raise self.place.error(f"{quote(text)} is no value: {exc}") from exc
        finally:
            loader.dispose()

    def place_at(self, offset: int) -> Place:
        """Tell where a character of the text stands; exact in text after ``|``."""
        if self._node.style != "|":
            return self.place
        text = self._node.value
        line, column = text.count("\n", 0, offset), offset - (text.rfind("\n", 0, offset) + 1)
        lines = self._node.start_mark.buffer.split("\n") if self._node.start_mark.buffer else []
        number = self.place.line + 1 + line
        whole = lines[number - 1] if 0 < number <= len(lines) else ""
        return Place(self._file, number, column + 1 + len(whole) - len(whole.lstrip()))

    def _text(self) -> str:
        text = str(self._node.value)
        return text if self._fill is None else self._fill(text, self.place)

    def _wrong(self, what: str, expected: str) -> InvalidInputError:
        kind = self.kind
        shown = quote(_short(str(self._node.value))) if kind == "value" else f"a {kind}"
        told = "nothing" if kind == "value" and not self._node.value else shown
        return self.place.error(f"{what} is {expected}, and here is {told}")


def _short(text: str, longest: int = 60) -> str:
    return text if len(text) <= longest else f"{text[:longest]}..."
