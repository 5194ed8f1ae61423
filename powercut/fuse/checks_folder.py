"""The directory for the files of checks, in memory; one that was left behind is removed.

A process that is killed removes nothing. Its directory is known by the number of the process in
its name, and by its lock, which also the workers of the process hold until they end.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_MEMORY: Final = "/dev/shm"
_NAME: Final = re.compile(r"powercut-checks-(\d+)-\w+")


def memory_folder() -> str:
    """Return the directory for temporary files that is in memory, if there is one."""
    return _MEMORY if os.access(_MEMORY, os.W_OK) else tempfile.gettempdir()


@contextmanager
def checks_folder() -> Iterator[str]:
    """A new directory in memory for the files of checks, until the context ends."""
    parent = memory_folder()
    with suppress(OSError):  # a directory that cannot be listed
        for name in os.listdir(parent):
            _remove_if_left(name, f"{parent}/{name}")
    path = tempfile.mkdtemp(prefix=f"powercut-checks-{os.getpid()}-", dir=parent)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _remove_if_left(name: str, path: str) -> None:
    """Remove a directory of this user whose process has ended, and that no process has locked.

    A process of another container has no number here, but its lock is seen.
    """
    found = _NAME.fullmatch(name)
    if found is None or os.path.exists(f"/proc/{found[1]}"):
        return
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(descriptor).st_uid == os.geteuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(descriptor)
