"""The kinds of call that a fault rule matches, and the errnos with which each can fail.

The errnos are those of the Linux man pages (``open(2)``, ``write(2)``, ``fsync(2)``, ...) for
files on a disk. EROFS at a change of any kind is a file system that errors made read-only.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class CallKind(StrEnum):
    """The calls that a rule matches; ``change`` is every mutating operation, fsync included."""

    CREATE = "create"
    WRITE = "write"
    RESIZE = "resize"
    LINK = "link"
    UNLINK = "unlink"
    RENAME = "rename"
    ATTRIBUTES = "attributes"
    FSYNC = "fsync"
    CHANGE = "change"
    READ = "read"
    OPEN = "open"
    CLOSE = "close"
    CLOCK = "clock"


ALL_CALLS: Final = frozenset(CallKind)
MUTATING: Final = ALL_CALLS - {CallKind.READ, CallKind.OPEN, CallKind.CLOSE, CallKind.CLOCK}
ERRNOS: Final = {
    name: getattr(errno, name) for name in ("EIO", "ENOSPC", "EINTR", "EROFS", "EMFILE")
}

_CALLS_BY_ERRNO: Final[Mapping[str, frozenset[CallKind]]] = {
    # A failed fsync has more effects than an errno, so its EIO has a policy.
    "EIO": ALL_CALLS - {CallKind.FSYNC, CallKind.CHANGE, CallKind.CLOCK},
    "ENOSPC": frozenset(
        (
            CallKind.CREATE, CallKind.WRITE, CallKind.RESIZE, CallKind.LINK, CallKind.RENAME,
            CallKind.FSYNC, CallKind.CLOSE,
        )
    ),
    "EINTR": frozenset(
        (
            CallKind.CREATE, CallKind.WRITE, CallKind.RESIZE, CallKind.FSYNC, CallKind.READ,
            CallKind.OPEN, CallKind.CLOSE,
        )
    ),
    "EROFS": MUTATING,
    "EMFILE": frozenset((CallKind.OPEN,)),
}  # fmt: skip

CALLS_FAILING_WITH: Final[Mapping[int, frozenset[CallKind]]] = MappingProxyType(
    {ERRNOS[name]: calls for name, calls in _CALLS_BY_ERRNO.items()}
)
"""By errno, the kinds of call that can fail with it; ``change`` if every change can."""
