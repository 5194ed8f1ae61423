"""Directories that survive a power cut.

A new directory is an entry in its parent, and only a sync of the parent makes that entry
durable. An existing directory need not be durable either, because the process that made it
may have been killed before the sync. So every directory on the path is synced.
"""

from __future__ import annotations

from system.ports import FileKind, FileSystem
from system.storage.path import parent_of


def make_durable_directory(files: FileSystem, path: str) -> None:
    """Create the directory ``path`` and its ancestors where they are missing, durably.

    The ancestors end at the root of the host's data.
    Raises ``NotADirectoryError`` or another ``OSError``; new directories then stay, empty.
    """
    parent = parent_of(path)
    if parent == path:
        return
    make_durable_directory(files, parent)
    if files.kind(path) is not FileKind.DIRECTORY:
        try:
            files.mkdir(path)
        except FileExistsError:
            # Another thread or process may have made it meanwhile.
            if files.kind(path) is not FileKind.DIRECTORY:
                raise
    files.sync_dir(parent)
