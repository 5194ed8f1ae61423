"""Ordinary Python programs, crashed everywhere: what is promised, and what holds."""
