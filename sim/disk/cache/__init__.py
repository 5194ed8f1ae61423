"""The page cache: inodes, the journal of operations, locks."""
