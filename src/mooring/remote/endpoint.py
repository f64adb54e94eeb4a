"""The addresses of a server's objects, and requests about them.

Lance REST and what Mooring has beside it write identifiers alike: joined by a delimiter, the
delimiter alone for the root.

Spec: lance-rest-openapi, "paths".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote as encode
from urllib.parse import urlencode

from mooring.identifiers import DELIMITER, ObjectId, quote
from mooring.remote.failures import LANCE, About, Ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mooring.http.sender import Sender
    from mooring.remote.settings import RemoteSettings

__all__ = ["Endpoint"]

# No name holds a control character; this one is made for separating.
_NEVER_IN_NAMES = "\x1f"
_SEVERAL = 2


class Endpoint:
    """One base address of a server; safe for threads."""

    def __init__(
        self, settings: RemoteSettings, address: str, levels: Callable[[], int | None]
    ) -> None:
        """Speak to a server; nothing is asked yet.

        Args:
            settings: How it is reached.
            address: The base.
            levels: Tells the level of every table, where there is one level only.

        Raises:
            InvalidInputError: a file of certificates cannot be used.
            MissingExtraError: what speaks to servers is not installed.
        """
        from mooring.http.sender import Sender

        self._sender: Sender[Ask] = Sender(settings.reach(address), settings.grant, LANCE)
        self._delimiter = settings.delimiter
        self._levels = levels

    @property
    def server(self) -> str:
        """The address, for messages."""
        return self._sender.server

    def of_catalog(self, path: str, what: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401  # see _fetch
        """Ask about the whole catalog.

        Args:
            path: From the version on.
            what: What is asked about, for messages.
            more: As for `of_table`.
        """
        return self._fetch(About.CATALOG, f"/v1/{path}", what, **more)

    def of_namespace(self, namespace: ObjectId, action: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401  # see _fetch
        """Ask about a namespace, or for a change of it."""
        what = "the root" if namespace.is_root else f"namespace {quote(str(namespace))}"
        return self._about(About.NAMESPACE, namespace, action, what, **more)

    def of_table(self, table: ObjectId, action: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401  # see _fetch
        """Ask about a table, or for a change of it.

        Args:
            table: The table.
            action: What of it, as paths say it.
            more: The method, the body, what is in the query and in headers, whether something is
                different afterwards, and how long the answer may take.
        """
        return self._about(About.TABLE, table, action, f"table {quote(str(table))}", **more)

    def delimiter_for(self, object_id: ObjectId) -> str:
        """Return what can join the names of an identifier so that they are told apart again."""
        is_clear = self._delimiter not in "".join(object_id.names)
        if is_clear and (object_id.level < _SEVERAL or self._levels() != 1):
            return self._delimiter
        return _NEVER_IN_NAMES  # also where a server would take the whole for one name

    def _about(
        self,
        about: About,
        object_id: ObjectId,
        action: str,
        what: str,
        **more: Any,  # noqa: ANN401  # see _fetch
    ) -> dict[str, Any]:
        ObjectId.of(object_id.names)  # what is no name is refused here, as everywhere
        delimiter = self.delimiter_for(object_id)
        written = delimiter.join(object_id.names) or delimiter
        path = f"/v1/{about.value}/{encode(written, safe='')}/{action}"
        return self._fetch(about, path, what, delimiter=delimiter, **more)

    def _fetch(
        self,
        about: About,
        path: str,
        what: str,
        *,
        method: str = "POST",
        body: Mapping[str, Any] | Iterator[bytes] | None = None,
        query: Mapping[str, str | None] | None = None,
        headers: Mapping[str, str] | None = None,
        changes: bool = False,
        timeout_s: float | None = None,
        delimiter: str | None = None,
    ) -> dict[str, Any]:
        known = {key: value for key, value in (query or {}).items() if value is not None}
        delimiter = delimiter or self._delimiter
        if delimiter != DELIMITER:
            known["delimiter"] = delimiter
        ask = Ask(
            about=about,
            method=method,
            path=f"{path}?{urlencode(known, quote_via=encode)}" if known else path,
            what=what,
            changes=changes,
            body={} if body is None and method == "POST" else body,
            headers=headers or {},
            timeout_s=timeout_s,
        )
        answer = self._sender.send(ask)
        # Some servers have nothing to say about what they did.
        return self._sender.decode(ask, answer) if answer.content or not changes else {}
