"""What every part of a remote catalog's backend stands on: a server, and how it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from mooring.errors import (
    InvalidInputError,
    MooringError,
    UnknownOutcomeError,
    UnreadableError,
)
from mooring.http.handed_options import prefer
from mooring.identifiers import ObjectId, is_name, quote
from mooring.namespace.api import TableInfo
from mooring.namespace.opened import Opened
from mooring.remote.beside import Beside
from mooring.remote.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mooring.clock import Clock
    from mooring.remote.settings import RemoteSettings

__all__ = ["Connection"]

T = TypeVar("T")


class Connection(Opened):
    """A Lance REST server that is spoken to, in somebody's name."""

    def __init__(
        self,
        settings: RemoteSettings,
        *,
        author: str,
        read_only: bool = False,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Speak to a server; nothing is asked yet.

        Args:
            settings: How it is reached.
            author: In whose name tables are written; the server's records name whom it knows.
            read_only: Refuse every change.
            storage_options: How tables are reached; they count more than what the server tells.
            clock: Tells when something is old.
        """
        super().__init__(author=author, read_only=read_only, clock=clock)
        self.settings = settings
        self.storage_options = dict(storage_options or {})
        self.beside = Beside(settings)
        self.lance = Endpoint(settings, settings.address, lambda: self.levels)

    @property
    def levels(self) -> int | None:
        """The level of every table where there is one level only; None where tables nest."""
        facts = self.beside.facts
        return None if facts is None else facts.levels

    def require_table(self, table: ObjectId) -> None:
        """Refuse what cannot name a table.

        Raises:
            InvalidInputError: it is the root.
            InvalidNameError: one of its names cannot be one.
        """
        ObjectId.of(table.names)
        if table.is_root:
            msg = "a table needs a name"
            raise InvalidInputError(msg)

    def settle(self, change: Callable[[], T], look: Callable[[], T | None]) -> T:
        """Ask for a change, and look where its answer is lost.

        Args:
            change: Asks for it.
            look: Returns what the change would have answered, where all is as it wants it; None
                where it is not, or not yet.

        Raises:
            UnknownOutcomeError: the look did not tell.
        """
        try:
            return change()
        except UnknownOutcomeError as exc:
            try:
                found = look()
            except MooringError:
                raise exc from None
            if found is None:
                raise
            return found

    # -- reading answers -------------------------------------------------------------------------

    def pages(
        self, ask: Callable[[Mapping[str, str | None]], dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """Go through the pages of a listing to its end.

        Args:
            ask: Asks for a page, with what says which.

        Raises:
            UnreadableError: the pages go in a circle.
        """
        token: str | None = None
        seen: set[str] = set()
        while True:
            answer = ask({"limit": str(self.settings.page_size), "page_token": token})
            yield answer
            token = answer.get("page_token") or None
            if token is None:
                return
            if token in seen:
                msg = f"the pages of a listing of '{self.lance.server}' go in a circle"
                raise UnreadableError(msg)
            seen.add(token)

    def child_names(self, parent: ObjectId, found: list[str]) -> list[str]:
        """Return the names of direct children, sorted, however a server lists them.

        Some list whole identifiers, and what is further below. What no identifier can hold is left
        out.
        """
        if self.beside.offered() is not None:
            return sorted({name for name in found if is_name(name)})
        delimiter = self.settings.delimiter
        above = "" if parent.is_root else parent.format(delimiter) + delimiter
        names = {name.removeprefix(above) for name in found}
        return sorted(name for name in names if is_name(name) and delimiter not in name)

    def parse(self, text: str) -> ObjectId | None:
        """Read an identifier in string style; None where it cannot be one."""
        names = [text] if self.levels == 1 else text.split(self.settings.delimiter)
        return ObjectId(tuple(names)) if all(map(is_name, names)) else None

    def info(
        self,
        table: ObjectId,
        answer: Mapping[str, Any],
        *,
        keeps_versions: bool | None = None,
        is_only_declared: bool | None = None,
    ) -> TableInfo:
        """Read where a table is.

        Args:
            table: The identifier.
            answer: What the server said.
            keeps_versions: Whether its versions are the server's; as the answer says unless given.
            is_only_declared: Whether it has no data, where the answer does not say it.

        Raises:
            UnreadableError: it does not say where.
        """
        location = answer.get("location")
        if not isinstance(location, str) or not location:
            msg = f"'{self.lance.server}' does not tell where table {quote(str(table))} lies"
            raise UnreadableError(msg)
        handed = answer.get("storage_options") or {}
        declared = answer.get("is_only_declared")
        keeps = self._keeps(answer) if keeps_versions is None else keeps_versions
        return TableInfo(
            table,
            location,
            prefer({str(key): str(text) for key, text in handed.items()}, self.storage_options),
            {str(key): str(text) for key, text in (answer.get("properties") or {}).items()},
            is_only_declared if declared is None else bool(declared),
            answer.get("version"),
            keeps,
        )

    def _keeps(self, answer: Mapping[str, Any]) -> bool:
        """Whether readers of a table ask the server, too.

        Lance REST tells only whether to commit through it; a server of Mooring's tells the rest.
        """
        managed, facts = answer.get("managed_versioning") is True, self.beside.facts
        if facts is None:
            return managed
        return facts.keeps_versions or (managed and not facts.managed_versioning)
