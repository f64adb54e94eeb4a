"""Clients of several names on one server: one copy in memory, shared commits, each its own name.

"Concurrent changes of many clients share commits".
"""

from __future__ import annotations

import mooring
from mooring.identifiers import ObjectId
from mooring.server.catalogs import MooringCatalog

TABLE = ObjectId(("ns", "t"))


def test_clients_of_a_directory_share_its_manifest(tmp_path):
    served = MooringCatalog("lake", mooring.connect(tmp_path))
    ada, bo = served.backend("ada"), served.backend("bo")
    assert ada.manifest.shared is bo.manifest.shared
    ada.create_namespace(ObjectId(("ns",)), {})
    ada.declare_table(TABLE)
    bo.drop_table(TABLE)
    assert [change.by for change in served.backend().table_history(TABLE)] == ["bo"]


def test_clients_of_a_metastore_share_its_chain(tmp_path):
    served = MooringCatalog("store", mooring.connect(f"metastore+{tmp_path}", author="server"))
    ada, bo = served.backend("ada"), served.backend("bo")
    assert ada.metastore.chain is bo.metastore.chain
    assert ada.metastore._committer is bo.metastore._committer
    ada.create_namespace(ObjectId(("ns",)), {})
    bo.declare_table(TABLE)
    served.backend().drop_table(TABLE)
    committed = [record.by for _, record in bo.metastore.transactions()]
    assert committed == ["server", "bo", "ada"]
    assert [one.author for one in (ada, bo, served.backend())] == ["ada", "bo", "server"]


def test_read_only_catalog_stays_so_in_every_name(tmp_path):
    mooring.connect(f"metastore+{tmp_path}").create_namespace("ns")
    served = MooringCatalog("store", mooring.connect(f"metastore+{tmp_path}", read_only=True))
    assert served.backend("ada").read_only
