"""What can be done on pages: each says first what will happen, and how it is undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.roles import Role
from mooring.server.ui.actions import (
    compacting,
    dropped_namespaces,
    dropped_tables,
    namespaces,
    properties,
    purging,
    tables,
)
from mooring.server.ui.route import Action, everything, its_namespace
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.route import Route

__all__ = ["ACTIONS"]

ACTIONS: Sequence[Route] = (
    # -- namespaces ------------------------------------------------------------------------------
    *(
        Action(
            name="CreateNamespace",
            path=f"{within}/create-namespace",
            ask=namespaces.ask_create,
            perform=namespaces.create,
            touches=namespaces.seen_or_itself,
            also=namespaces.created,
        )
        for within in ("", "/namespaces/{namespace}")
    ),
    *(
        Action(
            name="UpdateNamespace",
            path=f"{within}/properties",
            ask=properties.ask_namespace_properties,
            perform=properties.set_namespace_properties,
            touches=its_namespace,
        )
        for within in ("", "/namespaces/{namespace}")
    ),
    Action(
        name="DropNamespace",
        path="/namespaces/{namespace}/drop",
        ask=namespaces.ask_drop,
        perform=namespaces.drop,
        touches=its_namespace,
    ),
    Action(
        name="UndropNamespace",
        path="/namespaces/{namespace}/undrop",
        ask=dropped_namespaces.ask_undrop,
        perform=dropped_namespaces.undrop,
        touches=its_namespace,
    ),
    Action(
        name="PurgeNamespace",
        path="/namespaces/{namespace}/purge",
        role=Role.ADMIN,
        ask=dropped_namespaces.ask_purge,
        perform=dropped_namespaces.purge,
        touches=its_namespace,
        lane=Lane.DATA,
        goes_on=dropped_namespaces.purge_goes_on,
    ),
    # -- tables ----------------------------------------------------------------------------------
    Action(
        name="UpdateTable",
        path="/tables/{table}/properties",
        ask=properties.ask_table_properties,
        perform=properties.set_table_properties,
    ),
    Action(
        name="RenameTable",
        path="/tables/{table}/rename",
        ask=tables.ask_rename,
        perform=tables.rename,
        also=tables.renamed,
        goes_on=tables.rename_goes_on,
    ),
    Action(
        name="ProtectTable",
        path="/tables/{table}/protect",
        ask=tables.ask_protect,
        perform=tables.protect,
    ),
    Action(
        name="DropTable",
        path="/tables/{table}/drop",
        ask=tables.ask_drop,
        perform=tables.drop,
    ),
    Action(
        name="CompactTable",
        path="/tables/{table}/compact",
        ask=compacting.ask_compact,
        perform=compacting.compact,
        lane=Lane.DATA,
        goes_on=compacting.compact_goes_on,
    ),
    # -- the trash -------------------------------------------------------------------------------
    Action(
        name="UndropTable",
        path="/tables/{table}/undrop",
        ask=dropped_tables.ask_undrop,
        perform=dropped_tables.undrop,
        also=dropped_tables.came_back_as,
        goes_on=dropped_tables.undrop_goes_on,
    ),
    Action(
        name="PurgeTable",
        path="/tables/{table}/purge",
        role=Role.ADMIN,
        ask=dropped_tables.ask_purge,
        perform=dropped_tables.purge,
        lane=Lane.DATA,
        goes_on=dropped_tables.purge_goes_on,
    ),
    Action(
        name="PurgeExpired",
        path="/purge-expired",
        role=Role.ADMIN,
        ask=purging.ask_purge_expired,
        perform=purging.purge_expired,
        touches=everything,
        lane=Lane.DATA,
        goes_on=purging.expired_goes_on,
    ),
)
