"""The conformance suite's `test_table_versions`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_table_versions import *  # noqa: F403  # all that the other has
