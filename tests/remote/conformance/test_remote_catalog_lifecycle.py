"""The conformance suite's `test_catalog_lifecycle`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_catalog_lifecycle import *  # noqa: F403  # all that the other has
