"""Catalogs that are a directory."""
