"""A transactional catalog: namespaces, tables, versions, streams, partitions and deltas."""
