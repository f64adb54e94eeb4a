"""Groups: the parts of a benchmark, which are measured one after the other, or only some."""

from __future__ import annotations

import sys
import time
import traceback
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.sections import Found

__all__ = ["ALL", "Groups"]


@dataclass(frozen=True)
class Groups:
    """Which groups are asked for.

    Attributes:
        only: Their names; all where there are none.
    """

    only: frozenset[str] = frozenset()

    def wants(self, *names: str) -> bool:
        """Whether any of some groups is asked for: else what they need is not prepared."""
        return not self.only or not self.only.isdisjoint(names)

    def measure(self, name: str, call: Callable[[], Iterable[Found]]) -> list[Found]:
        """Measure a group, where it is asked for, and tell so.

        An error is told in place of its figures: the groups after it are measured all the same.
        """
        if not self.wants(name):
            return []
        print(f"  {name} ...", file=sys.stderr, end=" ", flush=True)
        began_s = time.monotonic()
        try:
            found = list(call())
        except Exception as exc:  # noqa: BLE001  # whatever it is, it stops this group alone
            print("failed", file=sys.stderr)
            traceback.print_exc()
            return [Figure(name, missing=_tell(exc), is_failure=True, group=name)]
        print(f"{time.monotonic() - began_s:.1f} s", file=sys.stderr)
        return [replace(one, group=name) for one in found]


def _tell(error: Exception) -> str:
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


ALL = Groups()
