"""Crash points, the crash counter, fault plans and their injectors."""
