"""An Iceberg REST catalog over any catalog of Mooring's, of release 1.9.0 of the protocol.

Every Lance table appears as the document says, derived from the table when it is asked for.

Spec: iceberg-namespace; iceberg-rest-openapi.
"""
