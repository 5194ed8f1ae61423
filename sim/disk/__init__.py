"""The simulated disk: page cache, pending operations and platter of one file system."""
