"""Targets of ``powercut run``: actions and checks for each part of ``system``."""
