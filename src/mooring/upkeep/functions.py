"""Functions of users, which travel to workers as the text of the file they are in.

A worker on another machine has neither the driver's files nor its modules. Whatever else the file
imports must be installed there.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FunctionText", "parse_function"]


@dataclass(frozen=True)
class FunctionText:
    """A function, as it travels.

    Attributes:
        name: Its name in the file or module.
        origin: The file or module, for messages.
        text: The file's text; None for a module that has none, which must be everywhere.
        package: The package that the module lies in.
    """

    name: str
    origin: str
    text: str | None = None
    package: str = ""

    def __str__(self) -> str:
        """Say it in a message."""
        return quote(f"{self.origin}:{self.name}")

    def load(self) -> Callable[..., Any]:
        """Return the function, made once in a process.

        Raises:
            InvalidInputError: the file cannot be run, or has no such function.
        """
        return _load(self)


def parse_function(text: str) -> FunctionText:
    """Read `module:function` or `file.py:function`.

    Raises:
        InvalidInputError: it is neither, or the file is not there.
    """
    origin, colon, name = text.rpartition(":")
    if not (colon and origin and name.isidentifier()):
        msg = f"{quote(text)} is no function: write file.py:function or module:function"
        raise InvalidInputError(msg)
    found = _of_file(origin, name) if _is_file(origin) else _of_module(origin, name)
    found.load()
    return found


def _is_file(origin: str) -> bool:
    return origin.endswith(".py") or "/" in origin or "\\" in origin


def _of_file(origin: str, name: str) -> FunctionText:
    return FunctionText(name, origin, _read(origin))


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else exc
        msg = f"the function's file {quote(path)} cannot be read: {why}"
        raise InvalidInputError(msg) from exc


def _of_module(origin: str, name: str) -> FunctionText:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # as `python -m` would; what is installed comes first
    try:
        spec = find_spec(origin)
    except (ImportError, ValueError) as exc:
        msg = f"there is no module {quote(origin)}: {exc}"
        raise InvalidInputError(msg) from exc
    if spec is None:
        msg = f"there is no module {quote(origin)}: is it installed, or in this directory?"
        raise InvalidInputError(msg)
    if spec.origin is None or not spec.origin.endswith(".py"):
        return FunctionText(name, origin)
    package = origin if spec.submodule_search_locations else origin.rpartition(".")[0]
    return FunctionText(name, origin, _read(spec.origin), package)


@lru_cache(maxsize=32)
def _load(function: FunctionText) -> Callable[..., Any]:
    try:
        module = _run(function)
    except Exception as exc:  # whatever the user's file raises
        msg = f"{function} cannot be loaded: {type(exc).__name__}: {exc}"
        raise InvalidInputError(msg) from exc
    found = getattr(module, function.name, None)
    if not callable(found):
        msg = f"{quote(function.origin)} has no function {quote(function.name)}"
        raise InvalidInputError(msg)
    made: Callable[..., Any] = found
    return made


def _run(function: FunctionText) -> ModuleType:
    if function.text is None:
        return importlib.import_module(function.origin)
    # Under a name of its own: what the file defines is looked up there, as by dataclasses.
    module = ModuleType(f"mooring_function_{abs(hash(function)):x}")
    module.__file__ = function.origin
    module.__package__ = function.package
    sys.modules[module.__name__] = module
    exec(compile(function.text, function.origin, "exec"), module.__dict__)  # noqa: S102  # asked for
    return module
