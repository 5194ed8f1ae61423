"""Stores of records: in files, in packs, and in memory."""
