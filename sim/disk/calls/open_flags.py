"""The flags of ``open(2)``, decoded once for each number."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sim.disk.calls.permissions import READ, WRITE
from sim.errors import UnsupportedOperation

_TMPFILE_BIT: Final = os.O_TMPFILE & ~os.O_DIRECTORY
_SYNC_BIT: Final = os.O_SYNC & ~os.O_DSYNC
_MODELLED: Final = (
    os.O_ACCMODE | os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_APPEND | os.O_DIRECTORY
    | os.O_NOFOLLOW | os.O_SYNC | os.O_DSYNC | os.O_TMPFILE
)  # fmt: skip
# Without effect on the regular files and directories here: no other program is executed, no
# terminal exists, no time of access is kept.
_WITHOUT_EFFECT: Final = (
    os.O_CLOEXEC | os.O_LARGEFILE | os.O_NOATIME | os.O_NOCTTY | os.O_NONBLOCK
)  # fmt: skip
_UNMODELLED: Final = {"O_DIRECT": os.O_DIRECT, "O_PATH": os.O_PATH, "O_ASYNC": os.O_ASYNC}


@dataclass(frozen=True, slots=True)
class OpenFlags:
    """The flags of ``number``, decoded.

    ``valid`` is False where Linux returns EINVAL at once. ``sync`` means a sync after every
    write, ``wanted`` is the access that the permission bits must grant, and a directory can be
    opened only if ``takes_directory``.
    """

    number: int
    readable: bool
    writable: bool
    create: bool
    exclusive: bool
    truncate: bool
    append: bool
    directory: bool
    follow: bool
    unnamed: bool
    no_access_time: bool
    sync: bool
    sync_data_only: bool
    wanted: int
    takes_directory: bool
    valid: bool


@lru_cache(maxsize=1024)
def open_flags(flags: int) -> OpenFlags:
    """Decode flags; ``UnsupportedOperation`` names the first that is not modelled."""
    access = flags & os.O_ACCMODE
    unknown = flags & ~(_MODELLED | _WITHOUT_EFFECT)
    if unknown or access == os.O_ACCMODE:
        named = [name for name, bit in _UNMODELLED.items() if unknown & bit]
        flag = named[0] if named else f"flags={flags:#o}"
        raise UnsupportedOperation(f"open: {flag} is not modelled; leave it out")
    unnamed = bool(flags & _TMPFILE_BIT)
    create = bool(flags & os.O_CREAT)
    truncate = bool(flags & os.O_TRUNC)
    exclusive, directory = bool(flags & os.O_EXCL), bool(flags & os.O_DIRECTORY)
    wanted = {os.O_RDONLY: READ, os.O_WRONLY: WRITE, os.O_RDWR: READ | WRITE}[access]
    return OpenFlags(
        number=flags,
        readable=access != os.O_WRONLY,
        writable=access != os.O_RDONLY,
        create=create,
        exclusive=exclusive,
        truncate=truncate,
        append=bool(flags & os.O_APPEND),
        directory=directory,
        follow=not flags & os.O_NOFOLLOW and not (create and exclusive),
        unnamed=unnamed,
        no_access_time=bool(flags & os.O_NOATIME),
        sync=bool(flags & os.O_DSYNC),
        sync_data_only=not flags & _SYNC_BIT,
        wanted=wanted | (WRITE if truncate else 0),
        takes_directory=not (create or truncate or access != os.O_RDONLY),
        valid=_is_valid(flags, unnamed=unnamed),
    )


def _is_valid(flags: int, *, unnamed: bool) -> bool:
    """Return whether ``build_open_flags`` of Linux 6.4 and later accepts the combination."""
    if unnamed:
        writes = flags & os.O_ACCMODE != os.O_RDONLY
        return writes and bool(flags & os.O_DIRECTORY) and not flags & os.O_CREAT
    return not (flags & os.O_CREAT and flags & os.O_DIRECTORY)
