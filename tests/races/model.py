"""What the operations mean one after another, and whether a concurrent history means the same.

A history is right if some order of its operations, each actor's own order kept, explains every
outcome and the state that is left. An operation that crashed may or may not have happened; one
that reports a lost race has changed nothing, save a creation, whose outcome is then unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

ABSENT = ("absent", None, False)


def live(content: str | None, protected: bool = False):
    return ("live", content, protected)


def dropped(content: str | None):
    return ("dropped", content, False)


def forgotten(content: str | None):
    return ("forgotten", content, False)


@dataclass(frozen=True)
class Op:
    """An operation by name; a creation has the token it writes."""

    verb: str
    token: str | None = None

    def __str__(self) -> str:
        return self.verb


LOST, NOT_FOUND, EXISTS = (
    "ConcurrentModificationError",
    "TableNotFoundError",
    "TableAlreadyExistsError",
)
BAD_STATE, PROTECTED = "InvalidTableStateError", "ProtectedError"
# How a write ends under which the table was purged.
NO_VERSION, UNSTAGED = "TableVersionNotFoundError", "InvalidInputError"


# A dropped table that another program has deregistered: registering it brings it back, too.
MARKED_INSIDE = "inside"


def apply(op: Op, state) -> tuple[str, object]:  # noqa: C901, PLR0911, PLR0912  # a table of cases
    """Return the outcome and the state after an operation that runs alone."""
    kind, content, protected = state
    match op.verb:
        case "create":
            if kind == "forgotten" or (kind == "live" and content is not None):
                return EXISTS, state
            return "ok", live(op.token, protected and kind == "live")
        case "overwrite":
            if kind == "forgotten":
                return EXISTS, state
            return "ok", live(op.token, protected and kind == "live")
        case "write":
            if kind != "live" or content is None:
                return NOT_FOUND, state
            return "ok", live(f"{content}+{op.token}", protected)
        case "declare":
            if kind == "live":
                return EXISTS, state
            return ("ok", live(None)) if kind == "absent" else (BAD_STATE, state)
        case "drop" | "deregister":
            if kind != "live":
                return NOT_FOUND, state
            if protected:
                return PROTECTED, state
            return "ok", dropped(content) if op.verb == "drop" else forgotten(content)
        case "undrop":
            return ("ok", live(content)) if kind == "dropped" else (NOT_FOUND, state)
        case "register":
            if kind == "live":
                return EXISTS, state
            if kind == "forgotten" or (kind == "dropped" and protected == MARKED_INSIDE):
                return "ok", live(content)
            return NOT_FOUND, state
        case "purge":
            return ("ok", ABSENT) if kind == "dropped" else (NOT_FOUND, state)
        case "protect" | "unprotect":
            if kind != "live":
                return NOT_FOUND, state
            return "ok", live(content, op.verb == "protect")
    raise AssertionError(op)


def explains(  # a search and its steps
    initial, actors: tuple[tuple[tuple[Op, str], ...], ...], final, *, adopts: bool = False
) -> bool:
    """Whether some order of the operations leads to these outcomes and this state.

    With ``adopts``, registering a live table may mean to take it into a manifest.
    """
    ops = [op for history in actors for op, _ in history]
    creations = any(op.verb in {"create", "overwrite", "declare"} for op in ops)
    purges = sum(op.verb == "purge" for op in ops)
    # A purge may end another's purge, or clear away a creation that is not finished.
    purges += any(
        op.verb in {"create", "overwrite"} and outcome != "ok"
        for history in actors
        for op, outcome in history
    )
    # V1 shows a table as soon as its directory has a file, before its first version is there.
    phantom = creations and initial[0] in {"absent", "live"} and initial[1] is None

    @lru_cache(None)
    def reach(positions: tuple[int, ...], state) -> bool:
        if all(at == len(history) for at, history in zip(positions, actors, strict=True)):
            return state == final or (state[0] == "dropped" and state[:2] == final[:2])
        if phantom and state == ABSENT and reach(positions, _PHANTOM):
            return True
        real = live(None) if state == _PHANTOM else state
        for index, at in enumerate(positions):
            if at == len(actors[index]):
                continue
            op, outcome = actors[index][at]
            moved = (*positions[:index], at + 1, *positions[index + 1 :])
            news = _after(op, outcome, real, purges)
            if adopts and op.verb == "register" and real[0] == "live" and outcome == "ok":
                news = [real]
            if any(reach(moved, new) for new in news):
                return True
        return False

    starts = [initial]
    return any(reach((0,) * len(actors), start) for start in starts) or (
        phantom and final == live(None) and explains_absent(initial, actors)
    )


_PHANTOM = ("phantom", None, False)


def explains_absent(initial, actors) -> bool:
    """A creation that failed may leave its empty directory, which V1 calls a table."""
    return (
        initial == ABSENT
        and any(
            op.verb in {"create", "overwrite"} and outcome != "ok"
            for history in actors
            for op, outcome in history
        )
        and explains(initial, actors, ABSENT)
    )


def _after_unsure_write(op: Op, state) -> list:
    """A write that was not acknowledged may be in the table, live or dropped, or nowhere."""
    kind, content, protected = state
    if kind not in {"live", "dropped", "forgotten"} or content is None:
        return [state]
    return [state, (kind, f"{content}+{op.token}", protected)]


def _after(op: Op, outcome: str, state, purges: int) -> list:  # noqa: PLR0911  # cases
    expected, new = apply(op, state)
    if state[2] == MARKED_INSIDE and op.verb in {"create", "overwrite"} and outcome != "ok":
        return [state, dropped(state[1]), *([new] if expected == "ok" else [])]
    if op.verb == "write" and outcome in {NOT_FOUND, NO_VERSION, UNSTAGED, "crashed"}:
        return _after_unsure_write(op, state)
    if outcome == "crashed":
        return [state, new]
    if outcome == LOST:
        return [state, new] if op.verb in {"create", "overwrite"} and expected == "ok" else [state]
    if outcome == "ok" and op.verb == "purge" and purges > 1 and state[0] == "absent":
        return [state]
    if outcome == NOT_FOUND and op.verb == "register" and state[2] == MARKED_INSIDE:
        return [state]  # a creation that is under way hides who hid the table
    if outcome == BAD_STATE and op.verb == "declare":
        return [state]  # a name with a past is never declared again
    return [new] if outcome == expected else []
