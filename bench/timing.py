"""Time contenders in turn, so that a busy machine is busy for all of them."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["time_once", "time_rounds"]


def time_once(run: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def time_rounds(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    warm: bool = True,
    before: Callable[[], object] | None = None,
) -> dict[str, list[float]]:
    """Return the seconds of every call of each contender.

    They take turns, and every round begins with another one. No garbage is collected meanwhile.

    Args:
        contenders: What to call, by name.
        rounds: How often to call each.
        warm: Call each once first, unmeasured.
        before: Called before every call, unmeasured.
    """
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    if warm:
        for run in contenders.values():
            run()
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            shift = turn % len(names)
            for name in names[shift:] + names[:shift]:
                if before is not None:
                    before()
                seconds[name].append(time_once(contenders[name]))
    finally:
        gc.enable()
    return seconds
