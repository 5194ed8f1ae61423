"""What a lifetime lives on; when it goes off, nothing of that lifetime runs any more."""

from __future__ import annotations

from typing import Protocol


class Power(Protocol):
    """What a lifetime lives on; a ``Disk`` is one."""

    @property
    def off(self) -> bool:
        """Whether the lifetime has ended."""
        ...


class AlwaysOn:
    """The power of a loop without a machine."""

    off = False
