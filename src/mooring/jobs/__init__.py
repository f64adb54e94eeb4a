"""Work that is divided into parts, which threads or Spark do with the same result."""
