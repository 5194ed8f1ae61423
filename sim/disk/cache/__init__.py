"""The page cache: inodes, the operations that change them, locks, interposers."""
