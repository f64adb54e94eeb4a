"""What Lance's failures mean, in errors of ours.

Lance raises a handful of built-in classes; what went wrong is in the text. Each pattern below
was seen in a failure of the release that is pinned.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mooring import errors
from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    MooringError,
    ServiceUnavailableError,
    TableBranchAlreadyExistsError,
    TableBranchNotFoundError,
    TableColumnNotFoundError,
    TableIndexAlreadyExistsError,
    TableIndexNotFoundError,
    TableSchemaValidationError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnknownOutcomeError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["explain", "translated"]

# The first that matches counts.
_MEANINGS: tuple[tuple[str, type[MooringError]], ...] = (
    # These repeat what the caller wrote, or values of rows, which must not be read as a meaning.
    (
        (
            r"^(invalid user input: )?(error parsing statement|error resolving filter expression"
            r"|error optimizing sql filter|expression (is not valid|'.*' is not supported))"
            r"|error applying filter expression to batch: (arrow|execution) error"
            r"|query execution error: execution error: "
            r"|(arrow error|lanceerror\(arrow\)): (cast|compute|divide by zero) ?error"
        ),
        InvalidInputError,
    ),
    (r"generic \S+ error: error performing", ServiceUnavailableError),
    (r"commit result .* is unknown", UnknownOutcomeError),
    (
        r"commit conflict|conflicting|concurrent (writers|transaction)|preempted by concurrent",
        ConcurrentModificationError,
    ),
    (r"tag \S+ does not exist", TableTagNotFoundError),
    (r"tag \S+ already exists", TableTagAlreadyExistsError),
    (r"branch \S+ does not exist|/tree/\S+/_versions, ", TableBranchNotFoundError),
    (
        r"branch \S+ already exists|clone operation should not enter build_manifest",
        TableBranchAlreadyExistsError,
    ),
    (r"ref conflict error.*can not delete|cleanup error", InvalidTableStateError),
    (
        r"version \S+ does not exist|_versions/\S+\.manifest was not found",
        TableVersionNotFoundError,
    ),
    (r"index not found|index \S+ not found", TableIndexNotFoundError),
    (r"index name .* already exists", TableIndexAlreadyExistsError),
    (
        (
            r"no field named|column \S+ (is not in|does not exist)|not found in schema"
            r"|field \S+ not found|field path .* does not exist"
        ),
        TableColumnNotFoundError,
    ),
    (
        (
            r"with different schema|duplicate field|cannot cast column"
            r"|already exists in the dataset|schema mismatch|cannot drop all columns"
            r"|contains null|non-nullable|top level field .* cannot contain|is a reserved name"
            r"|fixedsizelist with dimension 0|primary key column .* must not be nullable"
            r"|^lanceerror\(schema\): unsupported data type"
        ),
        TableSchemaValidationError,
    ),
    (
        r"/data/\S+ was not found|not found: \S+\.lance|does not appear to be a lance file",
        InvalidTableStateError,
    ),
    (r"invalid user input|invalid argument|parser error|ref is invalid", InvalidInputError),
    (
        r"cast error|not supported|unsupported|error during planning|wkt error|geoarrow",
        InvalidInputError,
    ),
)
_PATTERNS = tuple((re.compile(text, re.IGNORECASE | re.DOTALL), kind) for text, kind in _MEANINGS)

# What a ledger raised while Lance asked it, as Lance words it.
_RAISED = re.compile(
    r"LanceError\(\w+\): Python error in \w+: (\w+): (.*?)(?:, src/\S+\.rs:\d+:\d+)?$", re.DOTALL
)
# A feature flag that this release of Lance does not know, as a rename sets one.
_SEALED = "cannot be written by this version of Lance"
# Where in Lance's own source it failed, and dumps of whole schemas, help nobody.
_NOISE = re.compile(
    r",? (location: )?/\S+\.rs:\d+:\d+.*|:?\s+Schema \{.*|[(\[][\w, (\[]*\{ .*", re.DOTALL
)
# A name in the middle of such a dump.
_NAMED = re.compile(
    r"Custom\(ObjectName\(\[Identifier\(Ident \{ value: \"(.*?)\".*?\}\)\]\), \[\]\)"
)
_PANIC = "PanicException"
_PREFIX = re.compile(
    r"^(Invalid user input|LanceError\(\w+\)|External error|Schema error"
    r"|C Data interface error: Invalid): "
)
# Messages repeat what a caller wrote, and nobody else's request waits while a long one is read.
_LONGEST = 8_000
_OURS = (ValueError, TypeError, KeyError, NotImplementedError, OSError, RuntimeError)


def explain(failure: Exception, what: str) -> MooringError:
    """Word a failure of Lance.

    Args:
        failure: What Lance raised.
        what: What it happened to, as in "table 'people'".
    """
    text = _text(failure)
    raised = _RAISED.match(text)
    if raised and raised[1] in errors.__all__:
        kind: type[MooringError] = getattr(errors, raised[1])
        return kind(raised[2])
    if _SEALED in text:
        msg = (
            f"{what} takes no writes now: it is being renamed, or a newer release of Lance wrote"
            " to it; try again, else upgrade pylance"
        )
        return InvalidTableStateError(msg)
    reason = _tidy(text)
    for pattern, meaning in _PATTERNS:
        if pattern.search(text):
            return meaning(f"{what}: {reason}")
    if isinstance(failure, OSError | RuntimeError):
        return ServiceUnavailableError(f"{what}: Lance failed: {reason}")
    return InvalidInputError(f"{what}: {reason}")


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise errors of ours for Lance's."""
    try:
        yield
    except MooringError:
        raise
    except _OURS as exc:
        raise explain(exc, what) from exc
    except ArithmeticError as exc:
        raise InvalidInputError(f"{what}: a number is out of Lance's range: {exc}") from exc
    except BaseException as exc:
        # A panic of Lance is no Exception, and has no class that could be named.
        if type(exc).__name__ != _PANIC:
            raise
        why = _tidy(_shorten(str(exc)))
        msg = f"{what}: Lance has no way to do what is asked, and gave up: {why}"
        raise InvalidInputError(msg) from exc


def _text(failure: Exception) -> str:
    """Return what a failure says; some of Lance's come in pieces."""
    if len(failure.args) > 1 and all(isinstance(part, str) for part in failure.args):
        return _shorten("".join(failure.args))
    return _shorten(str(failure))


def _shorten(text: str) -> str:
    """Leave out the middle of a long message: what it means stands at its beginning or end."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"


def _tidy(text: str) -> str:
    tidy = _NOISE.sub("", _NAMED.sub(r"\1", text)).strip()
    while match := _PREFIX.match(tidy):
        tidy = tidy[match.end() :]
    return tidy.strip("'\" .") or "no reason given"
