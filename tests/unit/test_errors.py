"""The tree of errors and what each class tells its adapters."""

from __future__ import annotations

import inspect
import re

import pytest

from mooring import errors
from mooring.errors import MooringError


def _tree(root: type[MooringError]) -> list[type[MooringError]]:
    return [root, *(found for child in root.__subclasses__() for found in _tree(child))]


ALL = _tree(MooringError)


def test_every_class_is_exported_and_the_exports_are_sorted():
    own = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    assert set(errors.__all__) == own
    assert {kind.__name__ for kind in ALL} == own
    assert list(errors.__all__) == sorted(errors.__all__)


def test_the_module_docstring_draws_the_tree_as_it_is():
    drawn: dict[str, str | None] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"([\s│├└─]*)(\w+Error)\b", line)
        if match is None:
            continue
        column, name = len(match[1]), match[2]
        while path and path[-1][0] >= column:
            path.pop()
        drawn[name] = path[-1][1] if path else None
        path.append((column, name))
    bases = {kind.__name__: kind.__bases__[0].__name__ for kind in ALL}
    assert drawn == {**bases, "MooringError": None}


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_class_carries_all_that_adapters_read(kind):
    """Spec: lance-rest-openapi, ErrorResponse, "Error codes"."""
    assert kind.__name__.endswith("Error")
    assert kind.code in range(24)
    assert kind.http_status in {400, 401, 403, 404, 406, 409, 500, 503}
    assert kind.iceberg_type
    assert kind.exit_code in range(1, 6)
    assert isinstance(kind.retryable, bool)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_class_says_what_it_alone_means(kind):
    others = {other.__doc__ for other in ALL if other is not kind}
    assert kind.__doc__
    assert kind.__doc__ not in others


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_a_class_stays_in_the_family_of_its_parent(kind):
    """A handler for the parent gives a child the same exit code and kind of HTTP status."""
    parent = kind.__bases__[0]
    if parent is MooringError or kind is MooringError:
        return
    assert kind.exit_code == parent.exit_code
    assert kind.http_status == parent.http_status


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.UnsupportedError, 0),
        (errors.NamespaceNotFoundError, 1),
        (errors.NamespaceAlreadyExistsError, 2),
        (errors.TableNotFoundError, 4),
        (errors.TableAlreadyExistsError, 5),
        (errors.TableVersionNotFoundError, 11),
        (errors.InvalidInputError, 13),
        (errors.InvalidNameError, 13),
        (errors.ConcurrentModificationError, 14),
        (errors.PermissionDeniedError, 15),
        (errors.UnauthenticatedError, 16),
        (errors.ServiceUnavailableError, 17),
        (errors.MooringError, 18),
        (errors.InvalidTableStateError, 19),
        (errors.TableSchemaValidationError, 20),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_codes_are_those_of_the_specification(kind, code):
    """Spec: lance-rest-openapi, ErrorResponse, "Error codes"."""
    assert kind.code == code


def test_only_a_lost_race_or_whoever_did_nothing_is_worth_trying_again():
    """A failed commit is lost, refused or unknown; the unknown one is looked at first."""
    retryable = {kind for kind in ALL if kind.retryable}
    assert retryable == {
        errors.ConcurrentModificationError,
        errors.ServiceUnavailableError,
        errors.ThrottledError,
    }


def test_exit_codes_follow_the_command_line_contract():
    assert {kind.exit_code for kind in _tree(errors.NotFoundError)} == {3}
    assert {kind.exit_code for kind in _tree(errors.ConflictError)} == {4}
    assert {kind.exit_code for kind in _tree(errors.InvalidInputError)} == {2}
    assert {kind.exit_code for kind in _tree(errors.UnsupportedError)} == {5}
    assert {kind.exit_code for kind in _tree(errors.PermissionDeniedError)} == {5}
