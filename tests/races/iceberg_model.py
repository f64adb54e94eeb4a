"""What calls of a catalog of Lance tables may do, one after another: the rows that are left.

Of an Iceberg catalog two things are not done at one moment: a table that the server manages is
declared before its first version is decided, and what its storage manages can be written to while
the server drops it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from mooring.iceberg.properties import ManagedBy

if TYPE_CHECKING:
    from collections.abc import Iterator

IMPL, STORAGE = ManagedBy.IMPL, ManagedBy.STORAGE
# The rows of a table that lies somewhere before a catalog knows it.
WRITTEN = ("x1", "x2")

Rows = tuple[str, ...]
# The rows of what was dropped, and whether that was before the race: of those that were dropped
# in it, any may be the newest, for clocks tell.
Drop = tuple[Rows, bool]

NO_TABLE = "TableNotFoundError"
TAKEN = "TableAlreadyExistsError"
LOST = "ConcurrentModificationError"
REFUSED = "ServiceUnavailableError"
_UNSURE = ("crashed", "UnknownOutcomeError")


@dataclass
class Model:
    """What a catalog holds: tables by their names, and dropped ones."""

    live: dict[str, Rows] = field(default_factory=dict)
    trash: dict[str, tuple[Drop, ...]] = field(default_factory=dict)

    def freeze(self) -> tuple:
        """Return it as a key."""
        drops = ((name, tuple(sorted(drops))) for name, drops in self.trash.items() if drops)
        return frozenset(self.live.items()), frozenset(drops)

    @classmethod
    def thaw(cls, frozen: tuple) -> Model:
        """Read a key."""
        return cls(*(dict(part) for part in frozen))

    def shown(self) -> tuple:
        """Return what can be seen of it in the end."""
        drops = (
            (name, tuple(sorted(rows for rows, _ in drops)))
            for name, drops in self.trash.items()
            if drops
        )
        return frozenset(self.live.items()), frozenset(drops)


class Steps:
    """What a call may do alone, to tables that one or the other manages."""

    def __init__(self, by: ManagedBy, *, loses: bool = False) -> None:
        self._by = by
        self._loses = loses

    def parts(self, verb: str) -> list[str]:
        """Split a call into what it does at one moment each.

        A table that the server manages is declared before its first version is decided.
        """
        if self._by is IMPL and verb.startswith("create "):
            name = verb.split()[1]
            return [f"announce {name}", f"complete {name}"]
        if self._by is IMPL and verb.startswith("register "):
            name = verb.split()[1]
            return [f"announce {name}", f"enroll {name}"]
        return [verb]

    def after(self, verb: str, token: str, outcome: str, frozen: tuple) -> list[tuple]:
        """Return the states that a call may leave which had this outcome."""
        ends = self._ends(verb, token, Model.thaw(frozen))
        follow = [
            end.freeze() for told, end in ends if outcome == told or outcome in {*_UNSURE, told}
        ]
        if outcome in {LOST, REFUSED, *_UNSURE}:
            follow.append(frozen)
        if verb.startswith("purge") and outcome in {REFUSED, *_UNSURE}:
            follow += self._purged_in_part(verb.split()[1], frozen)
        return follow

    def _purged_in_part(self, name: str, frozen: tuple) -> Iterator[tuple]:
        drops = Model.thaw(frozen).trash.get(name, ())
        for at in range(len(drops)):
            model = Model.thaw(frozen)
            model.trash[name] = drops[:at] + drops[at + 1 :]
            yield model.freeze()
        model = Model.thaw(frozen)
        model.trash[name] = ()
        yield model.freeze()

    def _ends(self, verb: str, token: str, model: Model) -> list[tuple[str, Model]]:  # noqa: C901, PLR0911, PLR0912, PLR0915  # a table of cases
        match verb.split():
            case ["append", *names]:
                if any(name not in model.live for name in names):
                    return [(NO_TABLE, model), *self._written_late(token, model)]
                for name in names:
                    model.live[name] += (token,)
            case ["announce", name]:
                model.live.setdefault(name, ())
                return [(told, model) for told in ("ok", TAKEN, NO_TABLE, LOST, REFUSED)]
            case ["create" | "complete" as call, name]:
                rows = model.live.get(name)
                if call == "complete" and rows is None:
                    return [(NO_TABLE, model)]
                if rows:
                    return [(TAKEN, model)]
                ended = Model.thaw(model.freeze())
                ended.live[name] = (token,)
                # Somebody else may have reserved the name at the same time.
                ends = [("ok", ended)] if rows is None else [("ok", ended), (TAKEN, model)]
                if call == "complete":
                    undone = Model.thaw(model.freeze())
                    del undone.live[name]
                    ends.append((REFUSED, undone))
                return ends
            case ["enroll" | "register" as call, name]:
                if model.live.get(name):
                    return [(TAKEN, model)]
                if call == "enroll" and name not in model.live:
                    return [(NO_TABLE, model)]
                ended = Model.thaw(model.freeze())
                ended.live[name] = WRITTEN
                # The name may be reserved by somebody who did not get any further.
                return [("ok", ended), *([(TAKEN, model)] if name in model.live else [])]
            case ["declare", name]:
                if name in model.live:
                    return [(TAKEN, model)]
                model.live[name] = ()
            case ["drop", name]:
                if name not in model.live:
                    return [(NO_TABLE, model)]
                drop = (model.live.pop(name), False)
                model.trash[name] = (*model.trash.get(name, ()), drop)
            case ["undrop", name, *new]:
                target = new[0] if new else name
                if not model.trash.get(name):
                    return [(NO_TABLE, model), *self._found_done(target, model)]
                if target in model.live:
                    return [(TAKEN, model), *self._found_done(target, model)]
                return [("ok", end) for end in self._undropped(model, name, target)]
            case ["rename", name, new]:
                if name not in model.live:
                    return [(NO_TABLE, model), *self._found_done(new, model)]
                if new in model.live:
                    return [(TAKEN, model)]
                model.live[new] = model.live.pop(name)
            case ["purge", name]:
                if not model.trash.get(name):
                    # Somebody else's purge that is under way is helped.
                    return [(NO_TABLE, model), ("ok", model)]
                model.trash[name] = ()
            case ["deregister" | "forget", name]:
                if name not in model.live:
                    return [(NO_TABLE, model)]
                del model.live[name]
            case ["trim" | "tidy", name]:
                return [("ok" if name in model.live else NO_TABLE, model)]
            case ["read", name]:
                rows = model.live.get(name)
                return [(NO_TABLE if rows is None else f"saw {rows}", model)]
            case ["readall", name]:
                rows = model.live.get(name)
                counts = list(range(1, 1 + len(rows or ())))
                return [(NO_TABLE if rows is None else f"saw versions {counts}", model)]
            case _:
                raise AssertionError(verb)
        return [("ok", model)]

    def _found_done(self, name: str, model: Model) -> list[tuple[str, Model]]:
        """Without an answer, whoever finds a table at its new name is content, whoever did it."""
        return [("ok", model)] if self._loses and name in model.live else []

    def _written_late(self, token: str, model: Model) -> Iterator[tuple[str, Model]]:
        """Write to what its storage manages after it was dropped or renamed.

        That is told as a table that is not there, with the row in what comes back.
        """
        if self._by is IMPL:
            return
        for name, rows in model.live.items():
            end = Model.thaw(model.freeze())
            end.live[name] = (*rows, token)
            yield NO_TABLE, end
        for name, drops in model.trash.items():
            for at, (rows, is_old) in enumerate(drops):
                end = Model.thaw(model.freeze())
                changed = ((*rows, token), is_old)
                end.trash[name] = (*drops[:at], changed, *drops[at + 1 :])
                yield NO_TABLE, end

    def _undropped(self, model: Model, name: str, target: str) -> Iterator[Model]:
        drops = model.trash[name]
        fresh = [drop for drop in drops if not drop[1]]
        for drop in fresh or drops[-1:]:
            end = Model.thaw(model.freeze())
            kept = list(drops)
            kept.remove(drop)
            end.trash[name] = tuple(kept)
            end.live[target] = drop[0]
            yield end


Step = tuple[str, str, str]


def explains(
    steps: Steps, initial: tuple, actors: tuple[tuple[Step, ...], ...], final: tuple
) -> bool:
    """Whether some order of the calls leads to these outcomes and this state."""

    @lru_cache(None)
    def reach(positions: tuple[int, ...], state: tuple) -> bool:
        if all(at == len(history) for at, history in zip(positions, actors, strict=True)):
            return Model.thaw(state).shown() == final
        for index, at in enumerate(positions):
            if at == len(actors[index]):
                continue
            moved = (*positions[:index], at + 1, *positions[index + 1 :])
            if any(reach(moved, end) for end in steps.after(*actors[index][at], state)):
                return True
        return False

    return reach((0,) * len(actors), initial)
