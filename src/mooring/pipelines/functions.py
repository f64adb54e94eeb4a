"""Functions of Python that are steps: found and read before anything of them runs."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = ["FunctionName", "FunctionSource", "find_function"]


@dataclass(frozen=True)
class FunctionName:
    """A function.

    Attributes:
        module: The module, or the path of a file that ends in ``.py``.
        name: The function.
    """

    module: str
    name: str

    @classmethod
    def parse(cls, text: str) -> FunctionName:
        """Read ``module:function`` or ``file.py:function``.

        Raises:
            InvalidInputError: it is neither.
        """
        module, colon, name = text.rpartition(":")
        if not colon or not module or not name.isidentifier():
            msg = f"a function is module:function or file.py:function, not {quote(text)}"
            raise InvalidInputError(msg)
        return cls(module, name)

    @property
    def is_in_file(self) -> bool:
        """Whether it is in a file that is no installed module."""
        return self.module.endswith(".py")

    def __str__(self) -> str:
        """Show it as it is written."""
        return f"{self.module}:{self.name}"


@dataclass(frozen=True)
class FunctionSource:
    """A function as its file has it.

    Attributes:
        path: The file.
        arguments: The names of its arguments.
        digest: Of the file.
    """

    path: Path
    arguments: tuple[str, ...]
    digest: str

    def load(self, function: FunctionName) -> Callable[..., Any]:
        """Import the function.

        Raises:
            InvalidInputError: its file cannot be imported.
        """
        if not function.is_in_file:
            return getattr(importlib.import_module(function.module), function.name)  # type: ignore[no-any-return]  # a function
        name = f"_pipeline_{self.digest[:12]}"
        module = sys.modules.get(name) or self._import(name)
        return getattr(module, function.name)  # type: ignore[no-any-return]  # a function

    def _import(self, name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, self.path)
        if spec is None or spec.loader is None:
            raise InvalidInputError(f"{quote(str(self.path))} cannot be imported")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as exc:
            del sys.modules[name]
            msg = f"{quote(str(self.path))} cannot be imported: {type(exc).__name__}: {exc}"
            raise InvalidInputError(msg) from exc
        return module


def find_function(function: FunctionName, around: Path) -> FunctionSource:
    """Find a function and read its arguments, without running any of it.

    Args:
        function: The function.
        around: The directory that relative paths begin in.

    Raises:
        InvalidInputError: there is no such file, module or function, or it takes what no step
            can give.
    """
    path = _locate(function, around)
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except OSError as exc:
        raise InvalidInputError(f"there is no file {quote(str(path))}") from exc
    except (SyntaxError, UnicodeDecodeError) as exc:
        raise InvalidInputError(f"{quote(str(path))} is no Python: {exc}") from exc
    found = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    named = next((one for one in found if one.name == function.name), None)
    if named is None:
        known = ", ".join(one.name for one in found) or "none"
        msg = f"{quote(str(path))} has no function {quote(function.name)}: it has {known}"
        raise InvalidInputError(msg)
    return FunctionSource(path, _arguments(named), hashlib.sha256(text.encode()).hexdigest())


def _locate(function: FunctionName, around: Path) -> Path:
    if function.is_in_file:
        return (around / function.module).absolute()
    try:
        spec = importlib.util.find_spec(function.module)
    except (ImportError, ValueError) as exc:
        raise InvalidInputError(f"there is no module {quote(function.module)}: {exc}") from exc
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        msg = f"there is no module {quote(function.module)} in Python: install it, or name a file"
        raise InvalidInputError(msg)
    return Path(spec.origin)


def _arguments(function: ast.FunctionDef) -> tuple[str, ...]:
    given = function.args
    if given.vararg or given.kwarg or given.posonlyargs:
        msg = (
            f"function {quote(function.name)} takes arguments that have no names: name the sources,"
            " steps and parameters that it needs"
        )
        raise InvalidInputError(msg)
    return tuple(one.arg for one in (*given.args, *given.kwonlyargs))
