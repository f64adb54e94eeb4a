"""Any Lance REST server as a catalog."""
