"""Directories that are still there after a power cut.

Hole R18: a new directory is an entry in its parent, and only a barrier on the parent
makes that entry durable. Whether a directory that is already there is durable nobody can
tell (its maker may have been killed before the barrier), so the whole way is covered.
"""

from __future__ import annotations

from system.ports import FileKind, FileSystem
from system.storage.path import parent_of


def make_durable_directory(files: FileSystem, path: str) -> None:
    """Let the directory ``path`` and all above it exist, durably when this returns.

    The way ends at the root of the host's data, or at ``/`` for an absolute path.
    Raises ``NotADirectoryError`` or another ``OSError``; what was made then stays, empty.
    """
    parent = parent_of(path)
    if parent == path:
        return
    make_durable_directory(files, parent)
    if files.kind(path) is not FileKind.DIRECTORY:
        files.mkdir(path)
    files.sync_dir(parent)
