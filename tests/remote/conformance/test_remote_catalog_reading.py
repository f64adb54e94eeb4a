"""The conformance suite's `test_catalog_reading`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_catalog_reading import *  # noqa: F403  # all that the other has
