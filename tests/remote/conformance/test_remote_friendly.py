"""The conformance suite's `test_friendly`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_friendly import *  # noqa: F403  # all that the other has
