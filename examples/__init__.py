"""Ordinary Python programs, crashed everywhere: the promise of each library, and the verdict."""
