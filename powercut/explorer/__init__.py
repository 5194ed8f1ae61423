"""Crash a workload at every operation, in every way that a persistence model allows."""
