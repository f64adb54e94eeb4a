"""Names and identifiers of namespaces and tables.

An identifier is the list of names from the root, which has none, down to the object. Its
string style joins the names by a delimiter. What a storage layout adds to these rules (lengths,
reserved forms) is the layout's to say.

Spec: objects-and-relationships, "Object Name" to "Leveled Namespace".
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError, InvalidNameError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DELIMITER",
    "ROOT",
    "ObjectId",
    "check_composed",
    "check_name",
    "is_name",
    "quote",
]

DELIMITER = "$"
_SEPARATORS = "/\\"
# Separators, control characters and halves of surrogate pairs.
_REFUSED = re.compile("[/\\\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def quote(name: str) -> str:
    """Show a name in a message, with anything unprintable escaped."""
    shown = name if name.isprintable() else ascii(name)[1:-1]
    return f"'{shown}'"


def check_name(name: str) -> None:
    """Refuse a string that cannot name anything.

    Raises:
        InvalidNameError: with the reason.
    """
    reason = _why_refused(name)
    if reason is not None:
        msg = f"{quote(name)} cannot be a name: {reason}"
        raise InvalidNameError(msg)


def is_name(name: str) -> bool:
    """Whether a string can be a name."""
    return bool(name) and name not in {".", ".."} and _REFUSED.search(name) is None


def _why_refused(name: str) -> str | None:
    if not name:
        return "it is empty"
    if name in {".", ".."}:
        return "it means a directory, not an object"
    match = _REFUSED.search(name)
    if match is None:
        return None
    if match[0] in _SEPARATORS:
        return f"it holds the path separator '{match[0]}'"
    if "\ud800" <= match[0] <= "\udfff":
        return "it is not valid Unicode"
    return f"it holds the control character U+{ord(match[0]):04X}"


def check_composed(name: str) -> None:
    """Refuse a new name that is not in composed Unicode form (NFC).

    Two spellings of one visible name would otherwise be two objects, or one, depending on the disk.

    Raises:
        InvalidNameError: the name is decomposed.
    """
    composed = unicodedata.normalize("NFC", name)
    if composed != name:
        msg = (
            f"{quote(name)} cannot be a new name: its letters are in decomposed Unicode form;"
            f" write it composed (NFC), as {composed!a}"
        )
        raise InvalidNameError(msg)


@dataclass(frozen=True, slots=True, order=True)
class ObjectId:
    """A list style identifier; the empty one is the root namespace."""

    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str] | None) -> ObjectId:
        """Build from the list style, checking every name.

        Raises:
            InvalidNameError: one of the names cannot be a name.
        """
        if isinstance(names, str):
            msg = f"a list of names is needed, not the string {quote(names)}"
            raise InvalidInputError(msg)
        parts = tuple(names or ())
        for name in parts:
            if not isinstance(name, str):
                msg = f"a name is a string, not {type(name).__name__}"
                raise InvalidInputError(msg)
            check_name(name)
        return cls(parts)

    @classmethod
    def parse(cls, text: str | None, delimiter: str = DELIMITER) -> ObjectId:
        """Build from the string style; an empty string is the root.

        Raises:
            InvalidInputError: the delimiter is empty.
            InvalidNameError: one of the names cannot be a name.
        """
        if not delimiter:
            msg = "the delimiter of a string style identifier cannot be empty"
            raise InvalidInputError(msg)
        return cls.of(text.split(delimiter)) if text else ROOT

    def format(self, delimiter: str = DELIMITER) -> str:
        """Return the string style.

        Raises:
            InvalidNameError: a name holds the delimiter, so the text would read as more levels.
        """
        text = delimiter.join(self.names)
        # Also where two names only make the delimiter together: 'a$' and 'b' joined by '$$'.
        if self.names and tuple(text.split(delimiter)) != self.names:
            msg = f"the names of {quote(text)} hold the delimiter '{delimiter}': choose another"
            raise InvalidNameError(msg)
        return text

    def __str__(self) -> str:
        """Return the names joined for people, ambiguous or not."""
        return DELIMITER.join(self.names)

    @property
    def level(self) -> int:
        """How far below the root, which is at level 0."""
        return len(self.names)

    @property
    def is_root(self) -> bool:
        """Whether this is the root namespace."""
        return not self.names

    @property
    def name(self) -> str:
        """The object's own name; empty for the root."""
        return self.names[-1] if self.names else ""

    @property
    def parent(self) -> ObjectId:
        """The namespace that holds the object; the root is its own parent."""
        return ObjectId(self.names[:-1])

    def child(self, name: str) -> ObjectId:
        """Return the identifier of a direct child.

        Raises:
            InvalidNameError: the name cannot be a name.
        """
        check_name(name)
        return ObjectId((*self.names, name))


ROOT = ObjectId()
