"""What every open catalog knows of its opening: in whose name, whether to change it, what time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.clock import SystemClock
from mooring.errors import ReadOnlyError

if TYPE_CHECKING:
    from mooring.clock import Clock

__all__ = ["Opened"]


class Opened:
    """A catalog that somebody opened."""

    def __init__(self, *, author: str, read_only: bool = False, clock: Clock | None = None) -> None:
        """Open a catalog.

        Args:
            author: In whose name changes are recorded.
            read_only: Refuse every change.
            clock: Stamps changes, and tells when something is old.
        """
        self.author = author
        self.read_only = read_only
        self.clock = clock or SystemClock()

    def require_writable(self) -> None:
        """Refuse where no change may be made.

        Raises:
            ReadOnlyError: the catalog was opened read-only.
        """
        if self.read_only:
            msg = "this catalog was opened read-only"
            raise ReadOnlyError(msg)
