"""Session records and their store."""
