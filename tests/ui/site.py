"""The pages of a server as a browser without a screen has them: what it gets and sends."""

from __future__ import annotations

import re
import threading
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Self

from starlette.testclient import TestClient

from mooring.server.app import app_of, create_app
from mooring.server.service import Service

if TYPE_CHECKING:
    from httpx2 import Response

    from mooring.server.settings import ServerSettings

__all__ = ["HTML", "Site", "text_of", "wait_until"]

HTML = {"accept": "text/html"}
_LIMIT_S = 20
_BASE = "http://127.0.0.1:8765"
_SEAL = re.compile(r'name="seal" value="([^"]+)"')


class Site:
    """The pages of some catalogs, for one who looks; paths begin below the first catalog."""

    def __init__(
        self,
        catalogs: Any,
        settings: ServerSettings | None = None,
        *,
        name: str = "default",
        token: str | None = None,
    ) -> None:
        app = app_of(catalogs) if isinstance(catalogs, Service) else create_app(catalogs, settings)
        self.client = TestClient(app, base_url=_BASE, follow_redirects=False)
        self.at = f"/catalogs/{name}"
        self._token = token

    def __enter__(self) -> Self:
        self.client.__enter__()
        if self._token is not None:
            self.log_in(self._token)
        return self

    def __exit__(self, *failure: object) -> None:
        self.client.__exit__(None, None, None)

    def log_in(self, token: str) -> Response:
        """Show a token at the door."""
        form = {"token": token}
        return self.client.post("/login", data=form, headers={**HTML, "origin": _BASE})

    def get(self, path: str, **more: Any) -> Response:
        """Get a page as a browser does; the path is below the catalog unless it begins with /."""
        headers = {**HTML, **more.pop("headers", {})}
        return self.client.get(self._whole(path), headers=headers, **more)

    def page(self, path: str, **more: Any) -> str:
        """Return the HTML of a page that must be there."""
        response = self.get(path, **more)
        assert response.status_code == 200, (response.status_code, text_of(response.text))
        return response.text

    def json(self, path: str, **params: str) -> Any:
        """Return the twin of a page that must be there."""
        where, _, query = path.partition("?")
        response = self.client.get(
            f"{self._whole(where)}.json{'?' + query if query else ''}", params=params or None
        )
        assert response.status_code == 200, response.text
        return response.json()

    def act(self, path: str, **form: str) -> Response:
        """Open the page of an action, fill in its form and send it, as people do."""
        found = _SEAL.search(self.page(path))
        assert found is not None, f"{path} has no form"
        return self.post(path, seal=found[1], **form)

    def done(self, path: str, **form: str) -> str:
        """Do an action that must succeed; return where it leads."""
        response = self.act(path, **form)
        assert response.status_code == 303, (response.status_code, text_of(response.text))
        return response.headers["location"]

    def post(self, path: str, *, origin: str = _BASE, **form: str) -> Response:
        """Send a form."""
        headers = {**HTML, "origin": origin}
        return self.client.post(self._whole(path), data=form, headers=headers)

    def _whole(self, path: str) -> str:
        return path if path.startswith("/") else f"{self.at}/{path}"


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def text_of(html: str) -> str:
    """Return what a page says, without its markup."""
    reader = _Text()
    reader.feed(html)
    return " ".join(" ".join(reader.parts).split())


def wait_until(is_so):
    """Wait for a condition, a moment at a time."""
    pause = threading.Event()
    for _ in range(_LIMIT_S * 200):
        if is_so():
            return
        pause.wait(0.005)
    raise TimeoutError("it does not come about")
