"""The check of values that a caller gives as options."""

from __future__ import annotations

from system.foreign import shown


def check_least(least: int, **options: object) -> None:
    """Raise ``ValueError`` unless each option is an int of at least ``least``."""
    for name, value in options.items():
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{name} is {shown(value)}; give an int of at least {least}")


def check_kind(kind: type, **options: object) -> None:
    """Raise ``ValueError`` unless each option is None or a ``kind``."""
    for name, value in options.items():
        if not (value is None or isinstance(value, kind)):
            raise ValueError(f"{name} is {shown(value)}; give {kind.__name__}(...), or None")
