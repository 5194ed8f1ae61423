"""Texts of the program under test, such as names of files, on one line of a report."""

from __future__ import annotations

from typing import Final

_BYTES: Final = range(0xDC80, 0xDD00)
"""The characters as which ``surrogateescape`` decodes bytes that are not UTF-8."""


def one_line(text: str) -> str:
    r"""Return ``text`` with its control characters escaped, and such bytes as ``\xff``."""
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def by_line(text: str) -> str:
    """Return ``text`` with the control characters escaped, but for the ends of its lines."""
    return "\n".join(map(one_line, text.split("\n")))


def _escaped(character: str) -> str:
    if ord(character) in _BYTES:
        return f"\\x{ord(character) & 0xFF:02x}"
    return repr(character)[1:-1]
