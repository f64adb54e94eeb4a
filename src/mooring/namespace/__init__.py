"""The contract of all catalogs: what a backend does, in types of its own."""
