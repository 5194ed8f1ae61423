"""Crash a workload at every operation, in every way the model allows."""
