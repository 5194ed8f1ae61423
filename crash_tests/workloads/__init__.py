"""Workloads of ``powercut explore``."""
