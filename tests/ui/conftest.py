"""Fixtures: a catalog of each kind, and its pages."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch):
    """The machine does not die in these suites; a sync costs most of a test."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
