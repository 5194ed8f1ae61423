"""How the words of a fault rule are read: numbers, sizes, durations, and the one complaint."""

from __future__ import annotations

from typing import Final

from sim.errors import HarnessError

_SIZES: Final = {"MiB": 1 << 20, "KiB": 1 << 10, "B": 1}
_DURATIONS_NS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def number(word: str, what: str, least: int = 0) -> int:
    """Read a whole number of at least ``least``; ``HarnessError`` says what it should be."""
    if not (word.isascii() and word.isdecimal()) or int(word) < least:
        raise HarnessError(f"{what} {word!r} in a fault rule is not a whole number from {least}")
    return int(word)


def size_word(size_bytes: int) -> str:
    """Write a size in its largest unit without a remainder: ``40KiB``, ``100B``."""
    return _word(size_bytes, _SIZES)


def size_bytes(word: str) -> int:
    """Read what ``size_word`` wrote; ``HarnessError`` names the word."""
    return _amount(word, _SIZES, "size")


def duration_word(duration_ns: int) -> str:
    """Write a duration in its largest unit without a remainder: ``90s``, ``1500us``."""
    return _word(duration_ns, _DURATIONS_NS)


def duration_ns(word: str) -> int:
    """Read what ``duration_word`` wrote; ``HarnessError`` names the word."""
    return _amount(word, _DURATIONS_NS, "duration")


def _word(amount: int, units: dict[str, int]) -> str:
    unit = next(unit for unit, worth in units.items() if amount % worth == 0)
    return f"{amount // units[unit]}{unit}"


def _amount(word: str, units: dict[str, int], what: str) -> int:
    digits = word.rstrip("MKiBmuns")
    worth = units.get(word[len(digits) :])
    if worth is None or not (digits.isascii() and digits.isdecimal()):
        known = ", ".join(units)
        raise HarnessError(f"{what} {word!r} in a fault rule is not a whole number of {known}")
    return int(digits) * worth
