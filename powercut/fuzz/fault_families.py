"""Fault families: the fault rules that a run injects, grouped by the handling that they require.

A target that cannot meet a family, or whose checks cannot judge it, leaves it out and gives the
reason. No target is given a disk that ignores barriers: it loses acknowledged data whatever the
program does.

In a rule, ``{count}`` is a small number of calls, ``{following}`` the next one, ``{size}`` a
number of bytes, ``{sector}`` a sector of a small file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from sim.disk.cache.operation import SyncFailure


class FaultFamily(StrEnum):
    """One kind of trouble with a disk or a clock, the ones that break most programs first."""

    PARTIAL_WRITE = "partial-write"
    FAILED_BARRIER = "failed-barrier"
    REFUSED_CALL = "refused-call"
    INTERRUPTED = "interrupted"
    STICKY_ERROR = "sticky-error"
    READ_ONLY = "read-only"
    LATE_NO_SPACE = "late-no-space"
    CLOCK = "clock"
    DELAYED_BARRIER_ERROR = "delayed-barrier-error"
    BIT_ROT = "bit-rot"
    MISDIRECTED_WRITE = "misdirected-write"


RULES: Final[Mapping[FaultFamily, Sequence[str]]] = MappingProxyType(
    {
        FaultFamily.PARTIAL_WRITE: (
            "write * #{count} short:{size}B; write * #{following} ENOSPC",
            "write * #{count} short:{size}B; write * #{following} EIO",
            "write * after {size}B ENOSPC",
            "write * #{count} short:{size}B",
        ),
        FaultFamily.FAILED_BARRIER: (
            "fsync * #{count} EIO:ext4",
            "fsync * #{count} EIO:xfs",
            "fsync * #{count} EIO:btrfs",
        ),
        FaultFamily.REFUSED_CALL: (
            "write * #{count} ENOSPC",
            "write * #{count} EIO",
            "create * #{count} ENOSPC",
            "rename * #{count} EIO",
            "unlink * #{count} EIO",
            "resize * #{count} EIO",
            "read * #{count} EIO",
            "read * #{count}+ short:{size}00B",
            "open * #{count} EMFILE",
            "close * #{count} EIO",
        ),
        FaultFamily.INTERRUPTED: (
            "write * #{count} EINTR",
            "fsync * #{count} EINTR",
            "read * #{count} EINTR",
            "open * #{count} EINTR",
            "close * #{count} EINTR",
            "resize * #{count} EINTR",
        ),
        FaultFamily.STICKY_ERROR: (
            "write * #{count}+ EIO",
            "fsync * #{count}+ EIO:ext4",
            "fsync * #{count}+ EIO:xfs",
            "fsync * #{count}+ EIO:btrfs",
            "read * #{count}+ EIO",
            "close * #{count}+ EIO",
        ),
        FaultFamily.READ_ONLY: ("change * #{count}+ EROFS", "change * from {count} EROFS"),
        FaultFamily.LATE_NO_SPACE: ("fsync * after {size}B ENOSPC", "close * after {size}B ENOSPC"),
        FaultFamily.CLOCK: ("clock * #{count} back:90s", "clock * #{count} back:86400s"),
        FaultFamily.DELAYED_BARRIER_ERROR: ("fsync * #{count} EIO:ext4-journal",),
        FaultFamily.BIT_ROT: ("read * rot:{sector}",),
        FaultFamily.MISDIRECTED_WRITE: ("write * #{count} misdirected:{sector}",),
    }
)

SAMPLE_NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {"count": 1, "following": 2, "size": 1, "sector": 0}
)
"""A number for each name in the braces of a rule."""

DAMAGE: Final[Mapping[FaultFamily, str]] = MappingProxyType(
    {
        FaultFamily.DELAYED_BARRIER_ERROR: "it may take acknowledged data",
        FaultFamily.BIT_ROT: "it may take acknowledged data",
        FaultFamily.MISDIRECTED_WRITE: "it may take acknowledged data",
    }
)
"""The families that a target leaves out unless its checks allow the losses."""

LEFT_OUT: Final[Mapping[FaultFamily, str]] = MappingProxyType(
    {**DAMAGE, FaultFamily.INTERRUPTED: "Python repeats interrupted calls, except close (PEP 475)"}
)
"""The families that a target leaves out by default."""


_WORDS: Final = {
    FaultFamily.DELAYED_BARRIER_ERROR: f"EIO:{SyncFailure.EXT4_JOURNAL}",
    FaultFamily.BIT_ROT: " rot:",
    FaultFamily.MISDIRECTED_WRITE: " misdirected:",
}


def damage_of(plan: str) -> frozenset[FaultFamily]:
    """Return the families of ``DAMAGE`` that have a rule in a plan in printed form."""
    if not plan:
        return frozenset()
    return frozenset(family for family, word in _WORDS.items() if word in plan)
