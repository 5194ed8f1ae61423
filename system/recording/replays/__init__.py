"""Replay of records."""
