"""Every error Mooring raises on purpose.

    MooringError
    ├── UnsupportedError
    │   ├── CatalogFormatError         the catalog is newer than this release
    │   ├── MissingExtraError          an optional part is not installed
    │   └── StoreUnsafeError           the store accepts two creations of one key
    ├── NotFoundError
    │   ├── NamespaceNotFoundError
    │   ├── TableNotFoundError
    │   │   └── NotLanceTableError     it is a change table, or one of Iceberg's
    │   ├── TableVersionNotFoundError
    │   ├── TableTagNotFoundError
    │   ├── TableBranchNotFoundError
    │   ├── TableIndexNotFoundError
    │   ├── TableColumnNotFoundError
    │   └── TransactionNotFoundError
    ├── ConflictError
    │   ├── NamespaceAlreadyExistsError
    │   ├── NamespaceNotEmptyError
    │   ├── TableAlreadyExistsError
    │   ├── TableTagAlreadyExistsError
    │   ├── TableBranchAlreadyExistsError
    │   ├── TableIndexAlreadyExistsError
    │   └── ConcurrentModificationError   lost a race: read again, then retry
    ├── InvalidInputError
    │   └── InvalidNameError
    ├── PermissionDeniedError
    │   └── ReadOnlyError
    ├── UnauthenticatedError
    ├── InvalidTableStateError
    │   └── ProtectedError
    ├── TableSchemaValidationError
    ├── UnreadableError                a file of the catalog is damaged
    └── ServiceUnavailableError
        ├── ThrottledError             a server has too much to do: nothing was done
        └── UnknownOutcomeError        a write may or may not have happened: look first

Each class carries the code of the Lance namespace specification, an HTTP status, the error
type an Iceberg REST client expects, the exit code of the command line, and whether trying
again can help. Adapters read these fields; there is no second table to keep in step.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "CatalogFormatError",
    "ConcurrentModificationError",
    "ConflictError",
    "InvalidInputError",
    "InvalidNameError",
    "InvalidTableStateError",
    "MissingExtraError",
    "MooringError",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NamespaceNotFoundError",
    "NotFoundError",
    "NotLanceTableError",
    "PermissionDeniedError",
    "ProtectedError",
    "ReadOnlyError",
    "ServiceUnavailableError",
    "StoreUnsafeError",
    "TableAlreadyExistsError",
    "TableBranchAlreadyExistsError",
    "TableBranchNotFoundError",
    "TableColumnNotFoundError",
    "TableIndexAlreadyExistsError",
    "TableIndexNotFoundError",
    "TableNotFoundError",
    "TableSchemaValidationError",
    "TableTagAlreadyExistsError",
    "TableTagNotFoundError",
    "TableVersionNotFoundError",
    "ThrottledError",
    "TransactionNotFoundError",
    "UnauthenticatedError",
    "UnknownOutcomeError",
    "UnreadableError",
    "UnsupportedError",
]

_FAILED, _USAGE, _NOT_FOUND, _CONFLICT, _REFUSED = 1, 2, 3, 4, 5


class MooringError(Exception):
    """Root of all errors; by itself it means something unexpected inside."""

    code: ClassVar[int] = 18
    http_status: ClassVar[int] = 500
    iceberg_type: ClassVar[str] = "InternalServerError"
    exit_code: ClassVar[int] = _FAILED
    retryable: ClassVar[bool] = False


class UnsupportedError(MooringError):
    """The catalog cannot do this; the message says why and what can."""

    code = 0
    http_status = 406
    iceberg_type = "UnsupportedOperationException"
    exit_code = _REFUSED


class CatalogFormatError(UnsupportedError):
    """The catalog was written by a newer release."""


class MissingExtraError(UnsupportedError):
    """An optional part is not installed; the message holds its ``pip install`` line."""


class StoreUnsafeError(UnsupportedError):
    """The store lets two creations of one key succeed, so no put can decide anything."""


class NotFoundError(MooringError):
    """Something that was named is not there."""

    code = 4
    http_status = 404
    iceberg_type = "NotFoundException"
    exit_code = _NOT_FOUND


class NamespaceNotFoundError(NotFoundError):
    """No namespace has this identifier."""

    code = 1
    iceberg_type = "NoSuchNamespaceException"


class TableNotFoundError(NotFoundError):
    """No live table has this identifier; a dropped one counts as absent."""

    iceberg_type = "NoSuchTableException"


class NotLanceTableError(TableNotFoundError):
    """The table is a change table or one of Iceberg's, and a Lance table is needed."""


class TableVersionNotFoundError(NotFoundError):
    """The table has no such version."""

    code = 11


class TableTagNotFoundError(NotFoundError):
    """The table has no such tag."""

    code = 8


class TableBranchNotFoundError(NotFoundError):
    """The table has no such branch."""

    code = 22


class TableIndexNotFoundError(NotFoundError):
    """The table has no such index."""

    code = 6


class TableColumnNotFoundError(NotFoundError):
    """The table has no such column."""

    code = 12


class TransactionNotFoundError(NotFoundError):
    """No transaction has this identifier, or its record is gone."""

    code = 10


class ConflictError(MooringError):
    """The catalog's state does not allow the change."""

    code = 14
    http_status = 409
    iceberg_type = "CommitFailedException"
    exit_code = _CONFLICT


class NamespaceAlreadyExistsError(ConflictError):
    """The namespace is there already."""

    code = 2
    iceberg_type = "AlreadyExistsException"


class NamespaceNotEmptyError(ConflictError):
    """Something is in the namespace, and it was not asked to go with it."""

    code = 3
    iceberg_type = "NamespaceNotEmptyException"


class TableAlreadyExistsError(ConflictError):
    """The table is there already."""

    code = 5
    iceberg_type = "AlreadyExistsException"


class TableTagAlreadyExistsError(ConflictError):
    """The table has a tag of this name already."""

    code = 9


class TableBranchAlreadyExistsError(ConflictError):
    """The table has a branch of this name already."""

    code = 23


class TableIndexAlreadyExistsError(ConflictError):
    """The table has an index of this name already."""

    code = 7


class ConcurrentModificationError(ConflictError):
    """Somebody else's change came first; read the state again before retrying."""

    retryable = True


class InvalidInputError(MooringError):
    """An argument cannot be accepted."""

    code = 13
    http_status = 400
    iceberg_type = "BadRequestException"
    exit_code = _USAGE


class InvalidNameError(InvalidInputError):
    """A name cannot be the name of a table or namespace here."""


class PermissionDeniedError(MooringError):
    """The store or the catalog refuses this caller."""

    code = 15
    http_status = 403
    iceberg_type = "ForbiddenException"
    exit_code = _REFUSED


class ReadOnlyError(PermissionDeniedError):
    """The catalog was opened read-only."""


class UnauthenticatedError(MooringError):
    """Credentials are missing or wrong."""

    code = 16
    http_status = 401
    iceberg_type = "NotAuthorizedException"
    exit_code = _REFUSED


class InvalidTableStateError(MooringError):
    """The table's state does not allow the operation."""

    code = 19
    http_status = 409
    iceberg_type = "CommitFailedException"
    exit_code = _REFUSED


class ProtectedError(InvalidTableStateError):
    """The table is protected; lift the protection first."""


class TableSchemaValidationError(MooringError):
    """Data does not fit the table's schema."""

    code = 20
    http_status = 400
    iceberg_type = "BadRequestException"
    exit_code = _USAGE


class UnreadableError(MooringError):
    """A file of the catalog is damaged; the message names it."""


class ServiceUnavailableError(MooringError):
    """The store did not answer."""

    code = 17
    http_status = 503
    iceberg_type = "ServiceUnavailableException"
    retryable = True


class ThrottledError(ServiceUnavailableError):
    """The server has too much to do already, and did nothing: ask again a little later."""

    code = 21


class UnknownOutcomeError(ServiceUnavailableError):
    """A write was sent and its answer never came: it may have happened."""

    iceberg_type = "CommitStateUnknownException"
    retryable = False
