"""Lance tables in Iceberg REST catalogs: any server as a catalog, and the shapes on the wire.

Spec: iceberg-namespace.
"""
