"""Strict commits: a Lance commit lands as exactly one version, or not at all.

Lance on its own rebases a commit that lost and takes the next version. Here it is told that a
namespace manages the table's versions, and that namespace is this small class: it accepts one
version number, and the create-only put of that version's manifest through the catalog's store is
the decision. Lance calls the methods by name with plain dictionaries, so the class needs no base.

Spec: objects-and-relationships, "External Manifest Store".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.errors import (
    ConcurrentModificationError,
    TableVersionNotFoundError,
    UnknownOutcomeError,
)
from mooring.store.numbered import create_once
from mooring.tables.ledger_client import Response
from mooring.tables.records import key_for_lance
from mooring.tables.versions import VERSIONS_DIR, list_versions, manifest_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.store import Store

__all__ = ["VersionArbiter"]


class VersionArbiter:
    """Lets one commit through: the one that makes ``expected``."""

    def __init__(
        self,
        store: Store,
        table_dir: str,
        expected: int,
        *,
        needs: Sequence[str] = (),
        like: str = "",
    ) -> None:
        """Arbitrate a single commit.

        Args:
            store: The catalog's store.
            table_dir: The table's directory in it.
            expected: The only version that may be created.
            needs: Files that must be safe on disk before it is.
            like: The file of any version, where one is known.

        Afterwards ``decided`` tells whether it was created here, None if that was never asked
        for or, then with ``unknown``, the store never answered.
        """
        self._store = store
        self._table_dir = table_dir
        self._expected = expected
        self._needs = needs
        self._like = like
        self.decided: bool | None = None
        self.unknown: UnknownOutcomeError | None = None

    def namespace_id(self) -> str:
        """Identify this namespace in Lance's caches: never the same twice."""
        return f"mooring-arbiter-{id(self)}"

    def list_table_versions(self, request: dict[str, Any]) -> Response:
        """Answer the newest version there is.

        Raises:
            ConcurrentModificationError: the only version that may be created is there already.
        """
        del request
        if self._like and self.decided is None:
            return Response(versions=[self._entry(*self._newest_before())])
        known = list_versions(self._store, self._table_dir)
        newest = max(known, default=0)
        return Response(versions=[self._entry(newest, known[newest])] if newest else [])

    def _newest_before(self) -> tuple[int, str]:
        paths = [
            manifest_path(self._table_dir, number, like=self._like)
            for number in (self._expected - 1, self._expected)
        ]
        if paths[1] in self._store.existing(paths[1:]):
            self.decided = False
            raise self._taken(self._expected)
        return self._expected - 1, paths[0]

    def describe_table_version(self, request: dict[str, Any]) -> Response:
        """Answer where a version's manifest is.

        Raises:
            TableVersionNotFoundError: there is no such version.
        """
        version = int(request["version"])
        path = list_versions(self._store, self._table_dir).get(version)
        if path is None:
            msg = f"'{self._table_dir}' has no version {version}"
            raise TableVersionNotFoundError(msg)
        return Response(version=self._entry(version, path))

    def create_table_version(self, request: dict[str, Any]) -> Response:
        """Make a staged manifest the expected version.

        Raises:
            ConcurrentModificationError: another version was asked for, or it exists.
        """
        version = int(request["version"])
        staged = f"{self._table_dir}/{VERSIONS_DIR}/{request['manifest_path'].rsplit('/', 1)[-1]}"
        # Lance stages under the final name and a random suffix: `<name>.manifest-<uuid>`.
        final = staged[: staged.rindex(".manifest") + len(".manifest")]
        body = self._store.get(staged)
        try:
            # Not the staged file: its content is written anew, under its final name.
            self._store.sync(self._needs)
            self.decided = (
                version == self._expected
                and body is not None
                and create_once(self._store, final, body)
            )
        except UnknownOutcomeError as exc:
            self.unknown = exc
            raise
        finally:
            self._store.delete([staged])
        if not self.decided:
            raise self._taken(version)
        return Response(version=self._entry(version, final))

    def _taken(self, version: int) -> ConcurrentModificationError:
        msg = f"version {version} of '{self._table_dir}' was made by another writer"
        return ConcurrentModificationError(msg)

    def _entry(self, version: int, path: str) -> dict[str, Any]:
        return {"version": version, "manifest_path": key_for_lance(self._store.location(path))}
