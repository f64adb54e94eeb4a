"""What can be done to a located Lance table, written once for every backend."""
