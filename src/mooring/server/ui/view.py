"""What a page shows, as values: its template makes HTML of them, and its twin is their JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Attachment", "Done", "Field", "Question", "View"]


class View(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """What every page shows.

    Attributes:
        cli: The command that shows the same in a terminal; empty where there is none.
    """

    cli: str = ""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """What an action asks for.

    Attributes:
        name: By which the form sends it.
        label: What it is.
        value: What stands in it.
        hint: What to know about it.
        kind: ``text``, ``number``, ``checkbox``, ``select``, ``textarea`` or ``hidden``.
        choices: Of a selection, the values with their labels; of a text, what is suggested.
        required: Whether it must be filled in.
    """

    name: str
    label: str
    value: str = ""
    hint: str = ""
    kind: str = "text"
    choices: list[tuple[str, str]] = []
    required: bool = True


class Question(View, frozen=True, kw_only=True):
    """What an action says before it is done.

    Attributes:
        title: What is to be done, with which object: ``Drop a$b?``.
        explanation: What will happen, and how it can be undone, a sentence each.
        warning: What cannot be undone; empty where all can.
        listed: Some of what it is about, by name.
        listed_as: What those are.
        obstacle: Why it cannot be done; empty where it can. Then nothing is asked for.
        instead: What else can be done, with where.
        fields: What is asked for.
        submit: What the button says.
        is_destructive: Whether the button looks like it.
        typed: What must be typed to confirm; empty where a click is enough.
        back: Where to go instead.
        error: What went wrong the last time.
    """

    title: str
    explanation: list[str] = []
    warning: str = ""
    listed: list[str] = []
    listed_as: str = ""
    obstacle: str = ""
    instead: list[tuple[str, str]] = []
    fields: list[Field] = []
    submit: str
    is_destructive: bool = False
    typed: str = ""
    back: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an action.

    Attributes:
        href: Where to go now.
        message: What was done, in a sentence.
    """

    href: str
    message: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """Bytes that a page shows: a picture.

    Attributes:
        body: The bytes.
        media_type: What they are.
        headers: What else a browser is told.
    """

    body: bytes = field(repr=False)
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
