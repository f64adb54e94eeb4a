"""Failures as answers: the code is kept, and the status is one that the document lists.

Spec: lance-rest-openapi, "responses", "ErrorResponse".
"""

from __future__ import annotations

import json

import pytest
from lance_namespace.errors import from_error_code

from mooring import errors
from mooring.server.lance.operations import OPERATIONS
from mooring.server.lance.problems import explain

ALWAYS = {400, 401, 403, 503}
LISTS = sorted({tuple(sorted(one.listed)) for one in OPERATIONS})


def _all(kind: type[errors.MooringError]) -> list[type[errors.MooringError]]:
    return [kind, *(below for one in kind.__subclasses__() for below in _all(one))]


KINDS = _all(errors.MooringError)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("listed", LISTS, ids=str)
def test_every_error_has_a_listed_status_and_its_code(kind, listed):
    error = kind("what, which and what next")
    worded = from_error_code(error.code, str(error))
    worded.__cause__ = error
    for one in (error, worded):
        problem = explain(one, listed)
        assert problem.code == kind.code
        assert problem.status in {*ALWAYS, *listed, 500}
        assert (
            problem.status >= 500
            or problem.status == kind.http_status
            or (kind.http_status not in {*ALWAYS, *listed})
        )
        # Clients ask again by themselves after this: only where nothing was done.
        assert (problem.status == 503) == ("Retry-After" in problem.headers)
        assert problem.status != 503 or kind.retryable
        body = json.loads(problem.answer({"type": "http", "path": "/x", "headers": []}).body)
        assert body == {"error": str(error), "code": kind.code, "instance": "/x"}


def test_a_lost_race_is_to_be_tried_again_where_nothing_else_can_be_said():
    lost = errors.ConcurrentModificationError("somebody else was first")
    assert explain(lost, {404, 409}).status == 409
    assert explain(lost, {404}).status == 503
    assert explain(errors.ConflictError("never"), {404}).status == 400


def test_an_unknown_outcome_is_never_tried_again():
    problem = explain(errors.UnknownOutcomeError("perhaps"), {404, 409})
    assert (problem.status, problem.code) == (500, 17)
    assert not problem.headers


def test_what_nobody_foresaw_is_for_the_log():
    assert explain(KeyError("x"), {404}) is None
