"""TODO-activity."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.route import Route

__all__ = ["ACTIVITY"]

ACTIVITY: Sequence[Route] = ()
