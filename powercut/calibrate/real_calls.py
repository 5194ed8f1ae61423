"""The calls of programs on a real file system."""

from __future__ import annotations

import os

from powercut.fuse.mount import sync_file_system


class RealCalls:
    """The functions of ``os``, but ``sync`` is for the file system mounted at ``root`` only."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    write = staticmethod(os.write)
    pwrite = staticmethod(os.pwrite)
    ftruncate = staticmethod(os.ftruncate)
    posix_fallocate = staticmethod(os.posix_fallocate)
    fsync = staticmethod(os.fsync)
    fdatasync = staticmethod(os.fdatasync)
    rename = staticmethod(os.rename)
    link = staticmethod(os.link)
    unlink = staticmethod(os.unlink)
    symlink = staticmethod(os.symlink)
    mkdir = staticmethod(os.mkdir)
    rmdir = staticmethod(os.rmdir)

    def __init__(self, root: str) -> None:
        self._root = root

    def sync(self) -> None:
        """Write out everything of the one file system."""
        sync_file_system(self._root)
