"""Lazy exploration: every legal power cut is decided, as far as the check reads the disk."""
