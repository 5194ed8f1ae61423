"""The check of values that a caller gives as options."""

from __future__ import annotations

from enum import Enum

from system.foreign import shown


def check_least(least: int, **options: object) -> None:
    """Raise ``ValueError`` unless each option is an int of at least ``least``."""
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} is {shown(value)}; give an int of at least {least}")


def check_kind(kind: type, **options: object) -> None:
    """Raise ``ValueError`` unless each option is None or a ``kind``."""
    for name, value in options.items():
        if not (value is None or isinstance(value, kind)):
            raise ValueError(f"{name} is {shown(value)}; give {kind.__name__}(...), or None")


def check_type(kind: type, **options: object) -> None:
    """Raise ``ValueError`` unless each option is a ``kind``."""
    for name, value in options.items():
        is_right = isinstance(value, kind)
        if not is_right:
            raise ValueError(f"{name} is {shown(value)}; give a {kind.__name__}")


def check_member(kind: type[Enum], **options: object) -> None:
    """Raise ``ValueError`` unless each option is a member of ``kind``."""
    for name, value in options.items():
        # A member of a StrEnum equals its text, which is no member.
        if type(value) is not kind:
            known = " or ".join(f"{kind.__name__}.{each.name}" for each in kind)
            raise ValueError(f"{name} is {shown(value)}; give {known}")


def check_method(method: str, **options: object) -> None:
    """Raise ``ValueError`` unless each option is None or has a method of this name."""
    for name, value in options.items():
        if not (value is None or callable(getattr(value, method, None))):
            raise ValueError(
                f"{name} is {shown(value)}; give an object with the method {method}, or None"
            )
