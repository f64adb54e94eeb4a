"""Parts of the server that answer every path below their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.routing import Mount

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["AnyPath"]


class AnyPath(Mount):
    """A part of the server that answers every path below its own.

    The original does not know those that hold the end of a line.
    """

    def __init__(self, path: str, app: ASGIApp) -> None:
        """Answer below a path.

        Args:
            path: The path.
            app: Answers.
        """
        super().__init__(path, app)
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)
