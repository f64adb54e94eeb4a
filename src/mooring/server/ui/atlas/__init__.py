"""What is known of catalogs in memory, so that pages need not look at each table."""
