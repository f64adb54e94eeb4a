"""The conformance suite's `test_changes`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_changes import *  # noqa: F403  # all that the other has
