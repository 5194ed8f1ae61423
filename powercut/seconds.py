"""Times that a user gives, in seconds: above 0 and finite, so that every wait ends."""

from __future__ import annotations

from typing import Final

MOST: Final = 10**9
"""About 30 years; the calls that wait take no more than 290."""

FORM: Final = f"a number of seconds above 0, at most {MOST}"


def is_time(value: object) -> bool:
    """Return whether ``value`` is a time that a user may give."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST
