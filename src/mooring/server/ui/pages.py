"""All that people see of a server, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.mounting import AnyPath
from mooring.server.ui.activity.stream import StreamEndpoint
from mooring.server.ui.atlas.atlas import Atlases
from mooring.server.ui.door import Door
from mooring.server.ui.endpoint import PagesEndpoint
from mooring.server.ui.links import CATALOGS_PATH
from mooring.server.ui.session import Sessions

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from mooring.server.background import Background
    from mooring.server.service import Service

__all__ = ["Pages"]


class Pages:
    """The pages of a server.

    Attributes:
        sessions: Knows who looks.
        atlases: What is known of each catalog.
        door: The first page, and logging in.
    """

    def __init__(self, service: Service, background: Background) -> None:
        """Show what a server has.

        Args:
            service: The server.
            background: What it does by itself, which pages tell of.
        """
        self.sessions = Sessions(service)
        self.atlases = Atlases(service, background.feeds)
        service.ending.listen(self.atlases.close)
        self.door = Door(service, self.sessions)
        self._endpoint = PagesEndpoint(service, self.sessions, self.atlases)
        self._stream = StreamEndpoint(service, self.sessions, background.feeds)

    @property
    def routes(self) -> list[BaseRoute]:
        """Where they are."""
        catalogs = AnyPath(CATALOGS_PATH, app=self._endpoint)
        return [self._stream.route, catalogs, *self.door.routes]
