"""Pages for people: the served catalogs in a browser, and the same as JSON."""
