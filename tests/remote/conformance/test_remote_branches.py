"""The conformance suite's `test_branches`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_branches import *  # noqa: F403  # all that the other has
