"""The simulated disk: page cache, unsynced operations and platter of one file system."""
