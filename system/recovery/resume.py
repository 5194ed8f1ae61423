"""The policy of a boot about work that was interrupted."""

from __future__ import annotations

from enum import Enum


class Resume(Enum):
    """The agents that a boot wakes: those with pending messages, or with an ACTIVE task.

    The others wait for a new message; triggers that are due wake them too.
    """

    ALL = "all"
    ROOTS = "roots"
    NONE = "none"

    def includes(self, *, is_root: bool) -> bool:
        """Whether an agent is woken."""
        return self is Resume.ALL or (self is Resume.ROOTS and is_root)
