"""Ways to make versions that are wrong on purpose: the harness must catch each of them."""

from __future__ import annotations

import pytest

import mooring.tables.records
from mooring.errors import ConcurrentModificationError, UnknownOutcomeError

from .caught import require_caught
from .explorer import Limits
from .harness import Race, explore


def _with_a_plain_put(monkeypatch) -> None:
    """Make a version by a put that replaces what is there."""

    def put(store, path, body) -> bool:
        store.put(path, body)
        return True

    monkeypatch.setattr(mooring.tables.records, "create_once", put)


def _with_a_look_instead(monkeypatch) -> None:
    """Look whether a version exists, then put it."""

    def put(store, path, body) -> bool:
        if store.get(path) is not None:
            return False
        store.put(path, body)
        return True

    monkeypatch.setattr(mooring.tables.records, "create_once", put)


def _taking_silence_for_a_loss(monkeypatch) -> None:
    """Believe a refusal that is the echo of one's own put."""

    def put(store, path, body) -> bool:
        try:
            return store.put_new(path, body)
        except UnknownOutcomeError as exc:
            raise ConcurrentModificationError(path) from exc

    monkeypatch.setattr(mooring.tables.records, "create_once", put)


BROKEN = [
    (_with_a_plain_put, Race("live", (("write",), ("write",))), Limits()),
    (_with_a_look_instead, Race("live", (("write",), ("write",))), Limits()),
    (
        _taking_silence_for_a_loss,
        Race("live", (("write",), ("protect",))),
        Limits(faults=1, preemptions=1),
    ),
]


def _name(part: object) -> str | None:
    return part.__name__.strip("_") if callable(part) else None


@pytest.mark.parametrize(("breaking", "race", "limits"), BROKEN, ids=_name)
def test_wrong_way_is_caught(breaking, race, limits, monkeypatch):
    breaking(monkeypatch)
    require_caught(explore(race, limits=limits).violations)
