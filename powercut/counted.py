"""A number with its noun, in the singular or the plural."""

from __future__ import annotations


def counted(number: int | str, noun: str, nouns: str = "") -> str:
    """Return "1 operation" or "1,234 operations"; ``nouns`` is a plural that is not in "s"."""
    text = number if isinstance(number, str) else f"{number:,}"
    return f"{text} {noun if text == '1' else nouns or f'{noun}s'}"
