"""What a protocol that is wrong on purpose has to come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["require_caught"]


def require_caught(violations: Sequence[str]) -> None:
    """Check that it was caught, by what it did: a mistake of the test breaks a program as well.

    Programs that assert what they read may break by that.
    """
    assert violations
    assert "broke" not in violations[0] or "AssertionError" in violations[0], violations[0]
