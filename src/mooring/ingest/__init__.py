"""Rows from elsewhere into tables of a catalog: append, overwrite, upsert, delete by key."""

from mooring.ingest.running import IngestMode, IngestReport, OnConflict, Progress, ingest
from mooring.ingest.source import FileSource

__all__ = ["FileSource", "IngestMode", "IngestReport", "OnConflict", "Progress", "ingest"]
