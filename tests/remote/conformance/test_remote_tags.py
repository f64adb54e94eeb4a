"""The conformance suite's `test_tags`, of catalogs behind a server."""

from __future__ import annotations

from tests.conformance.test_tags import *  # noqa: F403  # all that the other has
