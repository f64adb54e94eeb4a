"""Rows from elsewhere into tables of a catalog: append, overwrite, upsert, delete by key."""

from mooring.ingest.report import IngestReport, Progress
from mooring.ingest.request import IngestMode, OnConflict
from mooring.ingest.running import ingest
from mooring.ingest.source import FileSource

__all__ = ["FileSource", "IngestMode", "IngestReport", "OnConflict", "Progress", "ingest"]
