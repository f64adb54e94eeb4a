"""Branches: lines of versions of their own, which begin at a version of another.

A branch is a file that says where it comes from, and a directory with its versions. Lance writes
the first version and then the file, so that of two creators the loser's version stays in the
winner's branch, as its newest if it has the higher number. Here Lance only prepares the version;
the create-only put of the file decides who makes the branch, and the version follows. Where a
creator dies between the two, the branch has no versions: it can be deleted.

Spec: lance-rest-openapi, ListTableBranches, CreateTableBranch, DeleteTableBranch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from mooring.clock import RandomIds, SystemClock
from mooring.errors import (
    InvalidInputError,
    InvalidTableStateError,
    MooringError,
    TableBranchAlreadyExistsError,
    TableBranchNotFoundError,
    TableVersionNotFoundError,
    UnreadableError,
)
from mooring.identifiers import quote
from mooring.store.numbered import create_once
from mooring.tables.api import BY
from mooring.tables.failures import translated
from mooring.tables.handle import NEWEST, At
from mooring.tables.ledger_client import LedgerClient, Response
from mooring.tables.reference_names import (
    BRANCH_FILES_DIR,
    MAIN,
    branch_of,
    check_branch,
    check_new_branch,
    parse_references,
    reference_file,
)
from mooring.tables.tags import Tags, resolve
from mooring.tables.transaction_files import TRANSACTIONS_DIR, named_in
from mooring.tables.versions import BRANCHES_DIR, VERSIONS_DIR, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.clock import Clock, IdSource
    from mooring.tables.api import Ledger, VersionRecord
    from mooring.tables.handle import TableHandle

__all__ = ["Branch", "Branches"]

_DIR = BRANCH_FILES_DIR


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of versions.

    Attributes:
        name: The branch.
        parent_branch: The branch it comes from; None for main.
        parent_version: The version it comes from.
        created_at: When it was made.
        size_bytes: The size of the manifest that it comes from.
        metadata: What is kept with it.
    """

    name: str
    parent_branch: str | None
    parent_version: int
    created_at: datetime
    size_bytes: int
    metadata: Mapping[str, str] = field(default_factory=dict)


class _Identifier(msgspec.Struct, frozen=True):
    """Where a branch comes from, down from main: versions, and what tells branches apart."""

    version_mapping: list[tuple[int, str]] = []


class _File(msgspec.Struct, frozen=True, rename="camel"):
    """What Lance keeps of a branch."""

    parent_branch: str | None
    identifier: _Identifier
    parent_version: int
    create_at: int
    manifest_size: int
    metadata: dict[str, str] = {}


class _StagingClient(LedgerClient):
    """Lets Lance write the first manifest of a branch, and then stops it."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.staged: str | None = None

    def create_table_version(self, request: dict[str, Any]) -> Response:
        self.staged = request["manifest_path"]
        return Response(
            version={"version": request["version"], "manifest_path": request["manifest_path"]}
        )

    def describe_table_version(self, request: dict[str, Any]) -> Response:
        if self.staged is not None:
            # Lance asks this last, before it would write the branch's file.
            msg = "the manifest is staged, which is all that was wanted"
            raise TableVersionNotFoundError(msg)
        return super().describe_table_version(request)


class Branches:
    """The branches of one table, main left out."""

    def __init__(
        self, handle: TableHandle, *, clock: Clock | None = None, ids: IdSource | None = None
    ) -> None:
        """Work on a located table; nothing is read yet."""
        self._handle = handle
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()

    # -- reading ---------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Name the branches, sorted, by one look."""
        place = self._handle.place
        return parse_references(place.store.list_dir(place.path(_DIR)).files)

    def list(self, names: Sequence[str] | None = None) -> list[Branch]:
        """Return the branches by name, or some; one that is deleted meanwhile is left out."""
        found = self._files(self.names() if names is None else names)
        return [_branch(name, file) for name, file in found.items()]

    def get(self, name: str) -> Branch:
        """Return a branch.

        Raises:
            TableBranchNotFoundError: there is no such branch.
            InvalidInputError: no branch can have this name.
        """
        return _branch(name, self._read(name))

    # -- changing --------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        *,
        branch: str | None = None,
        version: int | None = None,
        tag: str | None = None,
    ) -> Branch:
        """Make a branch; of several creators of one, one wins.

        Args:
            name: The new branch.
            branch: The branch it comes from; main unless given.
            version: The version it comes from; the newest unless given.
            tag: What names the version instead.

        Raises:
            TableBranchAlreadyExistsError: there is such a branch.
            TableBranchNotFoundError: there is no such branch to come from.
            TableVersionNotFoundError: there is no such version.
            TableTagNotFoundError: there is no such tag.
            InvalidInputError: no branch can have this name.
            InvalidTableStateError: what is left of an earlier branch is in the way.
            TableNotFoundError: the table was dropped meanwhile.
        """
        check_new_branch(name)
        self._handle.ledger.prepare()
        source = resolve(self._handle, At(version, tag, branch))
        self._require_free(name)
        origin = self._find(source)
        parent = self._read(source.branch) if source.branch else None
        try:
            staged = self._stage(name, source.branch, origin.version)
        except MooringError:
            # Lance stumbles over the versions of somebody who was faster.
            self._require_free(name)
            raise
        wanted = self._describe(source.branch, origin, parent)
        # This put decides.
        if not create_once(self._handle.place.store, self._path(name), msgspec.json.encode(wanted)):
            self._discard(name, staged)
            raise self._taken(name)
        self._handle.ledger.create(origin.version, staged, name)
        self._confirm(name, source.branch, origin.version)
        return _branch(name, wanted)

    def delete(self, name: str) -> None:
        """Delete a branch with its versions, and what is left of one that was half made.

        Raises:
            TableBranchNotFoundError: there is no such branch.
            InvalidTableStateError: tags or other branches hang on it.
            InvalidInputError: no branch can have this name, or it is main.
        """
        if name == MAIN:
            msg = "main cannot be deleted: it is the table; drop the table instead"
            raise InvalidInputError(msg)
        check_branch(name)
        self._handle.ledger.prepare()
        self._handle.confirm()
        branches = self._files(self.names())
        own = self._own_files(name, branches)
        if name not in branches and not own:
            raise self._absent(name)
        self._require_loose(name, branches)
        self._remove(name, own)
        self._handle.confirm()

    # -- making one ------------------------------------------------------------------------------

    def _find(self, source: At) -> VersionRecord:
        """Find the version that a branch is to come from."""
        ledger = self._handle.ledger
        # This also tells whether there is such a branch.
        newest = ledger.newest(source.branch)
        if newest is None:
            msg = f"{self._handle.what} has no versions yet: it is only declared"
            raise TableVersionNotFoundError(msg)
        return newest if source.version is None else ledger.describe(source.version, source.branch)

    def _require_free(self, name: str) -> None:
        place = self._handle.place
        if place.store.head(self._path(name)) is not None:
            raise self._taken(name)
        versions = place.store.list_dir(place.path(f"{BRANCHES_DIR}/{name}/{VERSIONS_DIR}")).files
        if any(parse_manifest(file) is not None for file in versions):
            msg = (
                f"versions of an earlier branch {quote(name)} of {self._handle.what} are in the"
                " way, which was half made or half deleted: delete the branch first"
            )
            raise InvalidTableStateError(msg)

    def _stage(self, name: str, parent: str | None, version: int) -> str:
        """Let Lance write the branch's first manifest, and return its key."""
        client = _StagingClient(self._handle.ledger)
        with translated(self._handle.what):
            dataset = self._handle.open_through(client, NEWEST)
            try:
                dataset.create_branch(name, (parent, version))
            except (OSError, ValueError, RuntimeError):
                if client.staged is None:
                    raise
        if client.staged is None:
            msg = f"Lance made branch {quote(name)} without asking"
            raise AssertionError(msg)
        return client.staged

    def _describe(
        self, parent_branch: str | None, origin: VersionRecord, parent: _File | None
    ) -> _File:
        above = parent.identifier.version_mapping if parent else []
        return _File(
            parent_branch,
            _Identifier([*above, (origin.version, self._ids.new_id())]),
            origin.version,
            self._clock.now_ms() // 1000,
            origin.size_bytes or 0,
            {key: value for key, value in self._handle.stamp.items() if key == BY},
        )

    def _confirm(self, name: str, parent: str | None, version: int) -> None:
        """Acknowledge a branch only of a version that is there."""
        try:
            self._handle.ledger.describe(version, parent)
        except (TableVersionNotFoundError, TableBranchNotFoundError):
            # Somebody cleaned up, or deleted the parent, who looked before this one was there.
            self._remove(name, self._own_files(name, self._files(self.names())))
            raise

    def _discard(self, name: str, staged: str) -> None:
        """Delete what Lance wrote for a branch that somebody else made first."""
        place = self._handle.place
        below = f"{BRANCHES_DIR}/{name}"
        manifest = place.path(f"{below}/{VERSIONS_DIR}/{staged.rpartition('/')[2]}")
        body = place.store.get(manifest) or b""
        transactions = [
            place.path(f"{below}/{TRANSACTIONS_DIR}/{found}") for found in named_in(body)
        ]
        place.store.delete([manifest, *transactions])

    # -- deleting one ----------------------------------------------------------------------------

    def _own_files(self, name: str, branches: Mapping[str, _File]) -> Sequence[str]:
        """List the files of a branch; another may lie in its directory."""
        place = self._handle.place
        below = place.path(f"{BRANCHES_DIR}/{name}")
        nested = tuple(
            place.path(f"{BRANCHES_DIR}/{other}/")
            for other in branches
            if other.startswith(f"{name}/")
        )
        paths = [meta.path for meta in place.store.list_prefix(below)]
        return [path for path in paths if not path.startswith(nested)]

    def _require_loose(self, name: str, branches: Mapping[str, _File]) -> None:
        children = [other for other, file in branches.items() if file.parent_branch == name]
        if children:
            msg = (
                f"branch {quote(name)} of {self._handle.what} cannot be deleted: branch"
                f" {quote(children[0])} comes from it; delete that first"
            )
            raise InvalidTableStateError(msg)
        tags = [tag.name for tag in Tags(self._handle).list() if tag.branch == name]
        if tags:
            msg = (
                f"branch {quote(name)} of {self._handle.what} cannot be deleted: tag"
                f" {quote(tags[0])} names a version of it; delete the tag first"
            )
            raise InvalidTableStateError(msg)

    def _remove(self, name: str, own: Sequence[str]) -> None:
        """Delete the files of a branch.

        Versions go first, so that none is there without its data. The branch's own file goes
        last: until then the name is taken, and nobody makes a branch where files still go.
        """
        self._handle.ledger.forget(name)
        place = self._handle.place
        versions = place.path(f"{BRANCHES_DIR}/{name}/{VERSIONS_DIR}/")
        place.store.delete([path for path in own if path.startswith(versions)])
        place.store.delete([path for path in own if not path.startswith(versions)])
        place.store.delete([self._path(name)])
        place.store.prune(place.path(f"{BRANCHES_DIR}/{name.partition('/')[0]}"))

    # -- small things ----------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return self._handle.place.path(f"{_DIR}/{reference_file(name)}")

    def _files(self, names: Sequence[str]) -> dict[str, _File]:
        bodies = self._handle.place.read_all([self._path(name) for name in names])
        found = zip(names, bodies, strict=True)
        return {name: _decode(name, body) for name, body in found if body is not None}

    def _read(self, name: str) -> _File:
        check_branch(name)
        body = self._handle.place.store.get(self._path(name))
        if body is None:
            raise self._absent(name)
        return _decode(name, body)

    def _absent(self, name: str) -> TableBranchNotFoundError:
        return TableBranchNotFoundError(f"{self._handle.what} has no branch {quote(name)}")

    def _taken(self, name: str) -> TableBranchAlreadyExistsError:
        return TableBranchAlreadyExistsError(
            f"{self._handle.what} has a branch {quote(name)} already"
        )


def _decode(name: str, body: bytes) -> _File:
    try:
        return msgspec.json.decode(body, type=_File)
    except msgspec.DecodeError as exc:
        msg = f"the file of branch {quote(name)} is damaged: {exc}"
        raise UnreadableError(msg) from exc


def _branch(name: str, file: _File) -> Branch:
    return Branch(
        name,
        branch_of(file.parent_branch),
        file.parent_version,
        datetime.fromtimestamp(file.create_at, UTC),
        file.manifest_size,
        file.metadata,
    )
