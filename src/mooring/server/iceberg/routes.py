"""The operations of the protocol: where each is, who may call it, and how it may fail.

Paths are matched as they were sent, before they are decoded, so that a name may hold whatever a
path is made of. A prefix before `namespaces` and the like is the catalog's name where there are
several, and else means nothing.

Spec: iceberg-rest-openapi, "paths".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.server.iceberg import commits, making, namespaces, refusals, tables, tokens
from mooring.server.iceberg.calls import Answer
from mooring.server.matching import match_route

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.server.iceberg.calls import Call
    from mooring.server.matching import Matched

__all__ = ["Route", "find_route"]

_PREFIX = "{prefix}"
_NAMESPACES = "/v1/{prefix}/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{namespace}}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_VIEW = f"{_NAMESPACE}/views/{{view}}"
_ABSENT, _UNSUPPORTED, _CONFLICT = 404, 406, 409


@dataclass(frozen=True, slots=True)
class Route:
    """One operation.

    Attributes:
        method: Of HTTP.
        path: As the document writes it.
        run: Does it.
        listed: Statuses of failures that it may answer with, beside those that all have.
        changes: Whether only writers may call it.
        commits: Whether a failure that nobody foresaw leaves open what was done.
        served: Whether clients are told of it; what is refused is not.
        is_open: Whether it may be called by those who did not prove themselves yet.
        bare: Statuses that the document lists with a bare error.
    """

    method: str
    path: str
    run: Callable[[Call], Answer]
    listed: frozenset[int] = frozenset()
    changes: bool = False
    commits: bool = False
    served: bool = True
    is_open: bool = False
    bare: frozenset[int] = frozenset({_UNSUPPORTED})

    @property
    def segments(self) -> tuple[str, ...]:
        """The path in parts."""
        return tuple(self.path.strip("/").split("/"))

    @property
    def endpoint(self) -> str:
        """The operation as clients are told of it."""
        return f"{self.method} {self.path}"


def _route(
    method: str, path: str, run: Callable[[Call], Answer], *listed: int, changes: bool = False
) -> Route:
    return Route(method, path, run, frozenset(listed), changes)


def _commit(path: str, run: Callable[[Call], Answer]) -> Route:
    return Route("POST", path, run, frozenset({_ABSENT, _CONFLICT}), changes=True, commits=True)


def _refusal(
    method: str, path: str, run: Callable[[Call], Answer], *listed: int, bare: bool = True
) -> Route:
    plain = frozenset({_ABSENT, _UNSUPPORTED, _CONFLICT} if bare else {_UNSUPPORTED})
    return Route(method, path, run, frozenset(listed), served=False, bare=plain)


def _config(call: Call) -> Answer:
    """Tell clients what is served; of several catalogs each has its name in all paths."""
    vends = call.settings.vend_credentials
    served = [
        route.endpoint
        for route in ROUTES
        if route.served and (vends or route.run is not tables.load_credentials)
    ]
    prefix = {} if call.is_only else {"prefix": call.catalog}
    return Answer({"defaults": {}, "overrides": prefix, "endpoints": served})


ROUTES: Sequence[Route] = (
    Route("GET", "/v1/config", _config, served=False),
    Route("POST", tokens.TOKEN_PATH, tokens.issue_token, served=False, is_open=True),
    _route("GET", _NAMESPACES, namespaces.list_namespaces, _ABSENT),
    _route(
        "POST",
        _NAMESPACES,
        namespaces.create_namespace,
        _UNSUPPORTED,
        _CONFLICT,
        changes=True,
    ),
    _route("GET", _NAMESPACE, namespaces.load_namespace, _ABSENT),
    _route("HEAD", _NAMESPACE, namespaces.namespace_exists, _ABSENT),
    _route("DELETE", _NAMESPACE, namespaces.drop_namespace, _ABSENT, _CONFLICT, changes=True),
    _route(
        "POST",
        f"{_NAMESPACE}/properties",
        namespaces.update_namespace,
        _ABSENT,
        _UNSUPPORTED,
        changes=True,
    ),
    _route("GET", f"{_NAMESPACE}/tables", tables.list_tables, _ABSENT),
    _route("POST", f"{_NAMESPACE}/tables", making.create_table, _ABSENT, _CONFLICT, changes=True),
    _route(
        "POST", f"{_NAMESPACE}/register", making.register_table, _ABSENT, _CONFLICT, changes=True
    ),
    _route("GET", _TABLE, tables.load_table, _ABSENT),
    _route("HEAD", _TABLE, tables.table_exists, _ABSENT),
    _commit(_TABLE, commits.update_table),
    _route("DELETE", _TABLE, tables.drop_table, _ABSENT, changes=True),
    _route("GET", f"{_TABLE}/credentials", tables.load_credentials, _ABSENT),
    _route("POST", f"{_TABLE}/metrics", tables.report_metrics, _ABSENT),
    _route(
        "POST",
        "/v1/{prefix}/tables/rename",
        tables.rename_table,
        _ABSENT,
        _UNSUPPORTED,
        _CONFLICT,
        changes=True,
    ),
    _commit("/v1/{prefix}/transactions/commit", commits.commit_transaction),
    _refusal("POST", f"{_TABLE}/plan", refusals.no_planning, _ABSENT, _UNSUPPORTED, bare=False),
    _refusal("GET", f"{_TABLE}/plan/{{plan-id}}", refusals.no_plan, _ABSENT, bare=False),
    _refusal("DELETE", f"{_TABLE}/plan/{{plan-id}}", refusals.no_plan, _ABSENT, bare=False),
    _refusal("POST", f"{_TABLE}/tasks", refusals.no_planning, _ABSENT, bare=False),
    _refusal("GET", f"{_NAMESPACE}/views", refusals.no_views, _ABSENT),
    _refusal("POST", f"{_NAMESPACE}/views", refusals.no_views, _ABSENT),
    _refusal("GET", _VIEW, refusals.no_view, _ABSENT),
    _refusal("HEAD", _VIEW, refusals.no_view, _ABSENT),
    _refusal("POST", _VIEW, refusals.no_views, _ABSENT),
    _refusal("DELETE", _VIEW, refusals.no_view, _ABSENT),
    _refusal("POST", "/v1/{prefix}/views/rename", refusals.no_views, _ABSENT, _UNSUPPORTED),
)


def find_route(method: str, raw_path: bytes) -> Matched[Route]:
    """Find what a path leads to.

    Args:
        method: Of HTTP.
        raw_path: Below where the protocol is mounted, as it was sent.
    """
    sent = raw_path.strip(b"/").split(b"/")
    bare = match_route(method, ((route, _without_prefix(route)) for route in ROUTES), sent)
    if bare.methods:
        return bare
    prefixed = (route for route in ROUTES if _PREFIX in route.segments)
    return match_route(method, ((route, route.segments) for route in prefixed), sent)


def _without_prefix(route: Route) -> list[str]:
    return [one for one in route.segments if one != _PREFIX]
