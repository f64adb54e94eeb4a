"""A catalog served over HTTP: to Iceberg clients, as an Iceberg REST catalog."""
