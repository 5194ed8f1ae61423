"""Planted holes: our own parts, deliberately wrong in one way each; for tests alone.

Each re-creates a way in which existing systems lose data. A harness that does not find
one has a blind spot.
"""
