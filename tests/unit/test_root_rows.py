"""The rows of root tables, which follow what a directory decided.

Spec: directory-namespace, "Compatibility Mode".
"""

from __future__ import annotations

import mooring
from mooring.directory.manifest import Manifest
from mooring.errors import ServiceUnavailableError
from tests.lakes import rows


def test_a_drop_is_done_whatever_becomes_of_the_look_at_its_row(tmp_path, monkeypatch):
    catalog = mooring.connect(tmp_path)
    catalog.create_table("t", rows([1]))

    def fail(_: Manifest) -> bool:
        raise ServiceUnavailableError("the store does not answer")

    with monkeypatch.context() as worn:
        worn.setattr(Manifest, "exists", property(fail))
        catalog.drop_table("t")
    assert catalog.list_tables() == []
